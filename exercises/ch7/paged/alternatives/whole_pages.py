"""Attention of one new token over a window of a cache in pages, in blocks of four whole pages.

The first block begins with a page, so four numbers of the table serve a block. The rows of its first page that are
before the window are masked, and not read.
"""

import torch
import triton
import triton.language as tl

PAGE = 16  # rows of a page


def inputs(batch, kv_heads, group, d, longest, window, device="cuda"):
    """`table`: for each sequence its pages, in order; 0 where it has none."""
    pages = -(-longest // PAGE)
    lengths = torch.randint(1, longest + 1, (batch,), device=device)
    lengths[0] = longest
    table = torch.randperm(batch * pages, device=device).view(batch, pages)
    empty = torch.arange(pages * PAGE, device=device).view(pages, PAGE) >= lengths[:, None, None]
    q = torch.randn(batch, kv_heads * group, d, device=device).half()
    k, v = (torch.randn(batch, pages, PAGE, kv_heads, d, device=device).half() for _ in range(2))
    k[empty] = v[empty] = float("nan")  # rows that nobody has written
    k, v = (x.flatten(0, 1)[table.flatten().argsort()] for x in (k, v))  # page table[s, i] is the i-th of sequence s
    table = table.masked_fill(empty[:, :, 0], 0)
    return {"q": q, "k": k, "v": v, "table": table.int(), "lengths": lengths.int(), "window": window}


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, kv_heads, pages, window, scale, G: tl.constexpr,
    D: tl.constexpr, PAGE: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program: the queries of one key-value head of one sequence."""
    head, sequence = tl.program_id(0), tl.program_id(1)
    g, d = tl.arange(0, BLOCK_G), tl.arange(0, D)
    own, own_mask = ((sequence * kv_heads + head) * G + g)[:, None] * D + d[None, :], (g < G)[:, None]
    q = tl.load(q_ptr + own, mask=own_mask, other=0.0)
    length = tl.load(lengths_ptr + sequence)
    first = tl.maximum(length - window, 0)
    largest, total = tl.full((BLOCK_G,), float("-inf"), tl.float32), tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, D), tl.float32)
    for start in range(first // PAGE * PAGE, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = (rows >= first) & (rows < length)
        four = start // PAGE + tl.arange(0, BLOCK // PAGE)
        page = tl.load(table_ptr + sequence * pages + four, mask=four * PAGE < length, other=0).to(tl.int64)
        place = tl.reshape(page[:, None] * PAGE + tl.arange(0, PAGE)[None, :], (BLOCK,))
        offsets = (place * kv_heads + head)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + offsets, mask=mask[:, None], other=0.0)
        v = tl.load(v_ptr + offsets, mask=mask[:, None], other=0.0)
        scores = tl.where(mask[None, :], tl.dot(q, k.T) * scale, float("-inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        p, shrink, largest = tl.exp(scores - new[:, None]), tl.exp(largest - new), new
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
    tl.store(out_ptr + own, acc / total[:, None], mask=own_mask)


def run(q, k, v, table, lengths, window):
    q, k, v, table, lengths = (x.contiguous() for x in (q, k, v, table, lengths))  # the kernel knows no strides
    out, (batch, heads, d), kv_heads = torch.empty_like(q), q.shape, k.shape[2]
    attention_kernel[(kv_heads, batch)](
        q, k, v, table, lengths, out, kv_heads, table.shape[1], window, d**-0.5, G=heads // kv_heads, D=d, PAGE=PAGE,
        BLOCK_G=16, BLOCK=64,
    )  # fmt: skip
    return out
