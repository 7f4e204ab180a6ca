"""What is recorded: a file for each device, chapter and class of sizes, with the newest result of each pair."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from samples import because, pair_result, record, refused

import benchmark
from common.pairs.pair import ROOT, class_of, discover
from common.pairs.source import source_hash
from common.record.files import RECORDED, on_one_gpu
from common.record.record_file import date_of, load_record, load_records, save_record, to_json
from common.record.result import Row
from common.record.store import chapter_records, keep_record, recordable_part, recorded_sizes
from common.show import tables

SIZES = ("large/8192", "default", "small/a", "large/fp16", "extra")


def sized(*sizes, **environment):
    return record(*(pair_result(size=size) for size in sizes), **environment)


def names(paths):
    return [f"{path.parent.name}/{path.name}" for path in paths]


def test_every_class_of_sizes_has_a_file_that_is_a_whole_record(tmp_path):
    full, folder = sized(*SIZES), tmp_path / "recorded"
    paths = keep_record(full, folder)
    assert [path for path, _ in chapter_records("ch1", folder=folder)] == [folder / "nvidia_h200/ch1.json"]
    assert chapter_records("ch2", folder=folder) == chapter_records("ch1", folder=tmp_path / "nowhere") == []
    assert names(paths) == [f"nvidia_h200/ch1{part}.json" for part in ("_large", "", "_small", "_extra")]
    found = {path.stem: load_record(path) for path in paths}
    assert [pair.size for pair in found["ch1_large"].pairs] == ["large/8192", "large/fp16"]
    assert [pair.size for pair in found["ch1"].pairs] == ["default"]
    assert all(each.environment == full.environment for each in found.values())
    assert all(each.limits == full.limits for each in found.values())


@pytest.mark.parametrize(
    ("code", "arguments", "kept"),
    [("same", {"n": 64}, ["earlier", "earliest"]), ("other", {"n": 64}, []), ("same", {"n": 4096}, [])],
)
def test_what_was_proven_about_code_and_arguments_is_kept_by_the_next_result(code, arguments, kept, tmp_path):
    def measured(code, arguments, carried, date):
        whole = sized("default", date=date)
        changed = {"source_hash": code, "sizes": {"baseline": arguments}, "carried": carried}
        return replace(whole, pairs=[replace(pair, **changed) for pair in whole.pairs])

    keep_record(measured("same", {"n": 64}, ["earlier", "earliest"], "2026-03-01T00:00:00+00:00"), tmp_path)
    keep_record(measured(code, arguments, [], "2026-05-01T00:00:00+00:00"), tmp_path)
    assert [pair.carried for _, each in chapter_records("ch1", folder=tmp_path) for pair in each.pairs] == [kept]


def test_the_newest_record_comes_first(tmp_path):
    dates = {"A": "2026-03-01T00:00:00+00:00", "B": "2026-05-01T00:00:00+00:00", "C": "2025-12-31T00:00:00+00:00"}
    for name, date in dates.items():
        keep_record(sized("default", "large/a", name=name, date=date), tmp_path)
    for of_class in ("default", "large"):
        found = chapter_records("ch1", of_class, folder=tmp_path)
        assert [each.environment["device"]["name"] for _, each in found] == ["B", "A", "C"]


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


# Runs of some of the pairs

UNTIMED = {"arms": {}, "noise_floor": None, "orders": []}
DAYS = [f"2026-01-0{day}T03:04:05+00:00" for day in range(1, 5)]


def named(date, *pairs, size="default"):
    return record(*(pair_result(name, size=size) for name in pairs), date=date)


def seen(folder, of_class="default"):
    return [(path.name, [pair.name for pair in each.pairs]) for path, each in chapter_records("ch1", of_class, folder)]


def test_a_run_of_some_pairs_is_merged_and_the_newest_of_each_counts(tmp_path):
    keep_record(named(DAYS[0], "a", "b", "c"), tmp_path)
    keep_record(named(DAYS[1], "b", "d"), tmp_path)
    keep_record(named(DAYS[2], "d", size="large/a"), tmp_path)
    assert seen(tmp_path) == [("ch1.json", ["b", "d"]), ("ch1.json", ["a", "c"])]
    assert seen(tmp_path, "large") == [("ch1_large.json", ["d"])]
    runs = load_records(tmp_path / "nvidia_h200/ch1.json")
    assert [[pair.name for pair in run.pairs] for run in runs] == [["a", "c"], ["b", "d"]], "the first b is gone"
    found = load_record(tmp_path / "nvidia_h200/ch1.json")
    assert [pair.name for pair in found.pairs] == ["a", "b", "c", "d"]
    assert tables.origin(found) == "NVIDIA H200, 2026-01-01 and 2026-01-02"


def test_each_result_is_judged_by_the_limits_of_its_own_run(tmp_path):
    """And not by those of the run that is merged with it."""
    for day, name, rate in ((DAYS[0], "a", 4e12), (DAYS[1], "b", 2e12)):
        run = named(day, name)
        keep_record(replace(run, limits={"dram_bytes": {**run.limits["dram_bytes"], "measured": rate}}), tmp_path)
    found = load_record(tmp_path / "nvidia_h200/ch1.json")
    assert [pair.arms["optimized"].of_limit for pair in found.pairs] == [0.5, 1.0]


def test_a_run_without_any_newest_result_goes_and_an_old_one_replaces_nothing(tmp_path):
    keep_record(named(DAYS[0], "a", "b"), tmp_path)
    keep_record(named(DAYS[1], "b"), tmp_path)
    keep_record(named(DAYS[2], "a", "b"), tmp_path)
    (path,) = tmp_path.glob("*/*")
    assert [date_of(run) for run in load_records(path)] == [DAYS[2]]
    before = path.read_bytes()
    keep_record(named(DAYS[1], "a"), tmp_path)
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_costs_itself_alone_and_what_is_new_stands_beside_it(tmp_path):
    (path,) = keep_record(named(DAYS[0], "a"), tmp_path)
    path.write_text(path.read_text().replace('"seeds":[1,2]', '"seeds":[1e400]'))
    before, problems = path.read_bytes(), {}
    (beside,) = keep_record(named(DAYS[1], "a"), tmp_path)
    (again,) = keep_record(named(DAYS[1], "b"), tmp_path)
    assert beside == again != path and path.read_bytes() == before
    found = chapter_records("ch1", folder=tmp_path, problems=problems)
    assert [pair.name for _, run in found for pair in run.pairs] == ["b", "a"]
    assert list(problems) == [path] and problems[path].startswith(f"{path}: not JSON (Number out of range")
    with refused("not JSON", path):
        chapter_records("ch1", folder=tmp_path)


def test_two_runs_that_keep_a_part_at_once_lose_none(tmp_path):
    with ThreadPoolExecutor(8) as runs:
        [*runs.map(lambda name: keep_record(named(DAYS[0], name), tmp_path), "abcdefgh")]
    assert sorted(pair.name for pair in load_record(tmp_path / "nvidia_h200/ch1.json").pairs) == [*"abcdefgh"]


def test_what_was_not_timed_takes_no_figures_place(tmp_path):
    def untimed(date):
        skipped = pair_result("a", rows=[Row("optimized", "baseline", "skipped", because("does not fit"))], **UNTIMED)
        keep_record(record(skipped, date=date), tmp_path)

    keep_record(named(DAYS[0], "a"), tmp_path)
    untimed(DAYS[1])
    untimed(DAYS[2])
    assert [(date_of(run), bool(run.pairs[0].arms)) for _, run in chapter_records("ch1", folder=tmp_path)] == [
        (DAYS[2], False), (DAYS[0], True)
    ]  # fmt: skip
    keep_record(named(DAYS[3], "a"), tmp_path)
    assert [date_of(run) for _, run in chapter_records("ch1", folder=tmp_path)] == [DAYS[3]]


def test_a_gpus_default_is_not_what_a_cpu_takes_for_it():
    (pair,) = discover(ROOT / "ch1", "preallocation")
    found = pair_result("preallocation", size="cpu", sizes=pair.sizes["cpu"], source_hash=source_hash(pair))
    assert [each.name for each in recordable_part(record(found, kind="cpu", name="A CPU"), [pair])[0].pairs] == [
        "preallocation"
    ]
    assert recordable_part(record(found), [pair])[1] == ["not recorded: preallocation default: without default"]


def measured(name, size="default", **fields):
    (pair,) = discover(ROOT / "ch3", name)
    as_it_is = {"chapter": "ch3", "source_hash": source_hash(pair), "sizes": pair.sizes[size]}
    return pair_result(name, size=size, **{**as_it_is, **fields})


def test_whole_is_what_was_measured_at_all_sizes_of_a_class_as_it_is_and_did_not_fail():
    pairs = discover(ROOT / "ch3")
    (softmax,) = (pair for pair in pairs if pair.name == "softmax")
    small = [size for size in softmax.sizes if class_of(size) == "small"]
    failed = {"rows": [Row("optimized", "baseline", "invalid", because("wrong answer"))], "arms": {}}
    found, said = recordable_part(
        record(
            measured("softmax"), *(measured("softmax", size) for size in small), measured("rms_norm", **failed),
            measured("layer_norm", source_hash="another"), measured("dropout", "large/4096x4096"), pair_result("gone"),
        ),
        pairs,
    )  # fmt: skip
    assert {(pair.name, class_of(pair.size)) for pair in found.pairs} == {("softmax", "default"), ("softmax", "small")}
    (dropout,) = (pair for pair in pairs if pair.name == "dropout")
    without = sorted(size for size in dropout.sizes if class_of(size) == "large" and size != "large/4096x4096")
    assert said == [
        "not recorded: rms_norm default: failed default",
        "not recorded: layer_norm default: the pair has changed since",
        f"not recorded: dropout large: without {', '.join(without)}",
        "not recorded: gone default: the course has no such pair",
    ]


@pytest.mark.parametrize(
    ("fields", "environment", "why"),
    [
        ({"rows": [Row("optimized", "baseline", "verified")], **UNTIMED}, {}, "nothing was timed"),
        ({"rows": [Row("optimized", "baseline", "skipped", because("no GPU"))], **UNTIMED}, {}, "nothing was timed"),
        ({}, {"fast": True}, "measured with --fast"),
        ({"sizes": {"rows": 1}}, {}, "the pair has changed since"),
    ],
)
def test_what_was_not_measured_in_full_is_not_recorded_and_removes_nothing(
    fields, environment, why, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    keep_record(record(measured("softmax")))
    before = {path: path.read_bytes() for path in tmp_path.glob("recorded/*/*")}
    save_record(record(measured("softmax", **fields), date=DAYS[3], **environment), tmp_path / "r.json")
    assert benchmark.main(["--show", str(tmp_path / "r.json"), "--record"]) == 1
    assert capsys.readouterr().err == f"benchmark.py: not recorded: softmax default: {why}\n"
    assert {path: path.read_bytes() for path in tmp_path.glob("recorded/*/*")} == before


def test_what_a_stopped_run_left_is_recorded_by_hand(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    save_record(record(measured("softmax"), measured("rms_norm", source_hash="another")), tmp_path / "r.json")
    show = ["--record", "--show"]
    assert benchmark.main([*show, str(tmp_path / "r.json")]) == 0
    path = tmp_path / "recorded/nvidia_h200/ch3.json"
    said = ["not recorded: rms_norm default: the pair has changed since", f"recorded in {path}"]
    assert capsys.readouterr().out.splitlines()[-2:] == said
    save_record(record(pair_result(chapter="mine")), tmp_path / "mine.json")
    for file, status, problem in (("none.json", 2, "cannot be read"), ("mine.json", 1, "the course has no such pair")):
        assert benchmark.main([*show, str(tmp_path / file)]) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert problem in line


# What is committed

COMMITTED = sorted(RECORDED.glob("*/ch*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_record_is_valid_and_of_its_chapter_and_class(path, committed):
    chapter, _, of_class = path.stem.partition("_")
    sizes = {pair.name: pair.sizes for pair in discover(ROOT / chapter)}
    runs = load_records(path)
    results = [pair for run in runs for pair in run.pairs]
    assert [(each.name, each.size) for each in results if each.size not in sizes.get(each.name, ())] == []
    assert {(pair.chapter, class_of(pair.size)) for pair in results} == {(chapter, of_class or "default")}
    assert [*map(date_of, runs)] == sorted(map(date_of, runs))
    assert path.read_text() == to_json(runs), "what is read is what is written"


def test_runs_are_kept_by_date_also_if_one_began_before_another_was_kept(tmp_path):
    keep_record(record(pair_result(name="a"), date="2026-02-02T03:04:05+00:00"), tmp_path)
    (path,) = keep_record(record(pair_result(name="b"), date="2026-01-02T03:04:05+00:00"), tmp_path)
    assert [run.pairs[0].name for run in load_records(path)] == ["b", "a"]


def test_of_two_gpus_the_one_with_more_classes_recorded_counts_of_equal_ones_the_newest(tmp_path):
    def kept():
        return [path.parent.name for path, _ in on_one_gpu(chapter_records("ch1", folder=tmp_path))]

    keep_record(record(pair_result(), name="A"), tmp_path)
    keep_record(record(pair_result(), name="B", date="2026-02-02T03:04:05+00:00"), tmp_path)
    keep_record(record(pair_result(), kind="cpu", name="C", date="2026-03-02T03:04:05+00:00"), tmp_path)
    assert kept() == ["b"]
    keep_record(record(pair_result(size="large"), name="A"), tmp_path)
    assert kept() == ["a"]
