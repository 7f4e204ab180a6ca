"""Train a step on several processes: gradients are summed during backward by 8 CTAs, and the other SMs are left to it.

Problem: in optimized_overlap.py kernels of NCCL run on the same GPU as backward. NCCL gives a sum as many CTAs (thread
blocks) as make it fast if it is alone. Each of them takes registers and shared memory of an SM until the sum ends.

Idea: a second group of the same processes, whose sums have at most 8 CTAs. Each sum takes longer, which costs nothing
while backward goes on, and the products keep nearly all SMs:

    most SMs    [forward][backward]
    8 SMs                [gradients, last layer first]

Cost: the sum that begins last is not hidden, and takes longer than with more CTAs. The group, with its buffers, is made
once, in `setup`.

Predict: if a CTA moves 20 GB/s, how long must backward take to hide 0.5 GiB of gradients of two processes?
"""

from functools import cache

import torch
import torch.distributed as dist

DEVICE = "cuda"  # gloo has no CTAs
REQUIRES = {"gpus": 2}
VERSUS = ""
CTAS = 8


def inputs(batch=2048, dim=4096, layers=16, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = (torch.randn(layers, dim, dim, device=device) / dim**0.5).to(dtype)
    return {"x": torch.randn(ranks, batch, dim, device=device)[rank].to(dtype), "w_layers": list(weights.unbind())}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x.square().sum() / 2


@cache  # all processes must make it at the same time, and one is enough
def small_group():
    options = dist.ProcessGroupNCCL.Options()
    options.config.max_ctas = CTAS
    return dist.new_group(pg_options=options)


def setup(x, w_layers):
    return {"group": small_group()}


def run(x, w_layers, group):
    layers, works = [w.detach().requires_grad_() for w in w_layers], []
    for w in layers:
        w.register_post_accumulate_grad_hook(
            lambda w: works.append(dist.all_reduce(w.grad, group=group, async_op=True))
        )
    forward(x, layers).backward()
    for work in works:
        work.wait()
    return [w.grad for w in layers]
