"""A step of a small language model that holds what the next product needs, and little else.

What a step holds, at most at a time, beside weights and gradients, for B sentences of T words, L layers, V words:

    the start      B L activations of layers, and B T V logits three times: all sentences wait for one backward pass
    here           L inputs of layers, one layer's activations, and T V / 8 logits three times

Four causes. A loss keeps all that its backward pass needs, until this pass: go backward after each sentence, and the
gradients add up. Outputs of layers that are kept for a figure of a report keep their tensors, or even their graphs:
keep the figure. A layer's activations can be computed again from its input (`checkpoint`): a third more products for
less memory. The logits are the largest tensor, and the loss needs them for some words at a time only. So checkpoint
parts of the head: the logits of a part exist twice for a moment, forward and backward.
"""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

SIZES = {
    "check": {"batch": 3, "tokens": 9, "layers": 2, "hidden": 24, "heads": 3, "vocabulary": 50},
    "check/one": {"batch": 1, "tokens": 1, "layers": 1, "hidden": 8, "heads": 1, "vocabulary": 3},
    "check/65": {"batch": 2, "tokens": 65, "layers": 2, "hidden": 32, "heads": 2, "vocabulary": 129},
    "count": {"batch": 8, "tokens": 128, "layers": 4, "hidden": 32, "heads": 4, "vocabulary": 2000},
    "default": {},
}  # fmt: skip
STRUCTURE = {"words": "below the vocabulary", "weights": "of a model: each layer keeps the size of what it gets"}
LAYER = 4  # weights
PARTS = 8  # of a sentence, for the logits


def inputs(batch=8, tokens=512, layers=8, hidden=256, heads=8, vocabulary=32_000, device="cuda"):
    shapes = [
        (vocabulary, hidden),
        *layers * [(3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden)],
    ]
    weights = [torch.randn(shape, device=device) * shape[-1] ** -0.5 for shape in shapes]
    words = torch.randint(vocabulary, (batch, tokens + 1), device=device)
    return {"words": words, "weights": weights, "heads": heads}


def layer_of(x, heads, w_qkv, w_out, w_up, w_down):
    """[T, H] -> [T, H]"""
    q, k, v = F.linear(F.layer_norm(x, x.shape[-1:]), w_qkv).unflatten(-1, (3, heads, -1)).permute(1, 2, 0, 3)
    attended = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    x = x + F.linear(attended.transpose(0, 1).flatten(1), w_out)
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), w_up)), w_down)


def head_loss(x, words, embedding):
    """The sum of the cross entropy of some words: their logits exist only in here."""
    return F.cross_entropy(F.linear(x, embedding), words, reduction="sum")


def loss_of(sentence, weights, heads):
    """The mean cross entropy of each word [T + 1] after those before it, and each layer's mean square."""
    embedding, *layers = weights
    x, squares = F.embedding(sentence[:-1], embedding), []
    for first in range(0, len(layers), LAYER):
        x = checkpoint(layer_of, x, heads, *layers[first : first + LAYER], use_reentrant=False)
        squares.append(x.detach().square().mean())
    parts = zip(x.chunk(PARTS), sentence[1:].chunk(PARTS), strict=True)
    loss = sum(checkpoint(head_loss, part, words, embedding, use_reentrant=False) for part, words in parts)
    return loss / len(x), torch.stack(squares)


def run(words, weights, heads):
    """The mean loss of all sentences, the mean square of each layer's answers, the loss's gradient of each weight."""
    weights = [w.detach().requires_grad_() for w in weights]
    losses, squares = [], []
    for sentence in words:
        loss, of_layers = loss_of(sentence, weights, heads)
        (loss / len(words)).backward()  # adds to the gradients, and gives back what the sentence has kept
        losses.append(loss.detach())
        squares.append(of_layers)
    return torch.stack(losses).mean(), torch.stack(squares).mean(0), [w.grad for w in weights]
