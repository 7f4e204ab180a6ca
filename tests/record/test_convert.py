"""Files of the old form of records become files of today's, with the same figures; what is not known is an error."""

import json

import pytest
from samples import pair_result, record, refused

from common.pairs.pair import ROOT
from common.record.outcome import Cause
from common.record.record_file import load_record, save_record
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


def test_a_file_of_another_form_is_refused_and_stays(tmp_path):
    path = tmp_path / "r.json"
    save_record(record(pair_result()), path)
    before = path.read_bytes()
    with refused("not of the form of schema 3: nothing to convert", f"{path}"):
        convert_records.run([str(path)])
    assert path.read_bytes() == before


def test_an_old_calibration_gets_the_cause_of_a_contradiction(tmp_path):
    today = json.loads((ROOT / "recorded/nvidia_h200/calibration.json").read_text(encoding="utf-8"))
    old = json.loads(json.dumps(today))
    conclusion = next(iter(old["runs"]["quiet"][0]["said"].values()))
    conclusion.update(verdict="unsure", reason="beside the others 1.06x, alone 1.01x")
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({**old, "schema": today["schema"] - 1}), encoding="utf-8")
    assert convert_records.run([str(path)]) == 0
    conclusion.update(reason="contradicted_alone")
    assert json.loads(path.read_text(encoding="utf-8")) == old
