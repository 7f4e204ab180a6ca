"""The page of counts: what was counted beside what was measured, nothing of pairs that have changed since."""

import re

import pytest
from samples import one_pair, pair_result, record, rows_of, version

from common.cli import counts
from common.pairs.source import source_hash
from common.record.result import Row
from common.record.store import keep_record
from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Rates
from common.traffic.versions import VersionTraffic
from common.xray.occupancy import MACHINES
from tools import counts_page

SIZES = {"check": {"n": 7}, "count": {"n": 4}, "default": {"n": 8}}
PER_KEY = {"h2d_bytes": 1e5, "fp16_flops": 1e6}
RATES = Rates("NVIDIA H200", memory=1e6, per_key=PER_KEY, launch_s=0.0, issue_s=0.0, source="a pencil")
COST = {"dram_bytes": 1000.0}


def counted(label, distinct_bytes=1000.0, copied=None, **amounts):
    kernel = Kernel("k", 1, 4, read_bytes=1000, read_sectors=32, distinct_bytes=distinct_bytes, **amounts)
    return VersionTraffic(label, Traffic((kernel,), copied or {}), cost=COST)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A chapter of one pair whose versions take 2 and 1 ms; course(*versions) counts these, and course.page() tells."""
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    monkeypatch.setattr("common.record.files.RECORDED", recorded)
    monkeypatch.setattr(
        counts_page, "measured_sheets", lambda problems: [(recorded / "nvidia_h200/hardware.json", None)]
    )
    monkeypatch.setattr(counts_page, "rates_of_sheet", lambda found, folder: RATES)
    pair = one_pair(tmp_path / "ch1", version(sizes=SIZES), version(sizes=SIZES))
    kept = []

    def keep(*versions, size="default", **fields):
        result = pair_result(source_hash=source_hash(pair), **fields)
        keep_record(record(result), recorded)
        kept.append(counts.CountedPair.from_pair(pair, size, list(versions)))
        counts.save(counts.new_counts(kept, MACHINES["sm_90"]), recorded / "counts.json")

    def page(of=pair):
        ((path, text),) = counts_page.pages({"ch1": [of]}).items()
        assert path == recorded / "nvidia_h200/counts.md" and counts_page.paths() == [path]
        return text

    keep.page = page
    return keep


def test_predicted_stands_beside_measured(course):
    course(counted("baseline", 2000.0), counted("optimized", 500.0))
    heading, baseline, optimized, *_ = rows_of(course.page())
    assert heading == list(counts_page.HEADINGS)
    shown = "double|baseline|1|1.00x|1.02x|2.00x||2.00 ms (memory)|2.00 ms|1.00x"
    assert baseline == shown.split("|")
    assert optimized[-3:] == ["500 us (memory)", "1.00 ms", "0.50x"]


def test_how_good_a_pencil_is_is_computed_from_them(course):
    course(counted("baseline", 2000.0), counted("optimized", 250.0))
    text = course.page()
    spread = "0.500, quartiles 0.438, 0.625 and 0.812, from 0.250 to 1.00; 1 within a factor of 2"
    said = f"2 versions, geometric mean of predicted / measured {spread}"
    assert re.findall("^- (.*)$", text, re.MULTILINE) == [f"all: {said}", f"on the GPU's clock: {said}"]
    assert rows_of(text)[-1][:3] == ["double optimized", "0.25x", "memory"]


@pytest.mark.parametrize(
    ("version", "clock", "cause"),
    [
        (counted("optimized", 100.0, max_atomics_per_address=5000), "device", "5,000 atomic operations on one address"),
        (counted("optimized", 400.0, {"h2d_bytes": 40.0}), "wall", "copies and kernels wait for each other"),
        (counted("optimized", 40.0, {"h2d_bytes": 4.0}), "wall", "copies of memory that is not pinned"),
        (counted("optimized", 100.0), "device", "not visible in the counts"),
        (counted("optimized", 100.0, flops={"fp16_flops": 300.0}), "device", "products below the fp16 peak"),
        (counted("optimized", 9000.0), "device", "a cache nearer to the SMs"),
        (VersionTraffic("optimized", Traffic((Kernel("torch.mm", 1, distinct_bytes=100.0),))), "device", "a library's"),
    ],
)
def test_a_reason_is_looked_for_where_the_prediction_is_far_off(version, clock, cause, course):
    course(counted("baseline", 2000.0), version, clock=clock)
    assert rows_of(course.page())[-1][-1].startswith(cause)


def test_what_is_not_counted_says_why_and_what_was_not_measured_has_no_ratio(course):
    course(
        counted("baseline"), VersionTraffic("optimized", reason="Gluon"), rows=[Row("optimized", "baseline", "skipped")]
    )
    _, baseline, optimized, *_ = rows_of(course.page())
    assert baseline[1] == "baseline"
    assert optimized[:3] == ["double", "optimized", "not counted: Gluon"] and optimized[-1] == ""


@pytest.mark.parametrize("size", ["default", "count"])
def test_a_count_of_a_pair_that_has_changed_is_stale(size, course, tmp_path):
    course(counted("baseline"), counted("optimized"), size=size)
    now = version("return x + x + w_shift", sizes=SIZES)
    text = course.page(one_pair(tmp_path / "ch1", now, now))
    assert counts_page.STALE in text and "1.00x" not in text.split("recorded median")[1]
