"""Multiply and reduce-scatter in parts: copy engines carry the parts, so that all SMs are left for the product.

Problem: in optimized_matmul_scatter.py kernels of NCCL move the parts. They run on SMs, which the product of the own
rows then lacks.

Idea: each process copies the others' rows into their symmetric memory with `copy_`, on a second stream. A copy from one
GPU to another runs on a copy engine, and takes no SM. Then the own rows are multiplied, and what has come is added:

    copy engine                           [others' rows to them]
    SMs          [b]  [others' rows @ w]  [own rows @ w]          [b]  [+]

`b` is a barrier of all GPUs. The first makes sure that no process still adds the rows of the call before. The second
makes sure that all rows have come.

Cost: memory for the rows to send and the rows to come, made once in `setup`, and two barriers of a few us. The sum
still reads two parts and writes one.

Predict: suppose that 64 MiB are sent at 280 GB/s, and a product of 275 GFLOP runs meanwhile at 780 TFLOP/s. Which ends
first?
"""

import torch
import torch.distributed as dist
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}
VERSUS = ""


def inputs(m=4096, k=4096, n=8192, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m * ranks, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def setup(x, w):
    ranks = dist.get_world_size()
    shape = (ranks - 1, len(x) // ranks, w.shape[1])
    handle, coming = symmetric(shape, x.dtype, x.device)
    going = torch.empty(shape, dtype=x.dtype, device=x.device)
    return {"handle": handle, "coming": coming, "going": going, "copies": torch.cuda.Stream(x.device)}


def run(x, w, handle, coming, going, copies):
    ranks, rank, products = dist.get_world_size(), dist.get_rank(), torch.cuda.current_stream()
    rows = x.chunk(ranks)
    handle.barrier()
    for step in range(1, ranks):
        to = (rank + step) % ranks
        torch.matmul(rows[to], w, out=going[step - 1])
        copies.wait_stream(products)
        with torch.cuda.stream(copies):
            coming[to][step - 1].copy_(going[step - 1])
    y = rows[rank] @ w
    products.wait_stream(copies)
    handle.barrier()
    for part in coming[rank]:
        y += part
    return y
