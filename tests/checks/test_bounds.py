"""A kernel that reads or writes beside its arrays is invalid, although in the interpreter nothing may come of it."""

import pytest
from samples import one_pair, reason_of, version

from common.engine.runner import run_pairs

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * tl.cast(BLOCK, tl.int64) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, 2 * x, mask=offsets < n)
"""
RUN = """
x = x.contiguous()
y = torch.empty_like(x)
double_kernel[(triton.cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)
return y + w_shift
"""
LOAD, STORE = "x_ptr + offsets, mask=offsets < n", "y_ptr + offsets, 2 * x, mask=offsets < n"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "says"),
    [
        (LOAD, LOAD, "verified", ""),
        (LOAD, "x_ptr + tl.maximum(offsets - 1, -1), mask=offsets <= 0", "invalid", "a kernel reads outside"),
        (STORE, STORE + " + 1", "invalid", "a kernel writes outside of all its arrays"),
        ("tl.store(y_ptr", "tl.atomic_add(y_ptr + n", "invalid", "a kernel writes outside of all its arrays"),
    ],
)
def test_a_kernel_stays_in_its_arrays(old, new, verdict, says, tmp_path):
    assert KERNEL.count(old) == 1
    pair = one_pair(tmp_path, version(RUN, extra=KERNEL.replace(old, new)))
    (row,) = run_pairs([pair], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == verdict and reason_of(row).startswith(says), row
    lines = (tmp_path / "optimized_double.py").read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if new in text)
    assert verdict == "verified" or reason_of(row).endswith(f"(optimized_double.py:{line})"), row


def test_a_kernel_may_be_given_addresses(tmp_path):
    """As a product of groups is: its arrays are not among its arguments."""
    text = KERNEL.replace(
        "x = tl.load(x_ptr", "x_ptr = tl.load(x_ptr).to(tl.pointer_type(tl.float32))\n    x = tl.load(x_ptr"
    )
    run = RUN.replace("](x, y", "](torch.tensor([x.data_ptr()], device=x.device), y")
    (row,) = run_pairs([one_pair(tmp_path, version(run, extra=text))], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == "verified", row


def test_an_integer_that_is_no_address_hides_nothing(tmp_path):
    """As a position on the device: a decoder's kernels read one."""
    text = KERNEL.replace("(x_ptr, y_ptr", "(at_ptr, x_ptr, y_ptr")
    beside = text.replace(STORE, STORE.replace("offsets,", "offsets + 1 + tl.load(at_ptr),"))
    run = RUN.replace("](x, y", "](torch.zeros(1, dtype=torch.int64, device=x.device), x, y")
    for kernel, said in ((text, "verified"), (beside, "a kernel writes outside")):
        pair = one_pair(tmp_path, version(run, extra=kernel))
        (row,) = run_pairs([pair], device="cpu", check_only=True).pairs[0].rows
        assert (row.verdict if said == "verified" else reason_of(row)).startswith(said), row
