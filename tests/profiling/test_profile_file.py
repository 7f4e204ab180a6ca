"""What is kept of a trace, and the files of profiles."""

from pathlib import Path

import pytest
from msgspec import structs
from profile_samples import ABOUT, BUSY, call, profile, work

from common.pairs.pair import ROOT
from common.profiling.recorder import MARK, trim
from common.record import profile_file
from common.record.files import RecordError
from common.record.profile_file import Event, Profile

MOST_IN_ALL = 3_000_000  # bytes of all recorded profiles


# What is kept of a trace


def test_of_a_trace_the_call_that_is_nearest_to_the_measured_one_is_kept():
    trace = [
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": label}}
        for pid, label in ((77, "CPU"), (77, "CPU"), (0, "GPU 0"), (1, "GPU 1"), ("Spans", ""))
    ]
    for begin, length in ((1000, 90), (2000, 50), (3000, 70)):
        mark = {"name": MARK, "cat": "user_annotation", "ph": "X", "pid": 77, "tid": 88, "ts": begin, "dur": length}
        op = mark | {"name": "aten::add", "cat": "cpu_op", "ts": begin + 5, "dur": 20, "args": {"Fwd thread id": 1}}
        start = {"name": "cuLaunchKernel", "cat": "cuda_driver", "ts": begin + 12, "dur": 3, "args": {"correlation": 4}}
        kernel = {"name": "k", "cat": "kernel", "pid": 0, "tid": 7, "ts": begin + 30, "dur": min(40, length - 30)}
        arrow = {"name": "ac2g", "cat": "ac2g", "ph": "s", "id": 4, "ts": begin + 12}
        other = mark | {"name": "python", "cat": "python_function"}
        trace += [mark, op, mark | start, mark | kernel | {"args": {"stream": 7, "queued": 0}}, mark | arrow, other]
    events, seconds = trim(trace, 68e-6)
    assert seconds == pytest.approx(70e-6)
    kept = [event for event in events if event.ph == "X"]
    assert [(event.name, event.pid, event.tid, event.ts, event.dur, event.args) for event in kept] == [
        ("aten::add", 77, 88, 5, 20, {}), ("cuLaunchKernel", 77, 88, 12, 3, {"correlation": 4}),
        ("k", 0, 7, 30, 40, {"stream": 7}),
    ]  # fmt: skip
    assert [(event.ts, event.id) for event in events if event.ph == "s"] == [(12, 4)]
    assert [event.args["labels"] for event in events if event.ph == "M"] == ["CPU", "GPU 0"]


def test_a_large_trace_loses_arrows_then_inner_operators_then_all_and_is_refused_if_it_stays_large(monkeypatch):
    arrows = [Event("launch", "s", "ac2g", ts=number**2 % 97, id=number) for number in range(200)]
    outer = [call(f"aten::{number**3 % 997}", 90, 99, "cpu_op", thread=number) for number in range(50)]
    inner = [call(f"aten::{number**4 % 997}", 91, 92, "cpu_op", thread=number) for number in range(50)]
    whole = profile(*BUSY, *inner, *outer, *arrows)
    assert profile_file.fitted(whole) == whole
    steps = [([*BUSY, *inner, *outer], "arrows"), ([*BUSY, *outer], "arrows, operators within operators"),
             (list(BUSY), "arrows, operators within operators, operators")]  # fmt: skip
    for events, left_out in steps:
        monkeypatch.setattr(profile_file, "MOST_BYTES", len(profile_file.packed(profile(*events))) + 60)  # the note
        fitted = profile_file.fitted(whole)
        assert {event.name for event in fitted.traceEvents} == {event.name for event in events}
        assert fitted.about.left_out == left_out and len(fitted.traceEvents) == len(events)
    monkeypatch.setattr(profile_file, "MOST_BYTES", 50)
    with pytest.raises(RecordError, match="are accepted: profile a smaller size"):
        profile_file.fitted(whole)


# Files


def test_a_profile_is_read_as_it_was_written_and_equal_ones_have_equal_bytes(tmp_path):
    path = profile_file.keep(profile(*BUSY), tmp_path)
    assert path == tmp_path / "nvidia_h200/profiles/ch1/double.fused.json.gz"
    assert profile_file.load(path) == profile(*BUSY)
    assert profile_file.packed(profile(*BUSY)) == path.read_bytes()


def damaged(kind: str) -> bytes:
    import gzip

    whole = profile_file.packed(profile(*BUSY))
    late = profile_file.packed(profile(work(1, 90, 110)))
    nameless = structs.replace(ABOUT, environment={"device": {}, "date": "2026"})
    return {
        "cut": whole[:-20],
        "not packed": b'{"traceEvents": []}',
        "no JSON": gzip.compress(b"{"),
        "foreign": gzip.compress(b'{"traceEvents": [{"name": "x", "ph": "X", "ts": 1, "dur": 2}]}'),
        "an array": gzip.compress(b"[]"),
        "negative": gzip.compress(gzip.decompress(whole).replace(b'"dur":30', b'"dur":-30')),
        "newer": gzip.compress(gzip.decompress(whole).replace(b'"form":1', b'"form":9')),
        "late": late,
        "nameless": profile_file.packed(Profile(nameless, [])),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut", "damaged, or not packed by gzip"),
        ("not packed", "damaged, or not packed by gzip"), ("no JSON", "not JSON"),
        ("foreign", "not a profile of the course"), ("an array", "not a profile of the course"),
        ("negative", "not a profile of the course"), ("newer", "written by a newer version of the course"),
        ("late", "an event ends after the call"), ("nameless", "not a profile of the course"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_trace_is_refused_in_one_line(kind, said, tmp_path):
    path = tmp_path / "x.json.gz"
    path.write_bytes(damaged(kind))
    with pytest.raises(RecordError, match=said) as caught:
        profile_file.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def size_problems(folder: Path) -> list[str]:
    """Which recorded profiles are too large to be committed, or all of them together."""
    sizes = {path: path.stat().st_size for path in folder.glob("*/profiles/*/*.json.gz")}
    problems = [str(path) for path, size in sizes.items() if size > profile_file.MOST_BYTES]
    return problems + ["all"] * (sum(sizes.values()) > MOST_IN_ALL)


def test_recorded_profiles_are_small():
    assert size_problems(ROOT / "recorded") == []


@pytest.mark.parametrize(
    ("sizes", "problems"),
    [([100_000] * 30, []), ([100_001], ["h200/profiles/ch1/0.json.gz"]), ([99_000] * 31, ["all"])],
)
def test_a_large_profile_and_many_are_found(sizes, problems, tmp_path):
    (tmp_path / "h200/profiles/ch1").mkdir(parents=True)
    for number, size in enumerate(sizes):
        (tmp_path / f"h200/profiles/ch1/{number}.json.gz").write_bytes(bytes(size))
    assert [name.removeprefix(f"{tmp_path}/") for name in size_problems(tmp_path)] == problems
