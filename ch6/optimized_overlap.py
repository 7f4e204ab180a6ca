"""Train a step on several processes: each gradient is summed as soon as it is there, while backward goes on.

Problem: in baseline_overlap.py the link is idle until backward ends.

Idea: a hook starts the all-reduce of a gradient when backward has computed it. At the end the step waits for all.

    device    [forward][backward]
    link                 [gradients, last layer first]

Cost: the transfers use the device's memory and some SMs, so backward itself takes longer. Without a GPU the same cores
compute and send: only time in which a core waits can be hidden.

Predict: which gradient's transfer can never be hidden?
"""

import torch
import torch.distributed as dist


def inputs(batch=2048, dim=4096, layers=16, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = (torch.randn(layers, dim, dim, device=device) / dim**0.5).to(dtype)
    return {"x": torch.randn(ranks, batch, dim, device=device)[rank].to(dtype), "w_layers": list(weights.unbind())}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x.square().sum() / 2


def run(x, w_layers):
    layers, works = [w.detach().requires_grad_() for w in w_layers], []
    for w in layers:
        w.register_post_accumulate_grad_hook(lambda w: works.append(dist.all_reduce(w.grad, async_op=True)))
    forward(x, layers).backward()
    for work in works:
        work.wait()
    return [w.grad for w in layers]
