"""Ring attention: copy engines pass the keys and values on, so that all SMs are left for the attention.

Problem: in optimized_ring_attention.py kernels of NCCL move the keys and values. They run on SMs, which the attention
then lacks.

Idea: each process copies the part that it has into symmetric memory of the next one with `copy_`, on a second stream. A
copy from one GPU to another runs on a copy engine, and takes no SM.

    copy engine    [own keys on]      [part 1 on]
    SMs       [b]  [own keys]     [b] [part 1]    [b][part 2]

`b` is a barrier of all GPUs. The first one ends when no process reads the parts of the call before. Each other one ends
when the next part has come. Each step has a place of its own, so nothing is overwritten within a call.

Cost: memory for all parts except the own one, made once in `setup`. The ring of NCCL has two parts in memory.

Predict: could attention read a part where it is, in the memory of the other GPU, without a copy?
"""

import torch
import torch.distributed as dist
from partial_attention import attend
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2, "capability": (8, 0)}
VERSUS = ""


def inputs(heads=8, length=4096, dim=128, rank=0, ranks=2, device="cuda"):
    shape, dtype = (ranks, 3, heads, length, dim), torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(shape, device=device)[rank].to(dtype)
    return {"q": q.clone(), "k": k.clone(), "v": v.clone()}


def setup(q, k, v):
    handle, parts = symmetric((dist.get_world_size() - 1, 2, *k.shape), k.dtype, k.device)
    return {"handle": handle, "parts": parts, "copies": torch.cuda.Stream(k.device)}


def run(q, k, v, handle, parts, copies):
    ranks, rank, products = dist.get_world_size(), dist.get_rank(), torch.cuda.current_stream()
    part, y, log_sum = torch.stack((k, v)), None, None
    for step in range(ranks):
        handle.barrier()
        part = parts[rank][step - 1] if step else part
        copies.wait_stream(products)
        if step < ranks - 1:
            with torch.cuda.stream(copies):
                parts[(rank + 1) % ranks][step].copy_(part)
        y_part, log_part = attend(q, *part)
        if step:  # the part's share of each row's weight: exp(b) / (exp(a) + exp(b)) = sigmoid(b - a)
            share = torch.sigmoid(log_part - log_sum).unsqueeze(-1)
            y_part = torch.lerp(y.float(), y_part.float(), share)
            log_part = torch.logaddexp(log_sum, log_part)
        y, log_sum = y_part, log_part
        products.wait_stream(copies)
    return y.to(q.dtype)
