"""Attention of one new token over a window of a cache in pages: the kernel reads the table, and nothing is copied.

Row i of a sequence is row i % PAGE of page table[i // PAGE]. The kernel computes this for 64 rows at a time: one load
brings 64 page numbers, 4 or 5 different ones, and the next brings 64 rows of these pages. Where a page lies does not
matter for the bytes: a row of a head is 2 d bytes in one piece.

A window needs no second kernel: the loop starts at its first row, so no earlier row is touched or masked. The queries
of a group are the rows of one product, so keys and values are read once for all of them, as in
`baseline_decode_attention.py`. With a batch there is a program for each head of each sequence: enough to fill a GPU
without shares of a head.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"batch": 3, "kv_heads": 2, "group": 3, "d": 32, "longest": 100, "window": 70},
    "check/one": {"batch": 1, "kv_heads": 1, "group": 1, "d": 16, "longest": 1, "window": 1},
    "check/all": {"batch": 4, "kv_heads": 1, "group": 16, "d": 64, "longest": 65, "window": 300},
    "check/last": {"batch": 3, "kv_heads": 3, "group": 4, "d": 16, "longest": 47, "window": 1},
    "check/late": {"batch": 2, "kv_heads": 1, "group": 2, "d": 16, "longest": 401, "window": 65},
    "count": {"batch": 2, "kv_heads": 2, "group": 4, "d": 64, "longest": 320, "window": 128},
    "default": {"batch": 32, "kv_heads": 8, "group": 4, "d": 128, "longest": 2048, "window": 1024},
}  # fmt: skip
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


def reference(q, k, v, table, lengths, window):
    out = torch.empty_like(q)
    for i, n in enumerate(lengths.tolist()):
        rows = torch.arange(max(n - window, 0), n, device=q.device)
        pages = table[i, rows // PAGE].long()
        keys, values = (x[pages, rows % PAGE].transpose(0, 1) for x in (k, v))  # [kv_heads, rows, d]
        queries = q[i].view(len(keys), -1, q.shape[2])
        out[i] = (torch.softmax(queries @ keys.mT * q.shape[2] ** -0.5, -1) @ values).flatten(0, 1)
    return out


def cost(q, k, v, table, lengths, window):
    rows = int(lengths.clamp(max=window).sum())  # which the windows hold, for keys and for values
    return {"dram_bytes": 2 * rows * k[0, 0].nbytes + 2 * q.nbytes}


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
    for start in range(first, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = rows < length
        page = tl.load(table_ptr + sequence * pages + rows // PAGE, mask=mask, other=0).to(tl.int64)
        offsets = ((page * PAGE + rows % PAGE) * kv_heads + head)[:, None] * D + d[None, :]
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
