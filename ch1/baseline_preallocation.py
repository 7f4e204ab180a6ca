"""Hard swish in four element-wise steps, a fresh 256 MiB temporary each: 1 GiB of memory asked for in every call.

Problem: hard swish(x) = x * clamp(x + 3, 0, 6) / 6. Each of the four steps asks for new memory, writes it once, and
soon after drops it. What asking costs depends on the allocator:

    CPU   above 32 MiB glibc's malloc maps new pages for each array and unmaps them when it is freed. The first write to
          each page of 4 KiB is a page fault: 65,536 of them a temporary (fewer where huge pages are automatic). The
          operating system also fills each page with zeros, just before the step overwrites it
    GPU   torch's caching allocator keeps freed blocks and hands them out again, without a call of the driver. It has to
          ask the driver only where no kept block fits: in the first call, after `empty_cache()`, for a new shape

Cost: the steps read and write 2 + 2 + 3 + 2 = 9 arrays of 256 MiB. The least is 2: read x, write y.

Predict: on a GPU, how many times faster is `optimized_preallocation.py`, which asks for no memory in a call?
"""

import torch

SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 40_001},
    "count": {"n": 262_144},
    "default": {"n": 67_108_864},  # 256 MiB of float32: larger than any L2
    "cpu": {"n": 4_194_304},  # 16 MiB, four in use at once: to draw and check 256 MiB takes 2 cores too long
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
