"""The last layer's loss and its gradients, 1024 tokens at a time: at most 0.44 GB of memory instead of 1.6 GB.

Problem: `baseline_head_loss.py` keeps 12 bytes for each of T V logits until the backward pass has used them.
Idea: the loss is the last thing that a step computes, so the gradient of a chunk's logits is known as soon as they are:
softmax(logits) less 1 at the target. Nothing has to wait for a backward pass. A chunk makes its rows of x's gradient,
adds its share to w_head's, and its memory serves the next one:

    for each chunk                bytes per logit          for each chunk                bytes per weight of w_head
    product, in 16 bits           2 written                product, in 16 bits           2 written
    to float32 (log_softmax)      2 read, 4 written        sum of shares, in float32     2 + 4 read, 4 written
    log_softmax                   4 read, 4 written
    exp, in place of the logits   4 read, 2 written
    two products                  4 read

Cost: as many FLOPs, and 26 bytes of traffic per logit instead of 42. c tokens a chunk: 10 c V + 4 V H bytes, where all
tokens at once took 12 T V. The shares are 12 V H bytes a chunk beside its 6 c V H FLOPs; in 16 bits their sum would
lose digits. So would the sums over V words in x's gradient: they stay in float32 (`out_dtype`), and are rounded once.
(torch 2.13 has such a loop: `linear_cross_entropy` with `options`.)
Predict: for a GPU that does 200 FLOPs in the time of a byte, how many tokens must a chunk have, so that the shares take
a tenth of the products' time? Does that depend on H or V?
"""

import torch

CHUNK = 1024  # tokens


def inputs(tokens=4096, hidden=768, vocabulary=32_768, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, w_head = torch.randn(tokens, hidden, **like), torch.randn(vocabulary, hidden, **like) * hidden**-0.5
    return {"x": x, "w_head": w_head, "targets": torch.randint(vocabulary, (tokens,), device=device)}


def chunk_loss(x, w_head, targets):  # [c, H], [V, H], [c]
    """The sum of a chunk's losses, and the gradient of its logits, [c, V]."""
    logits, targets = x @ w_head.mT, targets[:, None]
    logp = logits.log_softmax(-1, dtype=torch.promote_types(x.dtype, torch.float32))
    of_targets = logp.gather(1, targets)
    grad = torch.exp(logp, out=logits).scatter_(1, targets, of_targets.expm1().to(x.dtype))  # exp(logp) - 1
    return -of_targets.sum(), grad


def run(x, w_head, targets):
    wide = torch.promote_types(x.dtype, torch.float32)
    loss, grad_x, grad_w = x.new_zeros((), dtype=wide), torch.empty_like(x), torch.zeros_like(w_head, dtype=wide)
    in_wide = {"out_dtype": wide} if x.is_cuda and x.dtype != wide else {}  # else cuBLAS may add parts of V in 16 bits
    for t in range(0, len(x), CHUNK):
        part = x[t : t + CHUNK]
        part_loss, grad = chunk_loss(part, w_head, targets[t : t + CHUNK])
        loss += part_loss
        grad_x[t : t + CHUNK] = torch.mm(grad, w_head, **in_wide).div_(len(x))
        grad_w += grad.mT @ part
        del grad  # before the next chunk's logits
    return loss / len(x), grad_x, grad_w.div_(len(x)).to(w_head.dtype)
