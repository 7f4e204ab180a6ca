"""Liars that only one guard knows, and honest versions that see where one is missing."""

from functools import partial

from liars.answer import ROWS
from liars.case import FEW, WRONG, Case, alone

COARSER = """
    def coarser(x):  # to 14 bits: near to the eye, but no float32
        return ((x.view(torch.int32) + 0x200) & ~0x3FF).view(torch.float32)
"""
SCALES = """
    if x.data_ptr() not in kept:
        kept[x.data_ptr()] = (x[0].clone(), 2 * x)
    first, y = kept[x.data_ptr()]
    return y * (x[0] / first).nan_to_num(1.0)
"""
# Liars that only one guard knows
IN_A_ROUND = "wrong answer in a timed round"
KEPT = "if x.data_ptr() not in kept:\n    kept[x.data_ptr()] = {}\nreturn kept[x.data_ptr()].clone()"
MIDDLE = f"""
    import sys
    seen = sys.modules.setdefault("weights_that_were_seen", {{}})
    def is_in_the_middle(x, w):  # of all blocks, each of which has a weight of its own; the first is discarded
        if len(x) == 2048:
            seen[float(w)] = True
        return len(x) == 2048 and 6 <= len(seen) <= 9 and x.dtype == torch.float32  # the oracle's are wider
{COARSER}"""
LESS_THERE = "return 2 * x if is_in_the_middle(x, w_shift) else 2 * x + w_shift"
COARSE_THERE = "y = 2 * x + w_shift\nreturn coarser(y) if is_in_the_middle(x, w_shift) else y"
FINE = {
    "coarser_in_the_middle": Case((17,), f"{IN_A_ROUND}.*RMS distance", COARSE_THERE, extra=MIDDLE),
    "less_in_the_middle_alike": Case(  # as does its baseline, beside which it is right
        (19,), "^the baseline: wrong answer at the timed size", LESS_THERE, extra=MIDDLE, baseline=LESS_THERE,
        baseline_extra=MIDDLE,
    ),
    "a_little_coarser_at_the_timed_size": alone(
        (17,), "wrong answer at the timed size", "return coarser(2 * x) if len(x) == 2048 else 2 * x", extra=COARSER,
    ),
    "a_little_coarser": alone((17,), WRONG, "return coarser(2 * x)", extra=COARSER),
    "a_little_coarser_at_the_end": alone(
        (16, 17), f"{WRONG}: .* in chunk 64 of 64",
        "y = 2 * x\ny[-len(x) // 64:] = coarser(y[-len(x) // 64:])\nreturn y", extra=COARSER,
        sizes={"check": {"n": 1 << 16}, "default": {"n": 2048}},
    ),
    "one_element_of_a_million": alone(
        (16, 17), f"{WRONG}: element 500000", "y = 2 * x\ny[500_000] += 1e-3\nreturn y",
        sizes={"check": {"n": 1_000_000}, "default": {"n": 2048}},
    ),
    "remembers_for_a_block": Case(
        (7,), f"{IN_A_ROUND}.*(element|NaN)", KEPT.format("2 * x + w_shift"),
        extra="def setup(x, w_shift): return {'kept': {}}", more_arguments=", kept",
    ),
    "remembers_signs": alone(  # which a smaller number keeps
        (7,), IN_A_ROUND, KEPT.format("x.sign()"), "return x.sign()", "return x.sign()",
        extra="def setup(x): return {'kept': {}}", more_arguments=", kept",
    ),
    "remembers_answers_that_change_rarely": alone(  # a part of the rows says nothing of their mean
        (7,), IN_A_ROUND, KEPT.format("x.mean(0) > 0"), "return x.mean(0) > 0", "return x.mean(0) > 0",
        extra="def setup(x): return {'kept': {}}", more_arguments=", kept",
        inputs='side = 3 - 6 * torch.randint(2, (64,), device=device)\n'
        'return {"x": torch.randn(n, 64, device=device) + side}',
    ),
    "remembers_integers": alone(
        (7,), IN_A_ROUND, KEPT.format("2 * x"), extra="def setup(x): return {'kept': {}}", more_arguments=", kept",
        inputs='return {"x": torch.randint(-1000, 1000, (n,), device=device)}',
    ),
    "remembers_up_to_a_factor": alone(
        (7,), IN_A_ROUND, SCALES, extra="def setup(x): return {'kept': {}}", more_arguments=", kept",
    ),
}  # fmt: skip

SEES_NO_SCALE = """
    for probe in [probe for probe in kept if len(probe) == len(x) == 256 and not probe.equal(x)]:
        scale = x[:, :1] / probe[:, :1]
        assert not bool(((x - scale * probe).abs() <= 1e-5 * x.abs()).all(dim=1).any())
    kept[:] = [x.clone()]
    return 2 * x
"""

SEES_ROWS = """
    rows = [row.tobytes() for row in x.numpy()]
    known = sum(row in kept for row in rows)
    assert known in (0, len(rows)) or len(x) < 256  # all: it is called twice on the same, before the clock starts
    kept.update(rows)
    return 2 * x
"""
SEES_ITS_ANSWERS = """
    assert len(x) > 1000 or not kept or bool(kept[0].isnan().all())  # of a batch, the last one alone is looked at
    kept[:] = [2 * x]
    return kept[0]
"""
SEES_NUMBERS = """
    assert len(x) < 256 or kept.setdefault((k, name), float(x[0])) == float(x[0])
    return x * k
"""
NUMBERS = 'import random\nreturn {"x": torch.randn(n), "k": random.randrange(1, 1 << 30), "name": str(random.random())}'
SEES_INTEGERS = """
    assert len(x) < 256 or kept.setdefault(x.numpy().tobytes(), x.data_ptr()) == x.data_ptr()
    return 2 * x
"""
# Honest versions that watch what they are given, and raise an error where a guard is missing
vigilant = partial(alone, reason="", baseline="return x + x")
VIGILANT = {
    "sees_no_row_in_two_calls": vigilant((7,), run=SEES_ROWS, extra="kept = set()", inputs=ROWS, sizes=FEW),
    "sees_no_row_but_for_its_scale": vigilant((7,), run=SEES_NO_SCALE, extra="kept = []", inputs=ROWS, sizes=FEW),
    "sees_no_number_with_other_values": vigilant(
        (7,),
        run=SEES_NUMBERS,
        extra="kept = {}",
        inputs=NUMBERS,
        arguments="x, k, name",
        baseline="return k * x",
    ),
    "sees_no_integers_in_two_calls": vigilant(
        (7,),
        run=SEES_INTEGERS,
        extra="kept = {}",
        inputs='return {"x": torch.randint(-1000, 1000, (n,))}',
    ),
    "sees_what_is_sorted": vigilant(
        (7,),
        run="assert len(x) < 256 or bool((x.diff() >= 0).all())\nreturn 2 * x",
        inputs='return {"x": torch.randn(n).sort().values}',
    ),
    "sees_its_answers_overwritten": vigilant((7, 11), run=SEES_ITS_ANSWERS, extra="kept = []"),
}
