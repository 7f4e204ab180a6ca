"""Hard swish in four element-wise steps, a fresh 256 MiB temporary each: 1 GiB of memory asked for in every call.

hard swish(x) = x * clamp(x + 3, 0, 6) / 6. Each step asks for memory, writes it once, and soon after it is dropped.
What asking costs depends on who answers:

    CPU   above 32 MiB glibc's malloc maps new pages each time and unmaps them on free: 65,536 page faults of 4 KiB a
          temporary (fewer where huge pages are automatic), and the kernel zeroes every page just before the step
          overwrites it
    GPU   torch's caching allocator hands out a block that was dropped before: no call to the driver, unless none fits:
          in a first call, after `empty_cache()`, where every call has another shape, when memory runs short

Predict before you measure: both versions move the same bytes in the same four kernels. On which device is
`optimized_preallocation.py` faster, on which is it the same? Which of the cases just named does your program meet?
"""

import torch

SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 40_001},
    "count": {"n": 262_144},
    "default": {"n": 67_108_864},  # 256 MiB of float32: larger than any L2
    "cpu": {"n": 9_437_184},  # 36 MiB, beyond most caches: to draw and check 256 MiB takes 2 cores too long
}


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def library(x):
    return torch.nn.functional.hardswish(x)  # neither version's idea: one kernel, no temporaries to allocate


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # the least: read x, write y. Four separate steps move 9 such arrays, not 2


def run(x):
    a = torch.add(x, 3.0)
    b = torch.clamp(a, 0.0, 6.0)
    a = torch.mul(b, x)
    return torch.div(a, 6.0)
