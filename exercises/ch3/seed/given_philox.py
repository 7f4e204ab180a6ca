"""Given: which elements stay, from a seed and a place alone. In a kernel, and in integers to check it by."""

import torch
import triton
import triton.language as tl


@triton.jit
def keep(block_start, seed, threshold, BLOCK: tl.constexpr):
    """Whether each of BLOCK elements from `block_start` on stays: a function of these numbers, and of no state."""
    a, b, c, d = tl.randint4x(seed, block_start // 4 + tl.arange(0, BLOCK // 4))
    numbers = tl.join(tl.join(a, c), tl.join(b, d)).reshape(BLOCK)  # a0 b0 c0 d0 a1 b1 c1 d1 ...
    return numbers >= threshold


def numbers_for(x, seed):
    """The same numbers, one of 32 bits for each element of x."""
    low, key = 2**32 - 1, [seed, 0]
    c = [torch.arange(triton.cdiv(x.numel(), 4), device=x.device), *(torch.zeros((), dtype=torch.int64),) * 3]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32 & low) ^ c[1] ^ key[0], b & low, (a >> 32 & low) ^ c[3] ^ key[1], a & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return torch.stack(c, 1).flatten()[: x.numel()].view(x.shape)
