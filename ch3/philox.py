"""Random numbers as a function of a seed and a counter: in a kernel, and in integers of 64 bits to check it by."""

import torch
import triton
import triton.language as tl


def numbers_for(x, seed):
    """Of 32 bits, one for each element: Philox as in Triton, ten rounds on four words, of which the first counts."""
    low, key = 2**32 - 1, [seed, 0]
    c = [torch.arange(triton.cdiv(x.numel(), 4), device=x.device), *(torch.zeros((), dtype=torch.int64),) * 3]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32 & low) ^ c[1] ^ key[0], b & low, (a >> 32 & low) ^ c[3] ^ key[1], a & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return torch.stack(c, 1).flatten()[: x.numel()].view(x.shape)


@triton.jit
def keep(block_start, seed, threshold, BLOCK: tl.constexpr):
    """Which of BLOCK elements from `block_start` on stay. Element i takes number i % 4 of those of counter i // 4."""
    a, b, c, d = tl.randint4x(seed, block_start // 4 + tl.arange(0, BLOCK // 4))
    numbers = tl.join(tl.join(a, c), tl.join(b, d)).reshape(BLOCK)  # a0 b0 c0 d0 a1 b1 c1 d1 ...
    return numbers >= threshold
