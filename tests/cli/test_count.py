"""benchmark.py --count: versions side by side, a file, and an exit status that tells whose fault it is."""

import json
from types import SimpleNamespace

import pytest
from samples import rows_of, version, write_pair

import benchmark
from common.cli import counts
from common.pairs.pair import discover
from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Rates
from common.traffic.versions import VersionTraffic
from tools import count_chapters
from tools.__main__ import main

SIZES = {"check": {"n": 7}, "default": {"n": 64}, "large/a": {"n": 128}, "large/b": {"n": 256}}
COST = {"dram_bytes": 64.0}
KERNEL = Kernel("double_kernel", launches=1, programs=2, read_bytes=64, read_sectors=2, distinct_bytes=64, lanes=16)
FOUND = {
    "baseline": VersionTraffic("baseline", Traffic((KERNEL, KERNEL)), cost=COST),
    "optimized": VersionTraffic("optimized", Traffic((KERNEL,)), cost=COST),
}
RATES = Rates("NVIDIA H200", memory=64.0, per_key={}, launch_s=1.0, issue_s=1.0, source="a pencil")
NEITHER = VersionTraffic("optimized", reason="inline assembly does not run in Triton's interpreter")


@pytest.fixture
def pairs(tmp_path):
    write_pair(tmp_path / "pairs", "double", version(sizes=SIZES), version(sizes=SIZES))
    counted = {**SIZES, "count": {"n": 16}}
    write_pair(tmp_path / "pairs", "triple", version(sizes=counted), version(sizes=counted))
    return tmp_path / "pairs"


@pytest.fixture
def asked(monkeypatch):
    """`asked.of`: what was counted, as (pair, size, architecture); `asked.found`: what comes out, by version."""
    asked = SimpleNamespace(of=[], found=dict(FOUND))

    def count_pair(pair, size, machine, on_version, models_l2):
        asked.of.append((pair.name, size, machine.architecture))
        on_version("baseline")
        return list(asked.found.values())

    monkeypatch.setattr(counts, "count_pair", count_pair)
    monkeypatch.setattr(counts, "rates_for", lambda machine: RATES)
    return asked


def call(*argv):
    return benchmark.main([str(argument) for argument in argv])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--count *", [("double", "default", "sm_90"), ("triple", "count", "sm_90")]),
        ("--count double --size check --arch sm_80", [("double", "check", "sm_80")]),
        ("--count double --size large", [("double", "large/a", "sm_90"), ("double", "large/b", "sm_90")]),
        ("--count double --size large/b,default", [("double", "default", "sm_90"), ("double", "large/b", "sm_90")]),
        ("--count triple --size default", [("triple", "default", "sm_90")]),
    ],
)
def test_what_is_asked_for_is_counted(options, expected, pairs, asked):
    assert call("--path", pairs, *options.split()) == 0
    assert asked.of == expected


def test_versions_stand_side_by_side_with_the_time_predicted(pairs, asked, capsys):
    assert call("--path", pairs, "--count", "double") == 0
    out, err = capsys.readouterr()
    assert err == "[1] double default\n"
    lines = [line.split() for line in out.splitlines()]
    heading, baseline, optimized = [line for line in lines if line and line[0] in ("version", *FOUND)]
    assert heading[:3] == ["version", "launches", "requested"] and " predicted, NVIDIA H200 " in out
    assert (baseline[:3], optimized[:3]) == (["baseline", "2", "2.00x"], ["optimized", "1", "1.00x"])
    assert baseline[5:8] == ["4.00", "s", "(memory)"] and optimized[5:8] == ["2.00", "s", "(memory)"]
    assert out.endswith("\npredicted: a pencil\n")


@pytest.mark.parametrize(
    ("other", "status"), [(NEITHER, 0), (VersionTraffic("optimized", reason="ValueError: no", failed=True), 1)]
)
def test_a_version_that_cannot_be_counted_says_why_and_fails_only_by_its_own_fault(other, status, pairs, asked, capsys):
    asked.found["optimized"] = other
    assert call("--path", pairs, "--count", "double") == status
    assert f"optimized: not counted: {other.reason}\n" in capsys.readouterr().out


def test_ctrl_c_ends_a_count_with_status_130(pairs, asked, monkeypatch, capsys):
    """That nobody is left then: engine/test_faults.py."""

    def stops(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(counts, "count_pair", stops)
    assert call("--path", pairs, "--count", "*") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_json_and_markdown_hold_the_same(pairs, asked, tmp_path):
    asked.found["optimized"] = NEITHER
    kept, page = tmp_path / "c.json", tmp_path / "c.md"
    assert call("--path", pairs, "--count", "double", "--json", kept, "--markdown", page) == 0
    data = json.loads(kept.read_text())
    assert data["schema"] == counts.SCHEMA and data["environment"]["architecture"] == "sm_90"
    assert {"date", "versions"} < data["environment"].keys()
    (pair,) = counts.FORMAT.load(kept).pairs
    assert pair.versions == [FOUND["baseline"], NEITHER]
    assert pair.is_current(discover(pairs, "double")[0])
    heading, row = rows_of(page.read_text())
    assert heading[0] == "version" and row[:3] == ["baseline", "2", "2.00x"]


@pytest.mark.rest
def test_versions_are_counted_for_what_they_do(tmp_path, capsys):
    twice = version(
        "y = 2 * x\nreturn y + w_shift", extra="def cost(x, w_shift):\n    return {'dram_bytes': 2 * x.nbytes}"
    )
    write_pair(tmp_path / "own", "double", {"": twice, "bad": version("raise ValueError('no such thing')")}, twice)
    kept = tmp_path / "c.json"
    assert call("--path", tmp_path / "own", "--count", "*", "--size", "default", "--json", kept) == 1
    assert "bad: not counted: ValueError: no such thing (optimized_double_bad.py:" in capsys.readouterr().out
    (pair,) = counts.FORMAT.load(kept).pairs
    baseline = pair.versions[0]
    assert (baseline.traffic.launches, baseline.traffic.requested_bytes) == (2, 4 * 4096 * 4 + 4)
    assert baseline.unit == 2 * 4096 * 4
    assert [version.failed for version in pair.versions] == [False, False, True]


# What is kept


def test_what_is_missing_or_stale_is_counted_and_the_rest_is_kept(pairs, asked, monkeypatch, tmp_path):
    monkeypatch.setattr(count_chapters, "chapters", lambda: {1: pairs})
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)

    def counted_now():
        asked.of.clear()
        assert main(["count_chapters"]) == 0
        return [(name, size) for name, size, _ in asked.of]

    assert counted_now() == [("double", "default"), ("triple", "default"), ("triple", "count")]
    assert counted_now() == []
    write_pair(pairs, "triple", version("return x + x + w_shift"), version(sizes={**SIZES, "count": {"n": 17}}))
    assert counted_now() == [("triple", "default"), ("triple", "count")]
    assert [(each.name, each.size) for each in counts.load_counts()] == [
        ("double", "default"), ("triple", "default"), ("triple", "count")
    ]  # fmt: skip
    write_pair(pairs, "double", version(), version(sizes=SIZES | {"default": {"n": 65}}))
    assert counted_now() == [("double", "default")]
    (pairs / "baseline_double.py").unlink()
    (pairs / "optimized_double.py").unlink()
    assert counted_now() == []
    assert {each.name for each in counts.load_counts()} == {"triple"}
