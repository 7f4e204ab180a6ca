"""Files of the old form of records become files of today's, with the same figures; what is not known is an error."""

import json

import pytest
from samples import one_pair, pair_result, record, refused, version

from common.pairs.source import source_hash
from common.record.outcome import Cause
from common.record.record_file import load_record, load_records, save_record
from common.show import words
from tools import convert_records

SECONDS = {"baseline": 2e-3, "optimized": 1e-3, "library": 5e-4, "control": 2e-3}
ENVIRONMENT = record().environment | {"date": "2026-01-01T00:00:00+00:00"}
LIMITS = record().limits


def old_arm(median_s, **fields):
    shares = {"of_limit": 5e-4 / median_s, "of_datasheet": 2.5e-4 / median_s}
    return {
        "median_s": median_s, "host_s": None, **shares, "compile_s": 0.0, "seconds": [[median_s] * 5] * 6,
        "allocated_bytes": None, **fields,
    }  # fmt: skip


def old_row(**fields):
    return {
        "variant": "optimized", "versus": "baseline", "verdict": "faster", "reason": "", "ratio": 2.0,
        "interval": [2.0, 2.0], "vs_library": {"library": {"ratio": 0.5, "interval": [0.5, 0.5]}}, "precision": "",
        "notes": [], **fields,
    }  # fmt: skip


def old_result(**fields):
    return {
        "chapter": "ch1", "name": "double", "size": "default", "sizes": {"n": 4096}, "source_hash": "a hash",
        "rows": [old_row()], "clock": "device", "noise_floor": 0.0, "cost": {"dram_bytes": 2e9}, "limit_s": 5e-4,
        "limit_by": "dram_bytes", "arms": {label: old_arm(median_s) for label, median_s in SECONDS.items()},
        "orders": [[["optimized", "control", "baseline", "library"]] * 5] * 6, "seeds": [1], "voided_rounds": 0,
        "spent_s": {}, "neighbours": [], "clocks": {}, **fields,
    }  # fmt: skip


def old_file(path, *results, **environment):
    data = {"schema": 3, "environment": ENVIRONMENT | environment, "limits": LIMITS, "pairs": list(results)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def converted(tmp_path):
    """converted(result's fields): the result of a file that was converted in its place."""

    def convert(**fields):
        path = old_file(tmp_path / "r.json", old_result(**fields))
        assert convert_records.run([str(path)]) == 0
        (pair,) = load_record(path).pairs
        return pair

    return convert


def test_a_file_has_the_same_figures_afterwards(converted):
    pair = converted()
    (row,) = pair.rows
    assert (row.verdict, row.ratio, row.interval) == ("faster", 2, (2, 2))
    assert row.vs_library["library"]["ratio"] == pytest.approx(0.5)
    assert (pair.noise_floor, pair.limit_s, pair.arms["optimized"].of_limit) == (0, 5e-4, 0.5)
    assert pair.orders == old_result()["orders"]


NOTES = {
    "launch-bound: the host needs 3000 us to issue 1000 us of device work": "",
    "allocates 2.0 MiB a call, the baseline next to nothing": "allocates 2.0 MiB a call, the baseline almost nothing",
    "its first calls took 1.3 s longer: compiling, tuning": "its first calls took 1.3 s longer (compiling, tuning)",
    "some of its calls are much dearer: their mean is 6.14 of the median": (
        "some of its calls take much longer: the mean is 6.14 x the median"
    ),
    "library/x: its device works on for 51 us after the clock stopped: a stream is not joined": "",
    "the baseline: alone: killed by SIGSEGV": "",
}


@pytest.mark.parametrize("note", NOTES)
def test_a_note_says_the_same_in_todays_words(note, converted):
    arms = {label: old_arm(median_s) for label, median_s in SECONDS.items()}
    arms["optimized"] |= {"host_s": 3e-3, "allocated_bytes": 2 << 20}
    pair = converted(rows=[old_row(notes=[note])], arms=arms)
    assert [*map(words.text, pair.rows[0].notes)] == [NOTES[note] or note]


def test_the_clocks_floor_is_that_of_a_reason_or_the_least_that_explains_what_is_missing(converted):
    short = {"verdict": "too short", "ratio": None, "interval": None, "vs_library": {}}
    reason = "too short for this clock: below 3 x the clock's own floor of 400 us"
    (row,) = converted(rows=[old_row(**short, reason=reason)]).rows
    assert row.reason.cause == Cause.TOO_SHORT and row.reason.facts["floor_us"] == pytest.approx(400)
    arms = {label: old_arm(median_s) for label, median_s in {**SECONDS, "library": 8e-6}.items()}
    (row,) = converted(rows=[old_row(vs_library={})], arms=arms).rows
    assert row.vs_library == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rows": [old_row(ratio=2.1)]}, "optimized vs baseline ratio is 2.1, its samples give 2.0"),
        ({"rows": [old_row(interval=[1.9, 2.0])]}, "interval is"), ({"noise_floor": 0.1}, "noise_floor is 0.1"),
        ({"rows": [old_row(verdict="same")]}, "verdict is same, its samples give faster"),
        ({"rows": [old_row(vs_library={})]}, "no row says how it compares with library"),
        ({"rows": [old_row(notes=["it rained"])]}, "unknown text: it rained"),
        ({"arms": {**old_result()["arms"], "optimized": old_arm(1e-3, of_limit=0.4)}}, "no amounts of work give 0.4"),
    ],
)  # fmt: skip
def test_what_does_not_follow_or_is_not_known_is_an_error_and_changes_nothing(fields, said, tmp_path):
    path = old_file(tmp_path / "r.json", old_result(**fields))
    before = path.read_bytes()
    with refused(said, f"{path}: ch1 double default: "):
        convert_records.run([str(path)])
    assert path.read_bytes() == before


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one pair, whose hash it returns."""
    monkeypatch.setattr("tools.convert_records.ROOT", tmp_path)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    return source_hash(one_pair(tmp_path / "ch1", version(), version()))


def test_the_files_of_a_class_become_one_with_what_is_of_the_present_code(course, tmp_path, capsys):
    folder, kept = tmp_path / "recorded/gpu", {"source_hash": course}
    gone, away = old_result(name="gone"), old_result(size="check", sizes={"n": 127})
    old_file(folder / "ch1.json", old_result(**kept), gone)
    old_file(folder / "ch1.20260102-030405.json", old_result(**kept), date="2026-01-02T03:04:05+00:00")
    old_file(folder / "ch1_check.json", away)
    assert convert_records.run([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "gpu/ch1.json: 1 results of 1 runs, 1 replaced by newer ones",
        "  left out, of another state of the code, or of what is gone: gone at 1 size",
        "gpu/ch1_check.json: 0 results of 0 runs, 0 replaced by newer ones",
        "  left out, of another state of the code, or of what is gone: double at 1 size",
    ]
    assert [path.name for path in folder.iterdir()] == ["ch1.json"]
    (run,) = load_records(folder / "ch1.json")
    assert run.environment["date"] == "2026-01-02T03:04:05+00:00"


def test_a_file_that_appears_later_is_merged_with_what_was_converted_before(course, tmp_path):
    path = tmp_path / "recorded/nvidia_h200/ch1.json"
    path.parent.mkdir(parents=True)
    save_record(record(pair_result(ratio=3.0, source_hash=course, sizes={"n": 4096})), path)
    before = path.read_bytes()
    convert_records.run([])
    assert path.read_bytes() == before
    later = old_result(source_hash=course)
    old_file(path.with_name("ch1.20260303-000000.json"), later, date="2026-03-03T00:00:00+00:00")
    convert_records.run([])
    assert [each.name for each in path.parent.iterdir()] == ["ch1.json"]
    assert [run.pairs[0].rows[0].ratio for run in load_records(path)] == [2.0]
