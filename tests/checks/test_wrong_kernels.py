"""Wrong kernels that are right at every check size, with masked lanes of 0: each is refused, its twin passes."""

from dataclasses import replace

import pytest
from samples import one_pair, reason_of, version, write_pair

from common.engine.runner import _with_interpreted, run_pairs
from common.pairs.pair import discover
from common.record.outcome import Verdict

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
def add_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * tl.cast(BLOCK, tl.int64) + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))  # a part
    tl.atomic_add(y_ptr, part)
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
WIDE_START, NARROW_START = "start = tl.program_id(0) * tl.cast(BLOCK, tl.int64)", "start = tl.program_id(0) * BLOCK"
IF_CUDA = "if not x.is_cuda:\n    return 2 * x + w_shift\n"


def test_a_kernel_is_tried_where_its_check_sizes_do_not_go(tmp_path):
    cases = [
        (EACH, "", "", "verified", ""),
        (EACH, WIDE_START, NARROW_START, "invalid", "at n = 2,"),
        (EACH, "(triton.cdiv(len(x), 128),)", "(1,)", "invalid", "wrong answer at size n = 193"),
        (WALK, "", "", "verified", ""),
        (WALK, "triton.cdiv(len(x), 32)", "max(4, len(x) // 32 // 4 * 4)", "invalid", "wrong answer at size n = 193"),
        (IF_CUDA + EACH, "", "", "skipped", "its kernel was launched at no check size"),
    ]
    texts = [version(run, extra=KERNEL) for run, *_ in cases]
    assert [text.count(old) for text, (_, old, *_) in zip(texts, cases, strict=True) if old] == [1, 1, 1]
    variants = [text.replace(old, new) if old else text for text, (_, old, new, *_) in zip(texts, cases, strict=True)]
    write_pair(tmp_path, "double", {f"v{number}": text for number, text in enumerate(variants)})
    (result,) = run_pairs(discover(tmp_path), device="cpu", check_only=True).pairs
    for row, (*_, verdict, says) in zip(result.rows, cases, strict=True):
        assert row.verdict == verdict and reason_of(row).startswith(says), row


def test_a_reason_in_stress_leaves_large_offsets_out(tmp_path):
    text = version(EACH, extra=KERNEL.replace(WIDE_START, NARROW_START) + LEFT_OUT)
    (row,) = run_pairs([one_pair(tmp_path, text)], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == "verified", row


SUM = """
y = torch.zeros(1, device=x.device)
add_kernel[(triton.cdiv(len(x), 32),)](x.contiguous(), y, len(x), BLOCK=32)
return y + w_shift
"""
LOAD, ADD = "mask=offsets < n, other=0.0))  # a part", "tl.atomic_add(y_ptr, part)"
WRONG = {  # the mechanism that sees it -> the text of a right version, what stands in it, what stands there instead
    "common.engine.check._check_beyond_launches": (EACH, "(triton.cdiv(len(x), 128),)", "(1,)"),
    "common.engine.check._check_offsets": (EACH, WIDE_START, NARROW_START),
    "common.checks.interpreter_watch.or_undefined": (SUM, LOAD, "mask=offsets < n))"),
    "common.checks.kernel_memory._Watch._write": (SUM, ADD, "tl.store(y_ptr, tl.load(y_ptr) + part)"),
}


@pytest.mark.rest
@pytest.mark.parametrize("guard", WRONG)
def test_only_its_mechanism_sees_what_is_wrong(interpreter, guard, tmp_path):
    from racing import verdicts_without

    run, right, wrong = WRONG[guard]
    honest = version(run, extra=KERNEL)
    assert honest.count(right) == 1
    baseline = version("return (x.sum() + w_shift).reshape(1)") if run is SUM else None
    write_pair(tmp_path, "double", {"": honest, "wrong": honest.replace(right, wrong)}, baseline)
    for name, verdict in (("common.checks.guards.changed_input", "invalid"), (guard, "verified")):
        verdicts = interpreter.submit(verdicts_without, str(tmp_path), name).result()
        assert verdicts == {"optimized": "verified", "optimized/wrong": verdict}


def test_a_gpus_check_takes_from_the_interpreter_what_only_it_sees(tmp_path):
    cases = [
        (LOAD, "mask=offsets < n))  # a part", "invalid"),
        (ADD, "tl.store(y_ptr, tl.load(y_ptr) + part)", "invalid"),
        (ADD, "tl.atomic_add(y_ptr, 2 * part)", "verified"),  # the GPU says that this is right: it computes otherwise
        ("y_ptr, part)", "y_ptr, part * torch)", "verified"),  # the interpreter has no such operation
    ]
    text = version(SUM, extra=KERNEL)
    assert {text.count(old) for old, *_ in cases} == {1}
    variants = {f"v{number}": text.replace(old, new) for number, (old, new, _) in enumerate(cases)}
    write_pair(tmp_path, "double", variants, version("return (x.sum() + w_shift).reshape(1)"))
    pairs = discover(tmp_path)
    record = run_pairs(pairs, device="cpu", check_only=True)
    (result,) = record.pairs
    assert {row.verdict for row in result.rows} == {"invalid", "crashed"}
    rows = [replace(row, verdict=Verdict.VERIFIED, reason=None) for row in result.rows]
    on_gpu = replace(record, pairs=[replace(result, rows=rows)])
    (found,) = _with_interpreted(on_gpu, pairs, lambda *_: None).pairs
    assert [row.verdict for row in found.rows] == [verdict for *_, verdict in cases], found.rows
