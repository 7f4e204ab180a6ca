"""GPT-2's shape in one file: embeddings, layers of attention and a wide product, a head that is the embedding again.

Shapes: B sequences of T tokens, L layers, H hidden channels, V words. A step has B T tokens. Weights are a list:

    embedding [V', H], positions [T, H]
    for each layer: gain, bias [H]; W_qkv [3 H, H], bias; W_out [H, H], bias; gain, bias [H]; W_up [4 H, H], bias;
                    W_down [H, 4 H], bias
    gain, bias [H]

V' is V rounded up to a multiple of 128. The rows from V on are zeros, and stay zeros. A version may use them or not.

Weights and Adam's moments are drawn, not trained: neither times nor bytes depend on their values. The moments are of
the gradients' size, as after a million steps: Adam's corrections for the first steps are 1 then.
"""

import torch
import torch.nn.functional as F

STEPS = 1e6  # 0.999 ** STEPS is 0
GRADIENT = 5e-3  # size of Adam's moments
PERIOD = 65_521  # values are drawn once and repeated: a prime, so that rows do not begin at the same place
LAYER = 12  # tensors


def drawn(batch, tokens, layers, hidden, heads, vocabulary, device):  # the arguments of `inputs`
    """Fresh weights, moments and tokens, and two numbers that the step needs."""
    shift = 0

    def normal(*shape, std):
        nonlocal shift
        count, shift = torch.Size(shape).numel(), shift + PERIOD // 13
        return (block.roll(shift) * std).repeat(-(-count // PERIOD))[:count].view(shape)

    def layer():
        return [
            1 + normal(hidden, std=0.1), normal(hidden, std=0.02),
            normal(3 * hidden, hidden, std=hidden**-0.5), normal(3 * hidden, std=0.02),
            normal(hidden, hidden, std=hidden**-0.5), normal(hidden, std=0.02),
            1 + normal(hidden, std=0.1), normal(hidden, std=0.02),
            normal(4 * hidden, hidden, std=hidden**-0.5), normal(4 * hidden, std=0.02),
            normal(hidden, 4 * hidden, std=(4 * hidden) ** -0.5), normal(hidden, std=0.02),
        ]  # fmt: skip

    block = torch.randn(PERIOD, device=device)
    weights = [normal(-(-vocabulary // 128) * 128, hidden, std=0.02), normal(tokens, hidden, std=0.02)]
    for _ in range(layers):
        weights += layer()
    weights += [1 + normal(hidden, std=0.1), normal(hidden, std=0.02)]
    m = [normal(*w.shape, std=GRADIENT) for w in weights]
    v = [normal(*w.shape, std=GRADIENT).square() + GRADIENT**2 for w in weights]
    for tensors in (weights, m, v):
        tensors[0][vocabulary:] = 0
    words = torch.randint(vocabulary, (batch, tokens + 1), device=device)
    return {"words": words, "state_weights": weights, "state_m": m, "state_v": v, "heads": heads,
            "vocabulary": vocabulary}  # fmt: skip


def drawn_for_gradients(batch, tokens, layers, hidden, heads, vocabulary, device):
    """Of `drawn`, what a forward and a backward pass read."""
    drawn_all = drawn(batch, tokens, layers, hidden, heads, vocabulary, device)
    return {"words": drawn_all["words"], "weights": drawn_all["state_weights"], "heads": heads}


def flops(words, state_weights, vocabulary):
    """Of a step's products, forward and twice that backward: all matrices, and attention with the tokens before."""
    batch, tokens = words.shape[0], words.shape[1] - 1
    layers, hidden = len(state_weights) // LAYER, state_weights[0].shape[1]
    matrices = layers * 12 * hidden**2 + vocabulary * hidden
    return 6 * batch * tokens * (matrices + layers * hidden * (tokens + 1))


def adam_bytes(state_weights):
    """Read weights, gradients and both moments, write all but the gradients."""
    return 7 * sum(w.nbytes for w in state_weights)


def leaves(state_weights, vocabulary=None):
    """The weights to be trained, in the memory of these; the embedding as far as its words go, or all of it."""
    embedding, *others = state_weights
    return [w.detach().requires_grad_() for w in (embedding[:vocabulary], *others)]


def adamw(weights, state_m, state_v, **how):
    """torch.optim.AdamW after `STEPS` steps, its moments in the memory of these. `how`: which implementation."""
    optimizer = torch.optim.AdamW(weights, lr=3e-4, weight_decay=0.1, **how)
    device = weights[0].device if how.get("fused") or how.get("capturable") else "cpu"
    for w, m, v in zip(weights, state_m, state_v, strict=True):
        count = torch.tensor(STEPS, device=device)
        optimizer.state[w] = {"step": count, "exp_avg": m[: len(w)], "exp_avg_sq": v[: len(w)]}
    return optimizer


def gradients_of(weights):
    """Without those of the keys' biases: a softmax is the same for each of them, so what is there is rounding."""
    gradients = [w.grad for w in weights]
    for i in range(5, len(gradients) - 2, LAYER):  # biases of q, k, v
        gradients[i] = gradients[i].unflatten(0, (3, -1))[::2]
    return gradients


def norm(x, gain, bias):  # [B, T, H] -> [B, T, H]
    return F.layer_norm(x, x.shape[-1:], gain, bias)


def block(x, heads, attend, gain_1, bias_1, w_qkv, b_qkv, w_out, b_out, gain_2, bias_2, w_up, b_up, w_down, b_down):
    """One layer, [B, T, H] -> [B, T, H]. `attend(q, k, v)`: [B, heads, T, D] three times -> [B, heads, T, D]."""
    qkv = F.linear(norm(x, gain_1, bias_1), w_qkv, b_qkv)
    q, k, v = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    x = x + F.linear(attend(q, k, v).transpose(1, 2).flatten(2), w_out, b_out)
    return x + F.linear(F.gelu(F.linear(norm(x, gain_2, bias_2), w_up, b_up), approximate="tanh"), w_down, b_down)


def hidden_of(words, weights, heads, attend, layer=block):
    """What the head gets, [B, T, H], of words [B, T]. `layer`: `block`, or what calls it."""
    embedding, positions, *layers, gain, bias = weights
    x = F.embedding(words, embedding) + positions[: words.shape[1]]
    for first in range(0, len(layers), LAYER):
        x = layer(x, heads, attend, *layers[first : first + LAYER])
    return norm(x, gain, bias)


def head_loss(x, embedding, targets, vocabulary=None):
    """The mean cross entropy of words [B T] after x, [B, T, H]. Rows from `vocabulary` on are no words."""
    logits = F.linear(x, embedding).flatten(0, 1)  # [B T, V] or [B T, V']
    if vocabulary is not None:
        logits = logits.masked_fill(torch.arange(logits.shape[1], device=logits.device) >= vocabulary, -torch.inf)
    return F.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), targets)


def loss_of(words, weights, heads, attend, layer=block, head=head_loss, vocabulary=None):
    """The mean cross entropy of each word [B, T + 1] after those before it. `layer`, `head`: what computes them."""
    x = hidden_of(words[:, :-1], weights, heads, attend, layer)
    return head(x, weights[0], words[:, 1:].flatten(), vocabulary)


def masked_attention(q, k, v):
    """Attention with the tokens before, written out: three matrices [B, heads, T, T] are written and read again."""
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    return scores.masked_fill(later, -torch.inf).softmax(-1).to(v.dtype) @ v


def fused_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
