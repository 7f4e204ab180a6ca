"""Train a small language model for some steps and evaluate it: the host waits for its copies alone.

Six causes, and the effect by which each shows:

    losses.append(loss.item())          a wait each step: losses stay on the device until somebody reads them
    one sentence at a time              a copy for each sentence: the host's memory has a batch in one piece
    positions counted on the host       a copy each step for 0, 1, 2, ...: the first T rows need no list of places
    a loop over heads                   6 operations a head and layer: one fused operation has all heads
    foreach=False                       12 operations for each weight: one kernel updates all weights
    evaluation without no_grad          activations are kept for a backward pass that never comes

Each copy that is left is a wait, too. Pinned memory and `non_blocking` would remove it. One copy of all batches leaves
one wait, if there is room for them.

Each is small alone, and each keeps the device from what it could do. A profile names them by what is between kernels.
"""

import torch
import torch.nn.functional as F

SIZES = {
    "check": {"steps": 3, "held_out": 2, "batch": 5, "tokens": 7, "layers": 1, "hidden": 24, "heads": 3,
              "vocabulary": 50},
    "check/one": {"steps": 1, "held_out": 1, "batch": 1, "tokens": 1, "layers": 1, "hidden": 8, "heads": 1,
                  "vocabulary": 3},
    "check/129": {"steps": 2, "held_out": 3, "batch": 2, "tokens": 129, "layers": 2, "hidden": 32, "heads": 4,
                  "vocabulary": 99},
    "count": {"steps": 3, "held_out": 2, "batch": 8, "tokens": 32, "layers": 2, "hidden": 32, "heads": 4,
              "vocabulary": 99},
    "default": {},
}  # fmt: skip
CLOCK = "wall"
STRUCTURE = {"words": "below the vocabulary", "weights": "of a model: each layer keeps the size of what it gets"}
LAYER = 5  # weights


def inputs(steps=4, held_out=4, batch=16, tokens=256, layers=4, hidden=256, heads=8, vocabulary=4000, device="cuda"):
    """`words`: batches of the training and held out ones, in the host's memory. `weights`: on the device."""
    shapes = [(vocabulary, hidden), (tokens, hidden)]
    shapes += layers * [(3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden), (hidden,)]
    draw = torch.Generator().manual_seed(int(torch.randint(1 << 30, ())))
    weights = [torch.randn(shape, device=device) * shape[-1] ** -0.5 for shape in shapes]
    words = torch.randint(vocabulary, (steps + held_out, batch, tokens + 1), generator=draw)
    return {"words": words, "weights": weights, "heads": heads, "steps": steps}


def loss_of(words, weights, heads):
    """The mean cross entropy of each word [B, T + 1] after those before it."""
    embedding, positions, *layers = weights
    x = F.embedding(words[:, :-1], embedding) + positions[: words.shape[1] - 1]
    for first in range(0, len(layers), LAYER):
        w_qkv, w_out, w_up, w_down, gain = layers[first : first + LAYER]
        qkv = F.linear(F.layer_norm(x, x.shape[-1:], gain), w_qkv)
        q, k, v = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)  # [B, heads, T, D] each
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(attended.transpose(1, 2).flatten(2), w_out)
        x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), w_up)), w_down)
    return F.cross_entropy(F.linear(x, embedding).flatten(0, 1), words[:, 1:].flatten())


@torch.no_grad()
def evaluate(held_out, weights, heads):
    """The mean loss of the batches that no step has seen."""
    return torch.stack([loss_of(words.to(weights[0].device), weights, heads) for words in held_out]).mean()


def run(words, weights, heads, steps):
    """The loss of each step, and that of the evaluation after them: float [steps + 1], on the device."""
    weights = [w.clone().requires_grad_() for w in weights]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, fused=True)
    losses = []
    for batch in words[:steps]:
        loss = loss_of(batch.to(weights[0].device), weights, heads)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack([*losses, evaluate(words[steps:], weights, heads)])
