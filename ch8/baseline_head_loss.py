"""The last layer's loss and its gradients: all logits at once, 1.6 GB of memory where both gradients take 57 MB.

Problem: T tokens of H channels and V words have T V logits, 134 million for 4096 tokens and 32,768 words. They are
neither input nor answer. Each is kept up to three times, in float32, since a sum of 32,768 exponentials in 16 bits is
not accurate:

    forward                       bytes per logit          backward                      bytes per logit
    product, in 16 bits           2 written                gradient of the loss          4 written
    to float32                    2 read, 4 written        gradient of log_softmax       8 read, 4 written
    log_softmax                   4 read, 4 written        to 16 bits                    4 read, 2 written
                                                           two products                  4 read

Cost: 6 T H V FLOPs in three products, and 42 bytes of traffic per logit. At the gradient of log_softmax three arrays
in float32 exist: 12 T V bytes.
Predict: `optimized_head_loss_chunked.py` has the logits of 1024 tokens at a time, each in 16 bits and twice in float32,
and the gradient of w_head in float32. How many times less memory does it need?
"""

import torch
import torch.nn.functional as F
from compiled import compiled

SIZES = {
    "check": {"tokens": 1027, "hidden": 24, "vocabulary": 50, "dtype": "float32"},
    "check/one": {"tokens": 1, "hidden": 1, "vocabulary": 2, "dtype": "float32"},
    "check/bf16": {"tokens": 65, "hidden": 33, "vocabulary": 129},
    "check/chunks": {"tokens": 2048, "hidden": 7, "vocabulary": 13, "dtype": "float32"},
    "default": {},
    "cpu": {"tokens": 2048, "hidden": 32, "vocabulary": 768, "dtype": "float32"},  # 6 MiB of logits
}
STRUCTURE = {"targets": "words of the vocabulary"}


def inputs(tokens=4096, hidden=768, vocabulary=32_768, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, w_head = torch.randn(tokens, hidden, **like), torch.randn(vocabulary, hidden, **like) * hidden**-0.5
    return {"x": x, "w_head": w_head, "targets": torch.randint(vocabulary, (tokens,), device=device)}


def library_compiled(x, w_head, targets):
    return with_gradients(compiled(mean_loss, w_head, len(x)), x, w_head, targets)


def cost(x, w_head, targets):
    flops = {torch.float32: "fp32_flops", torch.bfloat16: "bf16_flops"}[x.dtype]
    return {flops: 6 * len(x) * w_head.numel(), "dram_bytes": 2 * (x.nbytes + w_head.nbytes) + targets.nbytes}


def mean_loss(x, w_head, targets):  # [T, H], [V, H], [T]
    logits = F.linear(x, w_head)  # [T, V]
    return F.cross_entropy(logits.to(torch.promote_types(x.dtype, torch.float32)), targets)


def with_gradients(loss_of, x, w_head, targets):
    leaves = x.detach().requires_grad_(), w_head.detach().requires_grad_()
    loss = loss_of(*leaves, targets)
    return loss.detach(), *torch.autograd.grad(loss, leaves)


def run(x, w_head, targets):
    return with_gradients(mean_loss, x, w_head, targets)
