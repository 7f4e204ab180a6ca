"""Train a small language model for some steps and evaluate it: right, and slow for six reasons.

Yours: all but `inputs`.
"""

import torch
import torch.nn.functional as F

LAYER = 5  # weights


def inputs(steps=4, held_out=4, batch=16, tokens=256, layers=4, hidden=256, heads=8, vocabulary=4000, device="cuda"):
    """`words`: batches of the training and held out ones, in the host's memory. `weights`: on the device."""
    shapes = [(vocabulary, hidden), (tokens, hidden)]
    shapes += layers * [(3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden), (hidden,)]
    draw = torch.Generator().manual_seed(int(torch.randint(1 << 30, ())))
    weights = [torch.randn(shape, device=device) * shape[-1] ** -0.5 for shape in shapes]
    words = torch.randint(vocabulary, (steps + held_out, batch, tokens + 1), generator=draw)
    return {"words": words, "weights": weights, "heads": heads, "steps": steps}


def attention(q, k, v, heads):
    """[B, T, H] three times -> [B, T, H], each token with those before it."""
    later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    parts = []
    for q_head, k_head, v_head in zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True):
        scores = q_head @ k_head.mT * q_head.shape[-1] ** -0.5
        parts.append(scores.masked_fill(later, -torch.inf).softmax(-1) @ v_head)
    return torch.cat(parts, -1)


def loss_of(words, weights, heads):
    """The mean cross entropy of each word [B, T + 1] after those before it."""
    embedding, positions, *layers = weights
    places = torch.arange(words.shape[1] - 1)
    x = F.embedding(words[:, :-1], embedding) + F.embedding(places.to(words.device), positions)
    for first in range(0, len(layers), LAYER):
        w_qkv, w_out, w_up, w_down, gain = layers[first : first + LAYER]
        q, k, v = F.linear(F.layer_norm(x, x.shape[-1:], gain), w_qkv).chunk(3, -1)
        x = x + F.linear(attention(q, k, v, heads), w_out)
        x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), w_up)), w_down)
    return F.cross_entropy(F.linear(x, embedding).flatten(0, 1), words[:, 1:].flatten())


def on_device(words, device):
    """A batch, from the host's memory."""
    return torch.stack([sentence.to(device) for sentence in words])


def evaluate(held_out, weights, heads):
    """The mean loss of the batches that no step has seen."""
    total = 0.0
    for words in held_out:
        total += loss_of(on_device(words, weights[0].device), weights, heads)
    return total / len(held_out)


def run(words, weights, heads, steps):
    """The loss of each step, and that of the evaluation after them: float [steps + 1], on the device."""
    weights = [w.clone().requires_grad_() for w in weights]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, foreach=False)
    device, losses = weights[0].device, []
    for batch in words[:steps]:
        loss = loss_of(on_device(batch, device), weights, heads)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    losses.append(evaluate(words[steps:], weights, heads).item())
    return torch.tensor(losses, dtype=weights[0].dtype, device=device)
