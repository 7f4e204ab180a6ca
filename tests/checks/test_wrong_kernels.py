"""Wrong kernels that are right at every check size, with masked lanes of 0: each is refused, its twin passes."""

import pytest
from samples import one_pair, reason_of, version

from common.engine.runner import run_pairs

pytest.importorskip("triton")
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * tl.cast(BLOCK, tl.int64)
    offsets = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, 2 * x, mask=offsets < n)

@triton.jit
def walk_kernel(x_ptr, y_ptr, n, blocks, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        offsets = tl.cast(block, tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        tl.store(y_ptr + offsets, 2 * x, mask=offsets < n)

@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(x_ptr + start + offsets, mask=start + offsets < n, other=0.0))
    tl.store(y_ptr, total)
"""
EACH = """
x = x.contiguous()
y = torch.empty_like(x)
double_kernel[(triton.cdiv(len(x), 128),)](x, y, len(x), BLOCK=128)
return y + w_shift
"""
WALK = """
x = x.contiguous()
y = torch.empty_like(x)
blocks = triton.cdiv(len(x), 32)
walk_kernel[(4,)](x, y, len(x), blocks, BLOCK=32)
return y + w_shift
"""
LEFT_OUT = 'STRESS = {"offsets beyond 32 bits": "a vector has at most 2^31 elements"}\n'
IF_CUDA = "if not x.is_cuda:\n    return 2 * x + w_shift\n"


@pytest.mark.parametrize(
    ("run", "old", "new", "verdict", "says"),
    [
        (EACH, "", "", "verified", ""),
        (EACH, "tl.cast(BLOCK, tl.int64)", "BLOCK", "invalid", "at n = 2,"),
        (EACH, "(triton.cdiv(len(x), 128),)", "(1,)", "invalid", "wrong answer at size n = 193"),
        (WALK, "", "", "verified", ""),
        (WALK, "triton.cdiv(len(x), 32)", "max(4, len(x) // 32 // 4 * 4)", "invalid", "wrong answer at size n = 193"),
        (IF_CUDA + EACH, "", "", "skipped", "its kernel was launched at no check size"),
    ],
)
def test_a_kernel_is_tried_where_its_check_sizes_do_not_go(run, old, new, verdict, says, tmp_path):
    text = version(run, extra=KERNEL)
    assert not old or text.count(old) == 1
    pair = one_pair(tmp_path, text.replace(old, new) if old else text)
    (row,) = run_pairs([pair], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == verdict and reason_of(row).startswith(says), row


def test_a_reason_in_stress_leaves_large_offsets_out(tmp_path):
    text = version(EACH, extra=KERNEL.replace("tl.cast(BLOCK, tl.int64)", "BLOCK") + LEFT_OUT)
    (row,) = run_pairs([one_pair(tmp_path, text)], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == "verified", row


@pytest.mark.parametrize(("other", "verdict"), [(", other=0.0", "verified"), ("", "invalid")])
def test_a_masked_lane_has_no_value_of_its_own(other, verdict, tmp_path):
    baseline = version("return (x.sum() + w_shift).reshape(1)")
    run = "y = torch.empty(1)\nsum_kernel[(1,)](x.contiguous(), y, len(x), BLOCK=32)\nreturn y + w_shift"
    load = "mask=start + offsets < n, other=0.0"
    assert load in KERNEL
    text = version(run, extra=KERNEL.replace(load, load.replace(", other=0.0", other)))
    (row,) = run_pairs([one_pair(tmp_path, text, baseline)], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == verdict, row
