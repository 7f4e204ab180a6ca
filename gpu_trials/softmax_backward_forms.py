"""Forms of ch3's softmax_backward `tuned`: shares of 4.3 TB/s. python gpu_trials/softmax_backward_forms.py from the root.

First wide rows (held, rest from L2), then 16,384 columns with 16 and 32 warps, where `cached` is 6 % ahead in 16 bits.
"""

import sys

sys.path[:0] = [".", "ch3"]
import optimized_softmax_backward_cached as cached
import optimized_softmax_backward_tuned as tuned
import torch
from triton.testing import do_bench


def share(call, y):
    return 3 * y.nbytes / 4.3e9 / do_bench(call, rep=80, return_mode="median")


for columns in (65_536, 49_152, 131_072):
    for dtype in ("float32", "float16"):
        given = tuned.inputs(4096, columns, dtype)
        y, dy = given.values()
        print(columns, dtype, f"cached {share(lambda: cached.run(y, dy), y):.3f} tuned {share(lambda: tuned.run(y, dy), y):.3f}")
        right, dx = cached.run(y, dy).float(), torch.empty_like(y)
        for held, warps, block in ((16_384, 32, 8192), (16_384, 16, 8192), (8192, 32, 8192), (8192, 32, 16_384)):
            def call():
                tuned.held_kernel[(4096,)](y, dy, dx, columns, HELD=held, BLOCK=block, num_warps=warps)
            call()
            print("  ", held, warps, block, f"{share(call, y):.3f} off by {(dx.float() - right).abs().max():.1e}", flush=True)
for dtype in ("float32", "float16", "bfloat16"):
    y, dy = tuned.inputs(4096, 16_384, dtype).values()
    dx = torch.empty_like(y)
    print(16_384, dtype, f"cached {share(lambda: cached.run(y, dy), y):.3f} tuned {share(lambda: tuned.run(y, dy), y):.3f}")
    for warps in (8, 16, 32):
        def call():
            tuned.softmax_backward_kernel[(4096,)](y, dy, dx, 4096, 16_384, 1, 16_384, num_warps=warps)
        print("  ", warps, f"{share(call, y):.3f}", flush=True)
    for held, block in ((8192, 8192), (8192, 4096)):
        def call():
            tuned.held_kernel[(4096,)](y, dy, dx, 16_384, HELD=held, BLOCK=block, num_warps=32)
        print("   held", held, block, f"{share(call, y):.3f}", flush=True)
