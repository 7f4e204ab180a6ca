"""What is stale or missing, in its order; a budget, a stop and a second start; what is kept, and where."""

import json
import math
from dataclasses import asdict, replace
from unittest.mock import Mock

import pytest
from samples import because, pair_result, version, write_pair
from samples import record as record_of

from common.engine import runner
from common.isolation import worker
from common.learn.gate import NOT_YET
from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.pairs.user_error import UserError
from common.record.record_file import load_record
from common.record.result import Row
from tools import record, solutions
from tools.__main__ import main
from tools.record import Part

CPU = {"kind": "cpu", "name": "A CPU", "capability": None, "gpus": 0, "cores": 2, "threads": 1}
SIZES = {"check": {"n": 127}, "default": {"n": 4096}, "large/a": {"n": 8192}, "large/b": {"n": 8193}}
UNTIMED = {"arms": {}, "noise_floor": None, "orders": []}
WHOLE = ["hardware", "ch1 a default", "ch1 b default", "calibration"]
WHOLE += ["ch1 a large/a and 1 more", "ch1 b large/a and 1 more"]


def step(what, do=lambda: "", **part):
    return record.Step(what, Part(**{"sizes": ["default"], "is_stale": False, **part}), do)


class Clock:
    """Time passes only in `work`."""

    def __init__(self):
        self.now, self.done = 0.0, []

    def __call__(self):
        return self.now

    def work(self, what, takes_s, **part):
        def do():
            self.now += takes_s
            self.done.append(what)
            return ""

        return step(what, do, **part)


def test_no_step_begins_that_would_end_after_the_budget_and_a_shorter_one_still_does():
    clock = Clock()
    steps = [
        clock.work("a", 30, took_s=30.0), clock.work("b", 60, took_s=60.0), clock.work("c", 5, took_s=5.0),
        clock.work("d", 70, took_s=70.0),
    ]  # fmt: skip
    left = [*record.carry_out(steps, 100, clock)]
    assert clock.done == ["a", "b", "c"] and left == ["d (missing, about 70 s)"]
    clock.done.clear()
    assert [*record.carry_out(steps, math.inf, clock)] == [] and clock.done == ["a", "b", "c", "d"]


def test_a_stop_leaves_all_that_was_not_done_and_the_step_that_it_stopped():
    clock, stopped = Clock(), Mock(side_effect=KeyboardInterrupt)
    lines = record.carry_out([clock.work("a", 1), step("b", stopped, is_stale=True), step("c")], 9, clock)
    left = [next(lines), next(lines)]
    with pytest.raises(KeyboardInterrupt):
        next(lines)
    assert clock.done == ["a"] and left == ["b (stale, about 1 s)", "c (missing, about 1 s)"]


def test_a_step_that_fails_is_left_with_its_reason_and_the_others_go_on():
    clock, fails = Clock(), Mock(side_effect=UserError("no such device"))
    dies = Mock(side_effect=worker.ChildFailed("no progress for 120 s"))
    steps = [step("a", fails), step("b", dies), step("c", lambda: "default: optimized invalid: wrong")]
    left = [*record.carry_out([*steps, clock.work("d", 1)], 9, clock)]
    assert left == ["a: no such device", "b: no progress for 120 s", "c: default: optimized invalid: wrong"]
    assert clock.done == ["d"]


@pytest.fixture(autouse=True)
def recorded(tmp_path, monkeypatch):
    """The folder of records."""
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    return tmp_path / "recorded"


# A chapter of two pairs, a machine that measures at once


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    folder = tmp_path / "ch1"
    for name in "ab":
        write_pair(folder, name, version(), version(sizes=SIZES))
    monkeypatch.setattr(record, "chapters", lambda: {1: folder})
    monkeypatch.setattr(record, "exercises", list)
    monkeypatch.setattr(record, "survey_apart", lambda device, with_limits: (CPU, {}))
    return folder


def measured(pair, size, **fields):
    as_it_is = {"chapter": "ch1", "source_hash": source_hash(pair), "sizes": pair.sizes[size]}
    return pair_result(pair.name, size=size, **{**as_it_is, "spent_s": {"total": 50.0}, **fields})


def on_cpu(*results, **environment):
    return record_of(*results, kind="cpu", name="A CPU", **environment)


@pytest.fixture
def machine(monkeypatch):
    """What was asked of it; `answers`: (pair, size) -> fields of the result, or an exception that is raised."""
    asked, answers = [], {}

    def run_pairs(pairs, size, device, **callbacks):
        asked.append((pairs[0].name, size))
        results, interrupted = [], False
        for name in size.split(","):
            fields = answers.get((pairs[0].name, name), {})
            interrupted = fields is KeyboardInterrupt
            if interrupted:
                break
            results.append(measured(pairs[0], name, **fields))
        return on_cpu(*results, date=f"2026-01-02T03:04:{len(asked):02}+00:00", interrupted=interrupted)

    monkeypatch.setattr(runner, "run_pairs", run_pairs)
    monkeypatch.setattr(record, "sheet_parts", lambda *where: [])
    monkeypatch.setattr(record, "calibration_parts", lambda *where: [])
    return asked, answers


def planned(only_default=False):
    return [each.what for each in record.plan("cpu", CPU, only_default, {})]


def files(folder):
    return {path.name: [(each.name, each.size) for each in load_record(path).pairs] for path in folder.glob("*/*.json")}


def test_on_a_new_machine_all_is_missing_the_default_sizes_first(chapter):
    assert planned() == WHOLE
    assert planned(only_default=True) == WHOLE[:4]


def test_what_is_stale_comes_first_and_what_is_recorded_not_at_all(chapter):
    a, b = discover(chapter)
    old = measured(b, "large/b", source_hash="of another code")
    new = [measured(a, "default"), measured(b, "default"), measured(a, "large/b"), measured(b, "large/a")]
    record.store.keep_record(on_cpu(*new, old))
    steps = record.plan("cpu", CPU, False, {})
    lines = [each.line([]) for each in steps]
    assert lines[0] == "ch1 b large/b (stale, about 50 s)"
    assert [line.split(" (")[0] for line in lines[1:]] == ["hardware", "calibration", "ch1 a large/a"]


def test_a_run_that_was_stopped_goes_on_where_it_was(chapter, machine, recorded, capsys):
    asked, answers = machine
    answers["b", "large/a"] = KeyboardInterrupt
    assert main(["record"]) == 130
    assert asked == [("a", "default"), ("b", "default"), ("a", "large/a,large/b"), ("b", "large/a,large/b")]
    assert capsys.readouterr().out.endswith("left: ch1 b large/a and 1 more (missing)\n")
    answers.clear(), asked.clear()
    assert main(["record"]) == 0
    assert asked == [("b", "large/a,large/b")]
    assert capsys.readouterr().out.endswith("nothing is left\n")
    asked.clear()
    assert main(["record", "--dry-run"]) == main(["record"]) == 0 and asked == []
    assert {name: sorted(found) for name, found in files(recorded).items()} == {
        "ch1.json": [("a", "default"), ("b", "default")],
        "ch1_large.json": [(name, size) for name in "ab" for size in ("large/a", "large/b")],
    }


def test_what_is_measured_anew_takes_the_place_of_what_was_and_of_nothing_else(chapter, machine, recorded):
    a, b = discover(chapter)
    stale = [measured(pair, "default", source_hash="old") for pair in (a, b)]
    record.store.keep_record(on_cpu(*stale, date="2025-12-31T00:00:00+00:00"))
    assert main(["record", "--only-default"]) == 0
    assert files(recorded) == {"ch1.json": [("a", "default"), ("b", "default")]}
    assert not any(each.source_hash == "old" for each in load_record(recorded / "a_cpu/ch1.json").pairs)
    record.store.keep_record(on_cpu(measured(a, "default"), replace(stale[1], name="gone"), stale[1]))
    assert main(["record", "--only-default"]) == 0
    assert sorted(files(recorded)["ch1.json"]) == [("a", "default"), ("b", "default"), ("gone", "default")]


def test_a_size_that_was_skipped_is_recorded_as_such(chapter, machine, recorded):
    skipped = {"rows": [Row("optimized", "baseline", "skipped", because("does not fit"))], **UNTIMED}
    machine[1]["a", "large/b"] = skipped
    gone = replace(measured(discover(chapter)[0], "large/a"), name="gone")
    record.store.keep_record(on_cpu(gone))
    assert main(["record"]) == 0
    assert sorted(files(recorded)) == ["ch1.json", "ch1_large.json"]
    assert ("a", "large/b") in files(recorded)["ch1_large.json"] and planned() == []


def test_what_fails_is_left_and_what_does_not_fit_is_not(chapter, machine, recorded, capsys):
    answers = machine[1]
    answers["a", "default"] = {"rows": [Row("optimized", "baseline", "invalid", because("wrong answer"))], **UNTIMED}
    answers["b", "default"] = {"rows": [Row("optimized", "baseline", "skipped", because("does not fit"))], **UNTIMED}
    assert main(["record", "--only-default"]) == 1
    said = capsys.readouterr().out
    assert "nothing could be timed: does not fit\n" in said
    assert said.endswith("left: ch1 a default: default: optimized invalid: wrong answer\n") and said.count("left") == 1
    assert files(recorded) == {}


def test_a_pair_that_changes_while_it_is_measured_is_not_kept_and_left(chapter, machine, recorded, capsys):
    machine[1]["a", "default"] = {"source_hash": "of the code before"}
    assert main(["record", "--only-default"]) == 1
    assert capsys.readouterr().out.endswith("left: ch1 a default: default: the pair has changed since\n")
    assert files(recorded) == {"ch1.json": [("b", "default")]}


def test_a_solution_is_graded_where_it_was_not_or_where_its_exercise_has_changed(recorded, monkeypatch):
    def solved(exercise, of="A CPU", **fields):
        path = recorded / of.lower().replace(" ", "_") / solutions.FILE
        path.parent.mkdir(exist_ok=True, parents=True)
        each = {**asdict(solutions.GradedSolution(exercise.id, exercise.hash, 0, 7.0, "", {}, [])), **fields}
        environment = {"device": {"name": of}, "date": ""}
        path.write_text(json.dumps({"schema": 1, "environment": environment, "solutions": [each]}))

    first, second, *_ = record.exercises()
    monkeypatch.setattr(record, "exercises", lambda: [first, second])
    assert record.exercise_parts(CPU, {}) == [(first, Part([], False)), (second, Part([], False))]
    solved(second, "another")
    assert record.exercise_parts(CPU, {})[1] == (second, Part([], False))
    solved(first)
    assert [each for each, _ in record.exercise_parts(CPU, {})] == [second]
    for changes in ({"hash": "of another text"}, {"status": NOT_YET}):
        solved(first, **changes)
        assert record.exercise_parts(CPU, {})[0] == (first, Part([], True, 7.0))


def test_a_calibration_is_stale_where_its_pairs_have_changed(tmp_path, monkeypatch):
    (_, known), *_ = record.checks.FORMAT.load_all(record.findings.FILE, ROOT / "recorded")
    info = known.environment["device"]
    hashes = {pair.name: source_hash(pair) for pair in discover(record.findings.PAIRS)}
    for of, stale in ((hashes, []), ({**hashes, "work": "old"}, [True])):
        found = [(tmp_path, replace(known, source_hashes=of))]
        monkeypatch.setattr(record.checks.FORMAT.__class__, "load_all", lambda *where, found=found, **how: found)
        assert [part.is_stale for part in record.calibration_parts(info, {})] == stale
        (missing,) = record.calibration_parts({"name": "another"}, {})
        assert missing == Part([], False)


@pytest.mark.rest
def test_a_pair_is_measured_and_kept(chapter, monkeypatch, recorded):
    for path in chapter.glob("*_b.py"):
        path.unlink()
    for name in ("sheet_parts", "calibration_parts"):
        monkeypatch.setattr(record, name, lambda *where: [])
    monkeypatch.setattr(runner, "survey_apart", lambda *where: (CPU, {}))
    assert main(["record", "--only-default", "--device", "cpu"]) == 0
    assert list(files(recorded).values()) == [[("a", "default")]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("--budget banana", "banana: not a number of seconds above 0"), ("--budget nan", "nan: not a number"),
     ("--device cpu", "file/any: cannot be written")],
)  # fmt: skip
def test_bad_input_is_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "file")
    assert main(["record", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("record: ") and said in error and error.count("\n") == 1


# Which pairs a machine can time

GPU = {"kind": "cuda", "name": "GPU", "capability": [9, 0], "gpus": 1}


@pytest.mark.parametrize(
    ("extra", "on_cpu", "on_gpu"),
    [
        ("", True, True),
        ("import triton", False, True),
        ('DEVICE = "cuda"', False, True),
        ("import msvcrt", False, False),
    ],
)
def test_a_machine_times_what_it_can_run_without_an_interpreter(extra, on_cpu, on_gpu, tmp_path):
    pytest.importorskip("triton")
    write_pair(tmp_path / "ch1", "a", version(), version(extra=extra))
    (pair,) = discover(tmp_path / "ch1")
    assert [runner.can_time(pair, "default", info) for info in (CPU, GPU)] == [on_cpu, on_gpu]
