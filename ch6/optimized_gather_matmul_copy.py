"""Gather and multiply at the same time: copy engines carry the rows, so that all SMs are left for the product.

Problem: in optimized_gather_matmul.py kernels of NCCL move the rows. They run on SMs, which the product then lacks.

Idea: each process has symmetric memory, which the others can write. It copies its own rows there with `copy_`, on a
second stream. A copy from one GPU to another runs on a copy engine, and takes no SM:

    copy engine    [own rows to the others]
    SMs       [b]  [own rows @ w]           [b][others' rows @ w]

`b` is a barrier of all GPUs. Before the first one another process may still multiply the rows of the call before,
which a copy would overwrite. Before the second one the others' rows may not have come. A barrier is a small kernel. It
is on the stream of the products: on the other stream it could wait for a free SM until a product ends.

Cost: memory for the others' rows, made once in `setup`, and p barriers of a few us with p processes.

Predict: a process could also fetch the others' rows in place of sending its own. What would it have to do first?
"""

import torch
import torch.distributed as dist
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}
VERSUS = ""


def inputs(m=4096, k=8192, n=4096, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def setup(x, w):
    handle, parts = symmetric((dist.get_world_size() - 1, *x.shape), x.dtype, x.device)
    return {"handle": handle, "parts": parts, "copies": torch.cuda.Stream(x.device)}


def run(x, w, handle, parts, copies):
    ranks, rank, m, products = dist.get_world_size(), dist.get_rank(), len(x), torch.cuda.current_stream()
    y = torch.empty(ranks, m, w.shape[1], device=x.device, dtype=x.dtype)
    handle.barrier()
    copies.wait_stream(products)
    sent = []
    with torch.cuda.stream(copies):
        for step in range(1, ranks):
            parts[(rank + step) % ranks][step - 1].copy_(x)
            sent.append(copies.record_event())
    torch.matmul(x, w, out=y[rank])
    for step in range(1, ranks):
        products.wait_event(sent[step - 1])
        handle.barrier()  # every process has sent its rows of this step
        torch.matmul(parts[rank][step - 1], w, out=y[(rank - step) % ranks])
    return y.view(ranks * m, -1)
