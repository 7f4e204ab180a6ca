"""Inputs named `cache*`: a call reads and writes them, and what it leaves in them is a part of its answer."""

import pytest
from liars.child import measure_quickly, measured
from samples import one_pair, reason_of, row_of, version, write_pair

from common.engine.runner import run_pairs
from common.pairs.pair import discover

INPUTS = """
    return {"cache_k": torch.randn(9, n, device=device), "x": torch.randn(n, device=device),
            "position": torch.randint(1, 9, (1,), device=device)}
"""
WRITES = "cache_k[position] = x\n"
READS = "return (torch.arange(9, device=x.device)[:, None] <= position).to(x.dtype).mul(cache_k).sum(0)"
SIZES = {"check": {"n": 127}, "check/one": {"n": 1}, "default": {"n": 128}, "cpu": {"n": 257}}
FORM = {"arguments": "cache_k, x, position", "inputs": INPUTS, "sizes": SIZES}
KEPT = {"arguments": "cache_k, x, position, buffer", "inputs": INPUTS, "sizes": SIZES}
SETUP = "def setup(cache_k, x, position):\n    return {'buffer': %s}"
CASES = {
    "writes its row in another way": (version(f"cache_k.index_copy_(0, position, x[None])\n{READS}", **FORM), ""),
    "writes where its setup saw the cache": (
        version(f"buffer[position] = x\n{READS.replace('cache_k', 'buffer')}", **KEPT, extra=SETUP % "cache_k"), ""),
    "leaves its row out": (version(READS.replace("cache_k", "cache_k.index_copy(0, position, x[None])"), **FORM),
                           "cache_k: element"),
    "changes another row": (version(f"{WRITES}y = {READS[7:]}\ncache_k[0] *= 2\nreturn y", **FORM), "cache_k: "),
    "answers with what its setup saw": (
        version(f"{WRITES}buffer[position] = x\n{READS.replace('cache_k', 'buffer')}", **KEPT,
                extra=SETUP % "cache_k.clone()"), "answer: element"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_cache_is_read_and_written(case, machine, tmp_path, monkeypatch):
    text, said = CASES[case]
    pair = one_pair(tmp_path, text, version(WRITES + READS, **FORM))
    row = row_of(measured([pair], monkeypatch, measure_quickly, check_only=bool(said)), "double")
    assert (row.verdict == "invalid") == bool(said), reason_of(row)
    assert said in reason_of(row)
    assert said or row.ratio, row


COUNT = 'return {"state_n": torch.randint(1000, (n,), device=device), "x": torch.rand(n, device=device) + 0.5}'
UP = "state_n += (4 * x).round().long()"
TWICE = f"{UP}\n{UP}\nreturn 2 * x"


def test_a_second_step_is_no_rounding_of_the_first(machine, tmp_path):
    """Integers beside a rounding are compared with answers to inputs a rounding away: of states as they were drawn."""
    form = {"arguments": "state_n, x", "inputs": COUNT, "sizes": SIZES}
    wrong = {"first": f"{UP}\nreturn 3 * x", "twice": TWICE}  # because of the first those answers are computed
    variants = {name: version(text, **form) for name, text in wrong.items()}
    write_pair(tmp_path, "count", variants, version(f"{UP}\nreturn 2 * x", **form))
    first, twice = run_pairs(discover(tmp_path), check_only=True).pairs[0].rows
    assert (first.verdict, twice.verdict) == ("invalid", "invalid")
    assert reason_of(twice).startswith("wrong answer at size check: state_n: "), (
        "not only on a draw where `first` is out"
    )
