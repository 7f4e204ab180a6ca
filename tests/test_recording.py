"""What is recorded: a file for each device, chapter and class of sizes, each of them the whole record of one run."""

from dataclasses import replace

import pytest
from samples import pair_result, record

from common import recording
from common.pair import ROOT, discover
from common.recording import class_of, keep_record, recorded, recorded_classes, recorded_sizes
from common.result import load_record

SIZES = ("large/8192", "default", "small/a", "large/fp16", "extra")


def sized(*sizes, **environment):
    return record(*(pair_result(size=size) for size in sizes), **environment)


def names(paths):
    return [f"{path.parent.name}/{path.name}" for path in paths]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("default", "default"), ("cpu", "default"), ("large", "large"), ("large/4096x65536/fp16", "large")],
)
def test_the_class_of_a_size_is_its_first_part(size, expected):
    assert class_of(size) == expected


def test_a_record_is_kept_under_its_device_and_chapter(tmp_path):
    folder = tmp_path / "recorded"
    (path,) = keep_record(sized("default"), folder)
    assert path == folder / "nvidia_h200" / "ch1.json"
    assert [found for found, _ in recorded("ch1", folder=folder)] == [path]
    assert recorded("ch2", folder=folder) == []
    assert recorded("ch1", folder=tmp_path / "nowhere") == []


def test_every_class_of_sizes_has_a_file_that_is_a_whole_record(tmp_path):
    full = sized(*SIZES)
    paths = keep_record(full, tmp_path)
    assert names(paths) == [f"nvidia_h200/ch1{part}.json" for part in ("_large", "", "_small", "_extra")]
    found = {path.stem: load_record(path) for path in paths}
    assert [pair.size for pair in found["ch1_large"].pairs] == ["large/8192", "large/fp16"]
    assert [pair.size for pair in found["ch1"].pairs] == ["default"]
    assert all(each.environment == full.environment for each in found.values())
    assert all(each.limits == full.limits for each in found.values())


def test_what_a_cpu_takes_for_the_default_is_recorded_with_it(tmp_path):
    (path,) = keep_record(sized("cpu", "default", kind="cpu", name="A CPU"), tmp_path)
    assert [pair.size for pair in load_record(path).pairs] == ["cpu", "default"]


def test_recording_a_class_leaves_the_others_as_they_were(tmp_path):
    keep_record(sized(*SIZES), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*/*.json")}
    keep_record(sized("large/8192", date="2026-09-09T00:00:00+00:00"), tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.glob("*/*.json")}
    assert [name for name in before if after[name] != before[name]] == ["ch1_large.json"]
    assert list(after) == list(before)


def test_the_newest_record_comes_first(tmp_path):
    dates = {"A": "2026-03-01T00:00:00+00:00", "B": "2026-05-01T00:00:00+00:00", "C": "2025-12-31T00:00:00+00:00"}
    for name, date in dates.items():
        keep_record(sized("default", "large/a", name=name, date=date), tmp_path)
    for of_class in ("default", "large"):
        found = recorded("ch1", of_class, folder=tmp_path)
        assert [each.environment["device"]["name"] for _, each in found] == ["B", "A", "C"]


def test_the_classes_come_in_the_order_of_their_sizes(tmp_path):
    keep_record(sized("batch/x", "other", *SIZES), tmp_path)
    keep_record(replace(sized(), pairs=[pair_result(size="large", chapter="ch11")]), tmp_path)
    assert recorded_classes("ch1", tmp_path) == ["default", "small", "large", "batch", "extra", "other"]
    assert recorded_classes("ch11", tmp_path) == ["large"]
    assert recorded_classes("ch2", tmp_path) == []


def test_all_sizes_are_those_of_the_gpu_that_was_recorded_last(tmp_path):
    assert recorded_sizes("ch1", tmp_path) == []
    keep_record(sized("default", "large/a", kind="cpu", name="A CPU", date="2026-12-31T00:00:00+00:00"), tmp_path)
    assert recorded_sizes("ch1", tmp_path) == []
    keep_record(sized("large/a", "default", name="Old", date="2026-01-01T00:00:00+00:00"), tmp_path)
    keep_record(sized("batch/a", "small/a", name="New", date="2026-01-02T00:00:00+00:00"), tmp_path)
    keep_record(sized("default", name="New", date="2026-01-03T00:00:00+00:00"), tmp_path)
    found = recorded_sizes("ch1", tmp_path)
    assert names(path for path, _ in found) == ["new/ch1.json", "new/ch1_small.json", "new/ch1_batch.json"]
    assert [each.environment["date"][:10] for _, each in found] == ["2026-01-03", "2026-01-02", "2026-01-02"]


# What is committed

COMMITTED = sorted(recording.FOLDER.glob("*/ch*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_record_is_valid_and_of_its_chapter_and_class(path):
    chapter, _, of_class = path.stem.partition("_")
    pairs = load_record(path).pairs
    assert {pair.name for pair in pairs} <= {pair.name for pair in discover(ROOT / chapter)}
    assert {(pair.chapter, class_of(pair.size)) for pair in pairs} == {(chapter, of_class or "default")}
