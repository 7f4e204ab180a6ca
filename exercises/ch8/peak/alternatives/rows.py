"""Another way: parts of 16 words, and figures that are added up."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

LAYER = 4  # weights
WORDS = 16  # whose logits exist at a time


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
    parts = zip(x.split(WORDS), sentence[1:].split(WORDS), strict=True)
    loss = sum(checkpoint(head_loss, part, words, embedding, use_reentrant=False) for part, words in parts)
    return loss / len(x), torch.stack(squares)


def run(words, weights, heads):
    """The mean loss of all sentences, the mean square of each layer's answers, the loss's gradient of each weight."""
    weights = [w.detach().requires_grad_() for w in weights]
    losses, squares = 0.0, 0.0
    for sentence in words:
        loss, of_layers = loss_of(sentence, weights, heads)
        (loss / len(words)).backward()  # adds to the gradients, and gives back what the sentence has kept
        losses, squares = losses + loss.detach(), squares + of_layers
    return losses / len(words), squares / len(words), [w.grad for w in weights]
