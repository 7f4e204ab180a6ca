"""Inputs named `cache*`: a call reads and writes them, and what it leaves in them is a part of its answer."""

import pytest
from liars.child import measure_quickly, measured
from samples import one_pair, reason_of, row_of, version

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
