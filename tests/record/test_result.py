"""The file of records: round trip, form, atomic writes, and every kind of file that is no record of ours."""

import errno
import json
import os
import random
import re
import subprocess
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from unittest.mock import Mock

import numpy as np
import pytest
from samples import arm, pair_result, record, refused

from common.pairs.pair import ROOT
from common.record.files import CONVERTER, MEASURE_OR_CONVERT, check_writable
from common.record.form import FORM
from common.record.outcome import Cause, Finding, Verdict, Where
from common.record.record_file import load_record, load_records, save_record, save_records, to_json
from common.record.result import CONTROL, Row

CRASHED = Finding(Cause.KILLED, {"text": "killed by SIGSEGV"})
NOTE = Finding(Cause.ALLOCATES, {"bytes": 1 << 20, "baseline": 0})


@pytest.fixture
def full():
    against = {"library": {"ratio": 0.5, "interval": (0.4, 0.6)}}
    crosses = Finding(Cause.CROSSES_BAND, {"band": 0.02})
    rows = [
        Row("optimized", "baseline", Verdict.FASTER, None, 2.0, (1.9, 2.1), against, "tf32", [NOTE]),
        Row("optimized/b", "baseline", Verdict.FASTER, None, 2.0, (1.9, 2.1), {**against}, "tf32"),
        Row("optimized/b", "optimized", Verdict.UNSURE, crosses, 1.0, (0.9, 1.1), {**against}, "tf32"),
        Row("optimized/c", "baseline", Verdict.CRASHED, CRASHED),
    ]
    apart = {
        "baseline": [1.9, 2.0, 2.0, 2.0, 2.0, 2.1], "optimized": [1.0] * 6,
        "optimized/b": [1 / 0.9, 1.0, 1.0, 1.0, 1.0, 1 / 1.1], "library": [0.4, 0.5, 0.5, 0.5, 0.5, 0.6],
    }  # fmt: skip
    arms = {name: arm(1e-3, seconds=[[of * 1e-3] * 5 for of in each]) for name, each in apart.items()}
    beside = {"spent_s": {"check": 0.5}, "neighbours": ["make (pid 7) kept 1.0 cores busy"], "clocks": {"sm_mhz": 1}}
    judged = {**pair_result().arms, "control": arm(2e-3, max_error=3e-6, rms_error=2e-7)}
    untimed = pair_result("none", rows=[Row("optimized", "baseline", Verdict.VERIFIED)], arms={}, orders=[])
    return record(
        pair_result(rows=rows, arms={**arms, CONTROL: arms["baseline"]}, orders=[]),
        pair_result("other", arms=judged, **beside),
        replace(untimed, noise_floor=None),
    )


def written(record, folder, *changes):
    """The file of a record in which (path, value) are others: `KeyError` is no value at all."""
    data = json.loads(to_json([record]))
    for (*parents, last), value in changes:
        home = reduce(getitem, parents, data)
        if value is KeyError:
            del home[last]
        else:
            home[last] = value
    (folder / "r.json").write_text(json.dumps(data))
    return folder / "r.json"


def loaded(record, folder, *changes):
    return load_record(written(record, folder, *changes))


def test_figures_and_verdicts_are_computed_from_the_samples(full, tmp_path):
    """None of them is in the file."""
    text = written(full, tmp_path).read_text()
    assert not [name for name in ("median", "ratio", "interval", "noise", "limit_", "faster") if f"{name}" in text]
    pair, *_ = loaded(full, tmp_path).pairs
    for row, before in zip(pair.rows, full.pairs[0].rows, strict=True):
        assert (row.variant, row.versus, row.verdict, row.reason) == (
            before.variant, before.versus, before.verdict, before.reason
        )  # fmt: skip
        assert (row.precision, row.notes) == (before.precision, before.notes)
        assert (row.ratio is None) == (before.ratio is None)
        assert row.ratio is None or (row.ratio, row.interval) == (
            pytest.approx(before.ratio, rel=0.03), pytest.approx(before.interval, rel=0.12)
        )  # fmt: skip
    assert pair.noise_floor == 0 and (pair.limit_s, pair.limit_by) == (5e-4, "dram_bytes")
    optimized = pair.arms["optimized"]
    assert (optimized.median_s, optimized.of_limit, optimized.of_datasheet) == pytest.approx((1e-3, 0.5, 0.25))


def test_a_file_is_read_as_it_was_written(full, tmp_path):
    again = loaded(full, tmp_path)
    assert to_json([again]) == to_json([full]) and asdict(loaded(again, tmp_path)) == asdict(again)
    assert again.environment == full.environment and again.limits == full.limits
    assert again.pairs[2].rows == full.pairs[2].rows


def test_a_whole_arm_and_a_whole_result_survive(tmp_path):
    """Everything that a later reader may ask for has a place in the form."""
    kernel = {"name": "add", "launches": 2, "registers": 32, "spills": 0, "warps": 4, "shared_bytes": 1024}
    kernel["instructions"] = {"FFMA": 7}
    arms = {"baseline": arm(2e-3), "optimized": arm(), "control": arm(2e-3)}
    arms["optimized"] = replace(
        arms["optimized"], host_s=2e-6, allocated_bytes=8, peak_bytes=0, calls=3, alone=[[1e-3, 2e-3]], floor_s=1e-6,
        by_rank=[[[1e-3, 1e-3]] * 5] * 6, sent_bytes=[4, 0], max_error=0.0, rms_error=1e-7, kernels=[kernel],
    )  # fmt: skip
    group = {"count": 2, "backend": "nccl", "environment": {"NCCL_NVLS_ENABLE": "0"}}
    clocks = {"sm_mhz": 1980, "memory_mhz": 3201, "celsius": 40, "throttle_flags": 1}
    pair = pair_result(arms=arms, group=group, clocks=clocks, carried=["before"], voided_rounds=2)
    (again,) = loaded(record(pair), tmp_path).pairs
    assert again.arms == pair.arms
    assert [getattr(again, name) for name in ("group", "clocks", "carried", "voided_rounds", "orders", "seeds")] == [
        group, clocks, ["before"], 2, pair.orders, [1, 2]
    ]  # fmt: skip


def test_a_library_of_another_precision_and_one_that_is_too_short_are_not_compared(tmp_path):
    arms = dict(pair_result().arms)
    arms |= {
        "library": arm(5e-4), "library/tf32": arm(5e-4, precision="tf32"), "yardstick/copy": arm(2e-6, floor_s=1e-6),
        "library/short": arm(2.9e-6, floor_s=1e-6),
    }  # fmt: skip
    plain, tf32 = (Row(name, "baseline", Verdict.FASTER, ratio=2.0) for name in ("optimized", "optimized/tf32"))
    rows = [plain, replace(tf32, precision="tf32")]
    arms["optimized/tf32"] = arms["optimized"]
    (pair,) = loaded(record(pair_result(arms=arms, rows=rows, orders=[])), tmp_path).pairs
    assert [{*row.vs_library} for row in pair.rows] == [{"library"}, {"library", "library/tf32"}]
    assert pair.rows[1].vs_library["library/tf32"]["precision"] == "tf32"


def test_an_arm_under_another_name_of_its_work_has_a_limit_of_its_own(tmp_path):
    limit = {"measured": 1e12, "datasheet": None, "how": "", "source": ""}
    limits = {"fp32_flops": limit, "bf16_flops": {**limit, "measured": 4e12}}
    arms = dict(pair_result().arms)
    arms["optimized"] = replace(arms["optimized"], cost={"bf16_flops": 1e9})
    found = replace(record(pair_result(arms=arms, cost={"fp32_flops": 1e9})), limits=limits)
    (pair,) = loaded(found, tmp_path).pairs
    assert {label: (each.of_limit, each.limit_by) for label, each in pair.arms.items()} == {
        "baseline": (0.5, "fp32_flops"), "optimized": (0.25, "bf16_flops"), "control": (0.5, "fp32_flops")
    }  # fmt: skip


@pytest.mark.parametrize(("alone", "verdict"), [([[2e-3]], Verdict.UNSURE), ([[1e-3]], Verdict.FASTER), ([], "faster")])
def test_runs_alone_count_when_a_file_is_read(alone, verdict, tmp_path):
    arms = {label: replace(each, alone=[[2e-3]]) for label, each in pair_result().arms.items()}
    arms["optimized"] = replace(arms["optimized"], alone=alone)
    (pair,) = loaded(record(pair_result(arms=arms)), tmp_path).pairs
    (row,) = pair.rows
    doubt = Finding(Cause.CONTRADICTED_ALONE, {"together": row.ratio, "apart": 1.0})
    assert (row.verdict, row.reason) == (verdict, doubt if verdict == Verdict.UNSURE else None)


def test_a_time_near_the_clocks_floor_is_too_short_when_a_file_is_read(tmp_path):
    arms = {label: replace(each, floor_s=3.4e-4) for label, each in pair_result().arms.items()}
    (pair,) = loaded(record(pair_result(arms=arms)), tmp_path).pairs
    reason = Finding(Cause.TOO_SHORT, {"factor": 3, "floor_us": 340.0})
    assert pair.rows == [Row("optimized", "baseline", Verdict.TOO_SHORT, reason)]
    assert loaded(record(pair), tmp_path).pairs == [pair], "that it is too short is not in the file"


@pytest.mark.parametrize("labels", [["baseline"], ["baseline", "optimized", "control", "library/x"]])
def test_orders_are_restored_exactly(labels, tmp_path):
    """Of rounds that rotate, of some that were voided, and where one that ran was disqualified."""
    draw, arms = random.Random(7), {label: arm() for label in labels}
    first = [draw.sample(labels, len(labels)) for _ in range(6)]
    turned = [[each[number % len(each) :] + each[: number % len(each)] for number in range(5)] for each in first]
    voided = [*turned[:3], [turned[3][0], *turned[3][2:], turned[3][0]], *turned[4:]]
    without = [[[*each, "optimized/out"] for each in block] for block in turned[:1]] + turned[1:]
    for orders in (turned, voided, without, []):
        (pair,) = loaded(record(pair_result(rows=[], arms=arms, orders=orders)), tmp_path).pairs
        assert pair.orders == orders
    (pair,) = loaded(record(pair_result(rows=[], arms={}, orders=turned)), tmp_path).pairs
    assert pair.orders == turned, "all that ran were disqualified"


def test_a_number_has_six_digits_and_an_amount_of_bytes_all(tmp_path):
    third, arms = 1e-3 / 3, {"baseline": arm(1e-3 / 3), "control": arm(np.float64(1e-3) / 3)}
    pair = pair_result(arms=arms, rows=[], cost={"dram_bytes": 268435457.0}, sizes={"eps": 0.123456789}, orders=[])
    (again,) = loaded(record(pair), tmp_path).pairs
    assert again.arms["baseline"].seconds[0][0] == 0.000333333 != third
    assert again.cost == pair.cost and again.sizes == pair.sizes
    assert again.arms["control"].seconds == again.arms["baseline"].seconds


def test_facts_are_kept_as_a_file_can_hold_them(tmp_path):
    wrong = Finding(
        Cause.WRONG_ELEMENT, {"where": Where.SIZE, "size": "check", "index": (3, 4), "got": np.float32(0.5)}
    )
    row = Row("optimized", "baseline", Verdict.INVALID, wrong)
    (pair,) = loaded(record(pair_result(rows=[row], arms={}, orders=[])), tmp_path).pairs
    facts = {"where": "size", "size": "check", "index": [3, 4], "got": 0.5}
    assert pair.rows == [replace(row, reason=Finding(Cause.WRONG_ELEMENT, facts))]


RESULT, RUN = ("results", 0), ("runs", 0)
ARM, VARIANT = (*RESULT, "candidates", "optimized"), (*RESULT, "variants", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*VARIANT, "verdict"), "great"), ((*VARIANT, "verdict"), "faster"), ((*VARIANT, "label"), KeyError),
        ((*VARIANT, "ratio"), 2.0), ((*VARIANT, "notes"), [1]), ((*VARIANT, "notes"), ["a sentence"]),
        ((*VARIANT, "reason"), "a sentence"), ((*VARIANT, "notes", 0, "cause"), "bad_luck"),
        ((*ARM, "seconds"), [[1.0, 0.0]]), ((*ARM, "seconds"), [1.0]), ((*ARM, "seconds"), []),
        ((*ARM, "seconds"), [[1e-3], []]), ((*ARM, "seconds", 0, 0), 1e308), ((*ARM, "seconds", 0, 0), 10**12),
        ((*ARM, "seconds", 0, 0), True), ((*ARM, "seconds"), KeyError), ((*ARM, "median_s"), 1e-3),
        ((*ARM, "calls"), 0), ((*ARM, "allocated_bytes"), -1), ((*ARM, "max_error"), -1e-7),
        ((*ARM, "rms_error"), "small"), ((*ARM, "kernels"), [{"registers": 3}]),
        ((*RESULT, "run"), -1), ((*RESULT, "run"), 1), ((*RESULT, "run"), KeyError), ((*RESULT, "other_load"), [1]),
        ((*RESULT, "clocks"), {"sm_mhz": "fast"}), ((*RESULT, "clock"), "sundial"), ((*RESULT, "group"), {"count": 1}),
        ((*RESULT, "cost"), {"dram_bytes": "many"}), ((*RESULT, "source_hash"), KeyError),
        ((*RESULT, "seeds"), [0.5]), ((*RESULT, "noise_floor"), 0.0), ((*RESULT, "orders"), [[0, 99]]),
        ((*RUN, "limits", "dram_bytes"), 4e12), ((*RUN, "limits", "dram_bytes", "measured"), 0),
        ((*RUN, "environment", "device", "kind"), "abacus"), ((*RUN, "environment", "date"), KeyError),
        ((*RUN, "environment", "weather"), "fine"), (("runs",), []), (("results",), None), (("form",), True),
        (("form",), KeyError), (("extra",), 1),
    ],
)  # fmt: skip
def test_what_is_not_of_the_form_is_one_line(full, path, value, tmp_path):
    file = written(full, tmp_path, (path, value))
    with refused(r"\)$", f"{file}: not a benchmark record ("):
        load_record(file)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*ARM, "seconds", 0), [1e-3] * 4, "not sampled in the same rounds"),
        ((*RESULT, "candidates", "baseline"), KeyError, "baseline"),
        (ARM, KeyError, "there are no samples of optimized"),
        ((*VARIANT, "label"), "optimized/z", "there are no samples of optimized/z"),
    ],
)
def test_a_row_without_its_samples_is_one_line(full, path, value, said, tmp_path):
    with refused(said, f"{tmp_path}/r.json: not a benchmark record ("):
        loaded(full, tmp_path, (path, value))


@pytest.mark.parametrize(("form", "age"), [(0, "an older"), (FORM - 1, "an older"), (FORM + 1, "a newer")])
def test_another_form_is_named(full, form, age, tmp_path):
    file = written(full, tmp_path, (("form",), form), (("new_field",), 1))
    way = re.escape(f": {MEASURE_OR_CONVERT}") * (form < FORM)
    with refused(rf"written by {age} version of the course \(form {form}; this one reads {FORM}\){way}$"):
        load_record(file)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no history")
def test_the_revision_that_is_named_has_the_tool():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("only the end of the history")
    assert git("ls-tree", "--name-only", CONVERTER, "tools/convert_records.py") == "tools/convert_records.py"


@pytest.mark.parametrize("number", ["1e400", "NaN"])
def test_a_number_that_is_none_is_one_line(full, number, tmp_path):
    file = written(full, tmp_path)
    file.write_text(file.read_text().replace("0.001", number, 1))
    with refused("not JSON", f"{file}: "):
        load_record(file)


@pytest.mark.filterwarnings("error")  # one line is all that is said
def test_samples_whose_ratio_is_beyond_all_numbers_are_one_line(tmp_path):
    times = {"baseline": 1e9, "optimized": 5e-324, "control": 1e9}
    arms = {label: arm(of, seconds=[[of]] * 7) for label, of in times.items()}
    with refused(r"not a benchmark record \((FloatingPoint|Overflow)Error"):
        loaded(record(pair_result(arms=arms, orders=[])), tmp_path)


def test_five_blocks_give_a_ratio_and_nothing_more(tmp_path):
    """Their widest interval has 93.8 %: `unsure`, and no interval."""
    row = Row("optimized", "baseline", Verdict.UNSURE, Finding(Cause.FEW_BLOCKS, {"blocks": 5}), 2.0)
    times = {"baseline": 2.0, "optimized": 1.0, "control": 2.0, "library": 1.0}
    arms = {label: arm(of, seconds=[[of]] * 5) for label, of in times.items()}
    assert loaded(record(pair_result(rows=[row], arms=arms, orders=[])), tmp_path).pairs[0].rows == [row]


def test_a_file_of_several_runs_is_one_record_where_one_is_asked_for(full, tmp_path):
    later = record(pair_result("another"), date="2026-02-02T03:04:05+00:00")
    save_records([full, later], tmp_path / "r.json")
    assert [len(run.pairs) for run in load_records(tmp_path / "r.json")] == [3, 1]
    found = load_record(tmp_path / "r.json")
    assert [pair.name for pair in found.pairs] == ["another", "double", "none", "other"]
    assert found.environment["dates"] == ["2026-01-02", "2026-02-02"]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe{}", b"{", b"[]", b"{}", b'{"form": "4"}', b"[" * 100_000, b'{"type": "FeatureCollection"}',
    ],
)  # fmt: skip
def test_a_foreign_file_is_one_line(content, tmp_path):
    (tmp_path / "foreign.json").write_bytes(content)
    with refused("not ", f"{tmp_path / 'foreign.json'}: not "):
        load_record(tmp_path / "foreign.json")


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path):
    for path, why in ((tmp_path / "nowhere.json", "No such file"), (tmp_path, "Is a directory")):
        with refused(rf"cannot be read \({why}", path):
            load_record(path)


# Writing


STEPS = {"create": (os, "open"), "write": (os, "fdopen"), "fsync": (os, "fsync"), "replace": (os, "replace")}


@pytest.mark.parametrize("step", STEPS)
def test_a_write_that_fails_or_is_interrupted_leaves_the_old_file_and_nothing_else(full, step, tmp_path, monkeypatch):
    file = written(record(), tmp_path)
    before = file.read_bytes()
    monkeypatch.setattr(*STEPS[step], Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    with refused(r": cannot be written \(No space left on device\)$", file):
        save_record(full, file)
    monkeypatch.setattr(*STEPS[step], Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save_record(full, file)
    assert (file.read_bytes(), os.listdir(tmp_path)) == (before, ["r.json"])


def test_where_a_file_could_be_written_is_told_before(tmp_path):
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "r.json")
    check_writable(tmp_path / "no" / "folder" / "r.json", makes_folder=True)
    for path, makes_folder in (("long" * 2000, True), ("no/r.json", False), ("file/r.json", True), (".", False)):
        with refused(r": cannot be written \(.*\)$"):
            check_writable(tmp_path / path, makes_folder)
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_never_sees_a_part_of_a_file(full, tmp_path, monkeypatch):
    """Until the moment of the replacement the old record is there, whole."""
    file, seen, replace = written(record(), tmp_path), [], os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (seen.append(load_record(file)), replace(*paths)))
    save_record(full, file)
    assert [to_json([found]) for found in (*seen, load_record(file))] == [to_json([record()]), to_json([full])]


def test_what_json_cannot_hold_is_refused_and_not_written_as_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save_record(record(pair_result(cost={"dram_bytes": float("nan")})), tmp_path / "r.json")
    assert os.listdir(tmp_path) == []
