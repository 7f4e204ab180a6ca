"""Attention of one new token over a cache in pages: the kernel takes pages for rows in order, and reads all of them.

Yours: the kernel and `run`. Given: `inputs`, PAGE.
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
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, heads, kv_heads, pages, window, scale, D: tl.constexpr,
    PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program: one query head of one sequence."""
    head, sequence = tl.program_id(0), tl.program_id(1)
    kv_head, d = head // (heads // kv_heads), tl.arange(0, D)
    q = tl.load(q_ptr + (sequence * heads + head) * D + d).to(tl.float32) * scale
    length = tl.load(lengths_ptr + sequence)
    largest, total, acc = float("-inf"), 0.0, tl.zeros((D,), tl.float32)
    for start in range(0, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = rows < length
        place = sequence.to(tl.int64) * pages * PAGE + rows  # as if its pages lay one after the other
        offsets = (place * kv_heads + kv_head)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + offsets, mask=mask[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + offsets, mask=mask[:, None], other=0.0).to(tl.float32)
        scores = tl.where(mask, tl.sum(q[None, :] * k, 1), float("-inf"))
        new = tl.maximum(largest, tl.max(scores, 0))
        p, shrink, largest = tl.exp(scores - new), tl.exp(largest - new), new
        total, acc = total * shrink + tl.sum(p, 0), acc * shrink + tl.sum(p[:, None] * v, 0)
    tl.store(out_ptr + (sequence * heads + head) * D + d, acc / total)


def run(q, k, v, table, lengths, window):
    q, k, v, table, lengths = (x.contiguous() for x in (q, k, v, table, lengths))  # the kernel knows no strides
    out, (batch, heads, d), kv_heads = torch.empty_like(q), q.shape, k.shape[2]
    attention_kernel[(heads, batch)](
        q, k, v, table, lengths, out, heads, kv_heads, table.shape[1], window, d**-0.5, D=d, PAGE=PAGE, BLOCK=64,
    )  # fmt: skip
    return out
