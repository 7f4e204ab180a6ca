"""Hard swish in four element-wise steps, written with `out=` into two buffers: no memory asked for in any call.

hard swish(x) = x * clamp(x + 3, 0, 6) / 6. `setup` allocates two buffers of 256 MiB, and the steps write to them in
turn, as four steps in a row never need more than what the one before wrote:

    x -> a -> b -> a -> b

The pages are mapped once and stay. On a GPU, torch's caching allocator did as much for the baseline without being
asked. Two buffers also bound the peak: 512 MiB beside x, where the baseline holds three temporaries while it rebinds
a name.

Predict before you measure: the same four kernels and nine arrays of traffic remain. `library` does it all in one
kernel: is that worth more than the buffers, and does the answer depend on the device?
"""

import torch


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def library(x):
    return torch.nn.functional.hardswish(x)  # neither version's idea: one kernel, no temporaries to allocate


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # the least: read x, write y. Four separate steps move 9 such arrays, not 2


def setup(x):
    return {"a": torch.empty_like(x), "b": torch.empty_like(x)}


def run(x, a, b):
    torch.add(x, 3.0, out=a)
    torch.clamp(a, 0.0, 6.0, out=b)
    torch.mul(b, x, out=a)
    return torch.div(a, 6.0, out=b)
