"""The most that torch offers: a layer and the head compiled by trying many kernels, the whole step in one CUDA graph.

The graph is captured here. torch.compile(mode="max-autotune") would make graphs of its own. As it records them it frees
cuBLAS's workspace (`clear_cublas_manager`), in which every other graph of the process still computes.
"""

import gpt
import torch

HOW = {"mode": "max-autotune-no-cudagraphs", "dynamic": False, "fullgraph": True}
parts = [torch.compile(part, **HOW) for part in (gpt.block, gpt.head_loss)]
_captured = {}


def step(capture, words, state_weights, state_m, state_v, heads, vocabulary):
    """One step; the loss. `capture`: how a step with compiled parts becomes a graph.

    A library has no `setup`: what is captured for one set of addresses is kept until it is called with another.
    """
    address = state_weights[0].data_ptr()
    if address not in _captured:
        _captured.clear()  # a graph keeps its memory
        states = [*state_weights, *state_m, *state_v]
        before = [state.clone() for state in states]
        _captured[address] = capture(parts, words, state_weights, state_m, state_v, heads, vocabulary)
        for state, old in zip(states, before, strict=True):  # a capture takes steps
            state.copy_(old)
    kept = _captured[address]
    kept["kept_words"].copy_(words)
    kept["graph"].replay()
    return kept["loss"]
