"""A training step in one CUDA graph: the host starts one launch, whatever the step consists of.

Problem: a compiled step still has some hundred launches, and Python between them. With few tokens a step the GPU
waits.
Idea: `setup` captures forward, backward and optimizer once. A step copies its words, and replays.
Cost: the same kernels. What is saved is the host's time for launches and Python. A captured step has fixed shapes and
addresses, keeps its memory, and may not ask for a value (`.item()`, a test of the loss).
Predict: at `large` the GPU is busy for longer than the host. What is gained there? And at `small/1`, one sequence of
1024 tokens?
"""

import fastest
import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "padded"
DEVICE = "cuda"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


parts = [torch.compile(part, dynamic=False, fullgraph=True) for part in (gpt.block, gpt.head_loss)]


def step(parts, words, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.fused_attention, *parts, vocabulary)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def capture(parts, words, state_weights, state_m, state_v, heads, vocabulary):
    weights, kept_words = gpt.leaves(state_weights), words.clone()
    optimizer = gpt.adamw(weights, state_m, state_v, fused=True, capturable=True)
    arguments = parts, kept_words, heads, vocabulary, weights, optimizer
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compiles and loads all kernels: that may not happen during a capture
        for _ in range(2):
            step(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # it takes the gradients' memory for itself
        loss = step(*arguments)
    return {"kept_words": kept_words, "graph": graph, "loss": loss, "kept": (weights, optimizer)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    return capture(parts, words, state_weights, state_m, state_v, heads, vocabulary)


def run(words, state_weights, state_m, state_v, heads, vocabulary, kept_words, graph, loss, kept):
    kept_words.copy_(words)  # the graph reads this address, and those of the weights and the moments
    graph.replay()
    return loss


def library_max_autotune(words, state_weights, state_m, state_v, heads, vocabulary):  # torch.compile at its most
    return fastest.step(capture, words, state_weights, state_m, state_v, heads, vocabulary)
