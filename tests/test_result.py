"""The record: round trip, schema, atomic writes, and every kind of file that is no record of ours."""

import dataclasses
import json
import os
import stat

import jsonschema
import pytest
from samples import pair_result, record

from common import result
from common.result import SCHEMA, RecordError, Row, keep_record, load_record, recorded, save_record, to_json


def schema_errors(data):
    schema = json.loads(result.SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return [error.json_path for error in jsonschema.Draft202012Validator(schema).iter_errors(data)]


@pytest.fixture
def full():
    rows = [
        Row(
            "optimized",
            "baseline",
            "faster",
            "",
            2.0,
            (1.9, 2.1),
            {"library": {"ratio": 0.5, "interval": (0.4, 0.6)}},
            "tf32",
            ["a note"],
        ),
        Row("optimized/b", "optimized", "unsure", "only 3 blocks", 1.0, None),
        Row("optimized/c", "baseline", "died", "killed by SIGSEGV"),
    ]
    return record(
        pair_result(rows=rows),
        pair_result("other", spent_s={"check": 0.5}),
        pair_result("none", rows=[], arms={}, limit_s=None),
    )


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


def change(data, path, value):
    *parents, last = path
    for step in parents:
        data = data[step]
    if value is KeyError:
        del data[last]
    else:
        data[last] = value


ROW, ARM, PAIR = ("pairs", 0, "rows", 0), ("pairs", 0, "arms", "optimized"), ("pairs", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*ROW, "verdict"), "great"),
        ((*ROW, "verdict"), "invalid"),  # which has no ratio
        ((*ROW, "verdict"), "died"),
        ((*ROW, "ratio"), None),  # which `faster` must have
        ((*ROW, "ratio"), "2x"),
        ((*ROW, "interval"), [1.0]),
        ((*ROW, "interval"), [1.0, 2.0, 3.0]),
        ((*ROW, "notes"), [1]),
        ((*ROW, "variant"), KeyError),
        ((*ROW, "grade"), "A"),
        ((*ROW, "vs_library"), {"library": {"ratio": 2.0}}),
        ((*ARM, "median_s"), 0.0),
        ((*ARM, "median_s"), -1.0),
        ((*ARM, "seconds"), [[1.0, 0.0]]),
        ((*ARM, "seconds"), [1.0]),
        ((*PAIR, "clock"), "sundial"),
        ((*PAIR, "cost"), {"dram_bytes": "many"}),
        ((*PAIR, "source_hash"), KeyError),
        ((*PAIR, "seeds"), [0.5]),
        (("limits", "dram_bytes"), 4e12),
        (("environment", "device"), {"kind": "abacus", "name": "wood"}),
        (("environment", "date"), KeyError),
        (("pairs",), None),
        (("schema",), True),
        (("schema",), KeyError),
        (("extra",), 1),
    ],
)
def test_the_schema_rejects_what_is_no_record(full, path, value, tmp_path):
    data = json.loads(to_json(full))
    change(data, path, value)
    assert schema_errors(data)
    file = tmp_path / "r.json"
    file.write_text(json.dumps(data))
    with pytest.raises(RecordError) as caught:
        load_record(file)
    assert str(caught.value).startswith(f"{file}: not a benchmark record (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [0, SCHEMA + 1, 99])
def test_another_version_is_named(full, version, tmp_path):
    file = tmp_path / "r.json"
    file.write_text(json.dumps({**json.loads(to_json(full)), "schema": version, "new_field": 1}))
    with pytest.raises(RecordError, match=f"schema {version}, but .* schema {SCHEMA}"):
        load_record(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0",
        b"\xff\xfe{}",
        b"{",
        b"schema: 1",
        b"[]",
        b"{}",
        b"1",
        b"null",
        b'"schema"',
        b'[{"schema": 1}]',
        b'{"schema": "1"}',
        b'{"type": "FeatureCollection", "features": []}',
    ],
)
def test_a_foreign_file_is_one_line(content, tmp_path):
    file = tmp_path / "foreign.json"
    file.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        load_record(file)
    assert str(caught.value).startswith(f"{file}: not ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_file_cut_short_is_one_line(full, part, tmp_path):
    text = to_json(full)
    (tmp_path / "r.json").write_text(text[: int(part * len(text))])
    with pytest.raises(RecordError, match=r"not JSON \(.*\)$"):
        load_record(tmp_path / "r.json")


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(RecordError, match=r"nowhere\.json: cannot be read \(No such file"):
        load_record(tmp_path / "nowhere.json")
    with pytest.raises(RecordError, match=r"cannot be read \(Is a directory"):
        load_record(tmp_path)


# Writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(full, step, tmp_path, monkeypatch):
    file = tmp_path / "r.json"
    save_record(record(), file)
    before = file.read_bytes()

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        save_record(full, file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_reader_never_sees_half_a_file(full, tmp_path, monkeypatch):
    """Until the moment of the replacement the old record is there, whole."""
    file = tmp_path / "r.json"
    save_record(record(), file)
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (seen.append(load_record(file)), replace(*paths)))
    save_record(full, file)
    assert as_lists(seen[0]) == as_lists(record())
    assert as_lists(load_record(file)) == as_lists(full)


def test_interrupting_a_write_leaves_the_old_file(full, tmp_path, monkeypatch):
    def interrupt(*paths):
        raise KeyboardInterrupt

    save_record(record(), tmp_path / "r.json")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_record(full, tmp_path / "r.json")
    assert as_lists(load_record(tmp_path / "r.json")) == as_lists(record())
    assert os.listdir(tmp_path) == ["r.json"]


def test_what_json_cannot_hold_is_refused_and_not_written_as_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save_record(record(pair_result(limit_s=float("nan"))), tmp_path / "r.json")
    assert os.listdir(tmp_path) == []


def test_others_may_read_the_file(full, tmp_path):
    save_record(full, tmp_path / "r.json")
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o644


# The recorded results


def test_a_record_is_kept_under_its_device_and_chapter(full, tmp_path):
    path = keep_record(full, tmp_path / "recorded")
    assert path == tmp_path / "recorded" / "nvidia_h200" / "ch1.json"
    assert [found for found, _ in recorded("ch1", tmp_path / "recorded")] == [path]
    assert recorded("ch2", tmp_path / "recorded") == []
    assert recorded("ch1", tmp_path / "nowhere") == []


def test_the_newest_record_comes_first(tmp_path):
    for name, date in (
        ("A", "2026-03-01T00:00:00+00:00"),
        ("B", "2026-05-01T00:00:00+00:00"),
        ("C", "2025-12-31T00:00:00+00:00"),
    ):
        keep_record(record(pair_result(), name=name, date=date), tmp_path)
    assert [found.environment["device"]["name"] for _, found in recorded("ch1", tmp_path)] == ["B", "A", "C"]


def test_every_committed_record_is_valid():
    for path in (result.ROOT / "recorded").glob("*/*.json"):
        assert load_record(path).pairs
