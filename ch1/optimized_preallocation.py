"""Hard swish in four element-wise steps, written with `out=` into two buffers: no memory asked for in any call.

Problem: the baseline asks for 256 MiB four times a call. On a CPU this means page faults in every call.

Idea: `setup` allocates two buffers of 256 MiB once. The steps write into them in turn, because each step needs only x
and what the step before has written:

    x -> a -> b -> a -> b

The pages are mapped once and stay. On a GPU, torch's caching allocator does the same for the baseline.

Cost: 512 MiB beside x, held between the calls. The baseline holds up to 768 MiB (three temporaries), but only during a
call. The traffic is the baseline's: 9 arrays read and written.

Predict: `library` does all four steps in one kernel, which reads x once and writes the answer once. How many times
faster than these four steps is that on a GPU?
"""

import torch


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def setup(x):
    return {"a": torch.empty_like(x), "b": torch.empty_like(x)}


def run(x, a, b):
    torch.add(x, 3.0, out=a)
    torch.clamp(a, 0.0, 6.0, out=b)
    torch.mul(b, x, out=a)
    return torch.div(a, 6.0, out=b)
