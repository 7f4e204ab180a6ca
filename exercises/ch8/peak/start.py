"""A step of a small language model, one sentence after the other: right, and it holds far more than it needs.

Yours: all but `inputs`.
"""

import torch
import torch.nn.functional as F

LAYER = 4  # weights


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


def loss_of(sentence, weights, heads):
    """The mean cross entropy of each word [T + 1] after those before it, and each layer's answer."""
    embedding, *layers = weights
    x, outputs = F.embedding(sentence[:-1], embedding), []
    for first in range(0, len(layers), LAYER):
        x = layer_of(x, heads, *layers[first : first + LAYER])
        outputs.append(x)
    return F.cross_entropy(F.linear(x, embedding), sentence[1:]), outputs


def run(words, weights, heads):
    """The mean loss of all sentences, the mean square of each layer's answers, the loss's gradient of each weight."""
    weights = [w.clone().requires_grad_() for w in weights]
    losses, outputs = zip(*[loss_of(sentence, weights, heads) for sentence in words], strict=True)
    loss = torch.stack(losses).mean()
    loss.backward()
    squares = [torch.stack(of_layer).detach().square().mean() for of_layer in zip(*outputs, strict=True)]
    return loss.detach(), torch.stack(squares), [w.grad for w in weights]
