"""The record: round trip, schema, atomic writes, and every kind of file that is no record of ours."""

import dataclasses
import errno
import json
import os
import stat
import tempfile
from functools import reduce
from operator import getitem

import fastjsonschema
import pytest
from samples import arm, because, pair_result, record, refused

from common.record import load
from common.record.files import check_writable
from common.record.load import load_record, save_record
from common.record.result import SCHEMA, Row, to_json
from common.record.store import keep_record


def schema_errors(data):
    try:
        fastjsonschema.validate(json.loads(load.SCHEMA_FILE.read_text()), data)
    except fastjsonschema.JsonSchemaValueException as error:
        return [error.message]
    return []


@pytest.fixture
def full():
    against = {"library": {"ratio": 0.5, "interval": (0.4, 0.6)}}
    rows = [
        Row("optimized", "baseline", "faster", None, 2.0, (1.9, 2.1), against, "tf32", [because("a note")]),
        Row("optimized/b", "optimized", "unsure", because("noise"), 1.0, (0.9, 1.1)),
        Row("optimized/c", "baseline", "crashed", because("killed by SIGSEGV")),
    ]
    beside = {"spent_s": {"check": 0.5}, "neighbours": ["make (pid 7) kept 1.0 cores busy"], "clocks": {"sm_mhz": 1}}
    judged = {**pair_result().arms, "control": arm(2e-3, max_error=3e-6, rms_error=2e-7)}
    untimed = pair_result("none", rows=[], arms={}, limit_s=None, noise_floor=None)
    return record(pair_result(rows=rows), pair_result("other", arms=judged, **beside), untimed)


def as_lists(data):
    return json.loads(json.dumps(dataclasses.asdict(data)))


def test_a_record_survives_the_round_trip(full, tmp_path):
    save_record(full, tmp_path / "r.json")
    again = load_record(tmp_path / "r.json")
    assert as_lists(again) == as_lists(full)
    assert again.pairs[0].rows[0].interval == (1.9, 2.1)
    assert again.pairs[0].arms["optimized"] == full.pairs[0].arms["optimized"]
    assert to_json(again) == to_json(full)


def test_a_saved_record_fits_the_schema(full):
    assert schema_errors(json.loads(to_json(full))) == []


def written(record, folder, *changes):
    """The file of a record in which (path, value) are others: `KeyError` is no value at all."""
    data = json.loads(to_json(record))
    for (*parents, last), value in changes:
        home = reduce(getitem, parents, data)
        if value is KeyError:
            del home[last]
        else:
            home[last] = value(home[last]) if value is doubled else value
    (folder / "r.json").write_text(json.dumps(data))
    return folder / "r.json"


ROW, ARM, PAIR = ("pairs", 0, "rows", 0), ("pairs", 0, "arms", "optimized"), ("pairs", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*ROW, "verdict"), "great"),
        ((*ROW, "verdict"), "invalid"),  # which has no ratio
        ((*ROW, "verdict"), "crashed"),
        ((*ROW, "ratio"), None),  # which `faster` must have
        ((*ROW, "ratio"), "2x"), ((*ROW, "interval"), [1.0]), ((*ROW, "interval"), [1.0, 2.0, 3.0]),
        ((*ROW, "notes"), [1]), ((*ROW, "variant"), KeyError), ((*ROW, "grade"), "A"),
        ((*ROW, "vs_library"), {"library": {"ratio": 2.0}}), ((*ARM, "median_s"), 0.0), ((*ARM, "median_s"), -1.0),
        ((*ARM, "seconds"), [[1.0, 0.0]]), ((*ARM, "seconds"), [1.0]), ((*ARM, "seconds"), []),
        ((*ARM, "seconds"), [[1e-3], []]), ((*ARM, "allocated_bytes"), -1), ((*ARM, "allocated_bytes"), KeyError),
        ((*ARM, "max_error"), -1e-7), ((*ARM, "rms_error"), "small"),
        ((*PAIR, "neighbours"), [1]), ((*PAIR, "clocks"), {"sm_mhz": "fast"}), ((*PAIR, "clock"), "sundial"),
        ((*PAIR, "cost"), {"dram_bytes": "many"}), ((*PAIR, "source_hash"), KeyError), ((*PAIR, "seeds"), [0.5]),
        (("limits", "dram_bytes"), 4e12), (("environment", "device"), {"kind": "abacus", "name": "wood"}),
        (("environment", "date"), KeyError), (("pairs",), None), (("schema",), True), (("schema",), KeyError),
        (("extra",), 1),
    ],
)  # fmt: skip
def test_the_schema_rejects_what_is_no_record(full, path, value, tmp_path):
    file = written(full, tmp_path, (path, value))
    assert schema_errors(json.loads(file.read_text()))
    with refused(r"\)$", f"{file}: not a benchmark record ("):
        load_record(file)


def test_a_record_from_before_errors_were_kept_is_read(full, tmp_path):
    judged = ("pairs", 1, "arms", "control")
    file = written(full, tmp_path, ((*judged, "max_error"), KeyError), ((*judged, "rms_error"), KeyError))
    (*_, older, _) = load_record(file).pairs
    assert older.arms["control"].max_error is None and older.arms["control"].rms_error is None


@pytest.mark.parametrize(("version", "age"), [(0, "an older"), (SCHEMA - 1, "an older"), (SCHEMA + 1, "a newer")])
def test_another_version_is_named(full, version, age, tmp_path):
    file = written(full, tmp_path, (("schema",), version), (("new_field",), 1))
    way = ": measure again" * (version < SCHEMA)
    with refused(rf"written by {age} version of the course \(schema {version}; this one reads {SCHEMA}\){way}$"):
        load_record(file)


# Figures that their samples do not give


def doubled(found):
    return [2 * value for value in found] if isinstance(found, list) else 2 * found


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*ROW, "ratio"), doubled, "optimized vs baseline: ratio is 4, its samples give 2"),
        ((*ROW, "ratio"), 2.00001, "ratio is 2.00001, its samples give 2"),
        ((*ROW, "interval"), doubled, r"interval is \[3.8, 4.2\], its samples give \[1.9, 2.1\]"),
        ((*ROW, "interval"), None, r"interval is None, its samples give \[1.9, 2.1\]"),
        ((*ROW, "verdict"), "same", "verdict is same, its samples give faster"),
        ((*ROW, "verdict"), "unsure", "verdict is unsure, its samples give faster"),
        ((*ROW, "vs_library", "library", "ratio"), doubled, "against library is .* its samples give"),
        ((*ROW, "vs_library", "library", "interval"), [0.4, 0.9], "against library is .* its samples give"),
        ((*ROW, "vs_library", "other"), {"ratio": 1.0, "interval": [1.0, 1.0]}, "no samples of 'other'"),
        ((*ARM, "median_s"), doubled, "the median of optimized is 0.002, its samples give 0.001"),
        ((*ARM, "seconds"), [[2e-3] * 5] * 6, "the median of optimized is 0.001, its samples give 0.002"),
        ((*ARM, "seconds", 0), [1e-3] * 4, "not sampled in the same rounds"),
        ((*PAIR, "noise_floor"), 0.5, r"the noise floor is 0.5, its samples give 0\)$"),
        ((*PAIR, "arms", "control"), KeyError, "no samples of 'control'"),
        ((*PAIR, "arms", "baseline"), KeyError, "no samples of 'baseline'"),
        ((*PAIR, "rows", 1, "ratio"), doubled, "optimized/b vs optimized: ratio is 2, its samples give 1"),
    ],
)
def test_figures_must_follow_from_the_samples(full, path, value, said, tmp_path):
    file = written(full, tmp_path, (path, value))
    with refused(said, f"{file}: a record whose figures do not follow from its samples (ch1 double"):
        load_record(file)


@pytest.mark.filterwarnings("error")  # one line is all that is said
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*ROW, "ratio"), 10**400, r"contains 1000\d*, which is not a finite float64$"),
        ((*ROW, "ratio"), float("inf"), "contains Infinity, which is"),
        ((*ROW, "ratio"), float("nan"), "contains NaN, which is"),
        (("environment", "any"), 10**400, "contains 1000"),
        ((*ARM, "seconds", 0, 0), 1e308, r"optimized.seconds\[0\]\[0\] must be smaller"),
        ((*ARM, "seconds", 0, 0), 10**12, "must be smaller than or equal to 1000000000"),
        ((*ARM, "seconds"), [[5e-324] * 5] * 6, "the median of optimized is 0.001"),
        ((*ROW, "ratio"), 1e308, r"ratio is 1e[+]308, its samples give 2"),
    ],
)
def test_a_number_that_nothing_can_be_computed_with_is_one_line(full, path, value, said, tmp_path):
    file = written(full, tmp_path, (path, value))
    for text in (file.read_text(), file.read_text().replace("Infinity", "1e400")):
        file.write_text(text)
        with refused(said.replace("Infinity", "(Infinity|1e400)"), f"{file}: "):
            load_record(file)


def test_samples_whose_ratio_is_beyond_all_numbers_are_one_line(tmp_path):
    times = {"baseline": 1e9, "optimized": 5e-324, "control": 1e9}
    arms = {label: arm(of, seconds=[[of]] * 7) for label, of in times.items()}
    with refused(r"not a benchmark record \((FloatingPoint|Overflow)Error"):
        load_record(written(record(pair_result(arms=arms)), tmp_path))


@pytest.mark.parametrize("change", [((*ROW, "ratio"), 2 + 1e-9), ((*PAIR, "noise_floor"), None)])
def test_rounding_in_the_last_digits_is_no_contradiction_nor_is_what_is_not_said(change, full, tmp_path):
    assert load_record(written(full, tmp_path, change)).pairs


def test_five_blocks_give_a_ratio_and_nothing_more(tmp_path):
    """Their widest interval has 93.8 %: `unsure`, and no interval."""
    row, times = (
        Row("optimized", "baseline", "unsure", because("only 5 blocks"), 2.0),
        {"baseline": 2.0, "optimized": 1.0},
    )
    arms = {label: arm(of, seconds=[[of]] * 5) for label, of in {**times, "control": 2.0}.items()}
    found = record(pair_result(rows=[row], arms=arms))
    assert load_record(written(found, tmp_path)).pairs[0].rows == [row]
    with refused("verdict is faster, its samples give unsure"):
        load_record(written(found, tmp_path, ((*ROW, "verdict"), "faster")))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\0\0\0", b"\xff\xfe{}", b"{", b"schema: 1", b"[]", b"{}", b"1", b"null", b'"schema"', b'[{"schema": 1}]',
        b'{"schema": "1"}', b'{"type": "FeatureCollection", "features": []}',
    ],
)  # fmt: skip
def test_a_foreign_file_is_one_line(content, tmp_path):
    (tmp_path / "foreign.json").write_bytes(content)
    with refused("not ", f"{tmp_path / 'foreign.json'}: not "):
        load_record(tmp_path / "foreign.json")


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_file_cut_short_is_one_line(full, part, tmp_path):
    text = to_json(full)
    (tmp_path / "r.json").write_text(text[: int(part * len(text))])
    with refused(r"not JSON \(.*\)$"):
        load_record(tmp_path / "r.json")


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path):
    for path, why in ((tmp_path / "nowhere.json", "No such file"), (tmp_path, "Is a directory")):
        with refused(rf"cannot be read \({why}", path):
            load_record(path)


# Writing


def raises(number):
    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    return fail


DISKS = {errno.ENOSPC: "No space left on device", errno.EROFS: "Read-only file system"}
STEPS = {"create": (os, "open"), "write": (os, "fdopen"), "fsync": (os, "fsync"), "replace": (os, "replace")}


@pytest.mark.parametrize(("number", "said"), DISKS.items())
@pytest.mark.parametrize("step", STEPS)
def test_a_write_that_fails_is_one_line_and_leaves_the_old_file_and_nothing_else(
    full, step, number, said, tmp_path, monkeypatch
):
    file = written(record(), tmp_path)
    before = file.read_bytes()
    monkeypatch.setattr(*STEPS[step], raises(number))
    with refused(rf": cannot be written \({said}\)$", file):
        save_record(full, file)
    assert (file.read_bytes(), os.listdir(tmp_path)) == (before, ["r.json"])


def test_a_folder_that_cannot_be_made_is_one_line(full, tmp_path):
    (tmp_path / "recorded").write_text("a file")
    with refused(r"ch1\.json: cannot be written \(.*\)$"):
        keep_record(full, tmp_path / "recorded")


def test_where_a_file_could_be_written_is_told_before(tmp_path):
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "r.json")
    check_writable(tmp_path / "no" / "folder" / "r.json", makes_folder=True)
    for path, makes_folder in (
        ("long" * 2000, False),
        ("long" * 2000, True),
        ("no/r.json", False),
        ("file/r.json", False),
        ("file/r.json", True),
        (".", False),
    ):
        with refused(r": cannot be written \(.*\)$"):
            check_writable(tmp_path / path, makes_folder)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("number", "said"), DISKS.items())
@pytest.mark.parametrize("makes_folder", [False, True])
def test_a_disk_that_takes_no_file_is_told_before(makes_folder, number, said, tmp_path, monkeypatch):
    path = tmp_path / ("folder/r.json" if makes_folder else "r.json")
    monkeypatch.setattr(tempfile, "TemporaryFile", raises(number))
    with refused(rf": cannot be written \({said}\)$", path):
        check_writable(path, makes_folder)


def test_a_reader_never_sees_a_part_of_a_file(full, tmp_path, monkeypatch):
    """Until the moment of the replacement the old record is there, whole."""
    file, seen, replace = written(record(), tmp_path), [], os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (seen.append(load_record(file)), replace(*paths)))
    save_record(full, file)
    assert [as_lists(found) for found in (*seen, load_record(file))] == [as_lists(record()), as_lists(full)]


def test_interrupting_a_write_leaves_the_old_file(full, tmp_path, monkeypatch):
    def interrupt(*paths):
        raise KeyboardInterrupt

    file = written(record(), tmp_path)
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_record(full, file)
    assert (as_lists(load_record(file)), os.listdir(tmp_path)) == (as_lists(record()), ["r.json"])


def test_what_json_cannot_hold_is_refused_and_not_written_as_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save_record(record(pair_result(limit_s=float("nan"))), tmp_path / "r.json")
    assert os.listdir(tmp_path) == []


def test_others_may_read_the_file(full, tmp_path):
    save_record(full, tmp_path / "r.json")
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o644
