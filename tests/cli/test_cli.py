"""The command line: every mistake is one line and exit status 2, and what comes out goes where it belongs."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock

import pytest
from samples import because, pair_result, reason_of, record, version, write_pair, write_template

import benchmark
from ch1.compare import compare
from common import stats
from common.cli import arguments, profile_commands
from common.engine import runner
from common.pairs.pair import ROOT, chapters, discover
from common.pairs.source import source_hash
from common.record.files import RecordError
from common.record.record_file import load_record, save_record
from common.record.result import Row
from common.show import console
from common.show.words import word

ESCAPE = "\x1b"
SWEPT = {"check": {"n": 7}, "default": {"n": 64}, "small/a": {"n": 8}, "small/b": {"n": 9}}


def call(*argv):
    """The exit status of benchmark.py with these arguments."""
    try:
        return benchmark.main([str(argument) for argument in argv])
    except SystemExit as stop:  # argparse's own
        return stop.code


@pytest.fixture
def printed(capsys):
    """printed(*argv, status=0): what is printed by a call that ends with this status."""

    def of(*argv, status=0):
        assert call(*argv) == status
        return capsys.readouterr()

    return of


@pytest.fixture
def pairs(tmp_path):
    write_pair(tmp_path / "pairs", "double", version())
    write_pair(tmp_path / "pairs", "triple", {"fused": version()}, version(sizes=SWEPT))
    return tmp_path / "pairs"


@pytest.fixture
def ran(monkeypatch):
    """What run_pairs was asked; instead of running it returns `ran.record`."""
    found = SimpleNamespace(record=record(pair_result()), asked=None)

    def run_pairs(pairs, size, device, fast, check, on_progress, on_record, on_neighbours):
        found.asked = ([pair.name for pair in pairs], size, device, fast, check)
        on_record(found.record)
        return found.record

    monkeypatch.setattr(runner, "run_pairs", run_pairs)
    return found


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """kept(): the files that were recorded, by name."""
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "kept")
    return lambda: sorted(path.name for path in tmp_path.glob("kept/nvidia_h200/*"))


# Mistakes


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """What mistakes are made with, in the folder that we are in: pairs, of which one is wrong, and files."""
    for name, text in {"missing": version().replace("def run", "def _run"), "fine": version()}.items():
        write_pair(tmp_path / name, "double", text)
    files = {"empty.json": "", "brace.json": "{", "newer.json": '{"schema": 99}', "other.json": '{"type": "other"}'}
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)


MISTAKES = [  # arguments, what must be said
    ("", "nothing to do", "--chapter N"),
    ("--chapter 99", "no chapter 99", "there are 1"),
    ("--chapter ch99", "no chapter 99", "there are 1"),
    ("--chapter one", "--chapter", "'one' is no chapter's number, such as 3 or ch3"),
    ("--all --chapter 1", "--chapter: not allowed with argument --all"),
    ("--count softmx", "'softmx': did you mean softmax\n"),
    ("--all --show r.json", "--all does not go with --show: it belongs to --list or --xray or --count or --race or"),
    ("--list --fast", "--fast does not go with --list: it belongs to a measurement of pairs"),
    ("--chapter 1 --code sass", "--code does not go with a measurement of pairs: it belongs to --xray"),
    ("--show brace.json", "brace.json: not JSON"),
    ("--show other.json", "other.json: not a benchmark record"),
    ("--show no.json", "no.json: cannot be read"),
    ("--chapter 1 --quick", "--quick"),
    ("--chapter", "--chapter", "expected one argument"),
    ("ch1", "ch1"),
    ("--chapter 1 --only no_such*", "'no_such*'", "coalescing"),
    ("--chapter 1 --size huge", "'huge'", "there are all", "default"),
    ("--chapter 1 --size check", "'check' to time (it is verified only, by --check)", "default"),
    ("--path nowhere", "nowhere: no such folder"),
    ("--path empty.json", "empty.json: is a file: name its folder"),
    ("--path missing", "optimized_double.py", "no function `run`"),  # test_contract.py has the others of its kind
    ("--count no_such*", "no pair of any chapter", "'no_such*'", "--list"),
    ("--count * --path fine --size huge", "'huge'", "check, count, default"),
    ("--count * --arch sm_91", "--arch sm_91", "there are sm_75"),
    ("--count * --arch sm_80,sm_90", "--arch sm_80,sm_90", "--count takes one"),
    ("--count * --path fine --json no/c.json", "c.json: cannot be written"),
    ("--chapter 1 --record --fast", "--record", "--fast"),
    ("--chapter 3 --record --size large/4096x4096", "--record", "--size"),
    ("--chapter 3 --record --size huge", "no selected pair", "large"),
    ("--path fine --size count", "'count' to time", "counted only, by --count"),
    ("--path fine --record", "--record", "--path"),
    ("--chapter 1 --json .", "cannot be written (it is a folder)"),
    ("--chapter 1 --plot p.xlsx", "p.xlsx", ".png"),
    ("--compare a.json", "--compare", "expected 2 arguments"),
    ("--compare a.json b.json", "a.json: cannot be read"),
    ("--compare brace.json .", "brace.json: not JSON"),
    ("--compare newer.json .", "newer.json: written by a newer version of the course (schema 99"),
    (f"--show {ROOT}/recorded/counts.json", "counts.json: holds counts, not a benchmark record\n"),
    ("--path fine --device meta", "meta"),
]


def one_line_of(capture):
    """What was said of a mistake, and nothing else."""
    out, err = capture.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert err.startswith("benchmark.py: ")
    return err


@pytest.mark.parametrize(("arguments", "said"), [(arguments, said) for arguments, *said in MISTAKES])
def test_a_mistake_is_one_line_and_status_2_and_nothing_runs(arguments, said, beside, capsys, ran):
    assert call(*arguments.split()) == 2
    assert ran.asked is None
    err = one_line_of(capsys)
    assert [words for words in said if words not in err] == [], err


def shell(*arguments, python=(), **options):
    """benchmark.py as its user starts it, from another folder."""
    command = [sys.executable, *python, ROOT / "benchmark.py", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": Path.home(), "timeout": 120, **options}
    return subprocess.run(command, text=True, **options)


# Quick answers


@pytest.mark.parametrize("option", ["--help", "--list"])
def test_quick_answers_import_nothing_slow(option):
    done = shell(option, python=("-X", "importtime"))
    imported = set(re.findall(r"^import time:.*\| +(\w+)", done.stderr, re.MULTILINE))
    assert done.returncode == 0
    assert "argparse" in imported  # it does say what is imported
    assert not imported & {"torch", "numpy", "triton", "cupy", "matplotlib", "msgspec", "rich"}


# What is asked of the harness, and what becomes of its answer


BOTH = ["double", "triple"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (BOTH, "default", None, False, False)),
        ("--only dou*", (["double"], "default", None, False, False)),
        ("--size small", (BOTH, "small", None, False, False)),
        ("--size small/b", (BOTH, "small/b", None, False, False)),
        ("--size all", (BOTH, "all", None, False, False)),
        ("--fast --device cpu", (BOTH, "default", "cpu", True, False)),
        ("--check", (BOTH, "default", None, False, True)),
    ],
)
def test_options_reach_the_harness(options, expected, pairs, ran):
    assert call("--path", pairs, *options.split()) == 0
    assert ran.asked == expected


def test_all_measures_every_chapter(ran):
    assert call("--all", "--size", "default", "--check") == 0
    names = [pair.name for folder in chapters().values() for pair in discover(folder)]
    assert ran.asked == (names, "default", None, False, True)


def test_a_chapters_compare_takes_the_options_of_a_measurement(ran, printed, tmp_path, capsys):
    assert compare("--only", "coal*", "--fast", "--device", "cpu", "--json", str(tmp_path / "r.json")) == 0
    assert ran.asked == (["coalescing"], "default", "cpu", True, False)
    assert capsys.readouterr().out == printed("--show", tmp_path / "r.json").out
    assert compare() == 0 and ran.asked[0] == [pair.name for pair in discover(ROOT / "ch1")]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (Row("optimized", "baseline", "slower", None, 0.5, (0.4, 0.6)), 0),
        (Row("optimized", "baseline", "unsure", because("noise"), 1.0, (0.4, 1.6)), 0),
        (Row("optimized", "baseline", "verified"), 0),
        (Row("optimized", "baseline", "skipped", because("needs an NVIDIA GPU")), 0),
        (Row("optimized", "baseline", "invalid", because("wrong answer")), 1),
        (Row("optimized", "baseline", "crashed", because("killed by SIGSEGV")), 1),
    ],
)
def test_only_invalid_and_dead_pairs_are_a_failure_and_every_reason_is_told(row, status, pairs, ran, printed):
    ran.record = record(pair_result("fine"), pair_result(rows=[row]))
    out = printed("--path", pairs, status=status).out
    assert word(row.verdict) in out and reason_of(row) in out


def of_chapter_3(name, size="default", **fields):
    """What a run of this pair of the course could have found."""
    (pair,) = discover(ROOT / "ch3", name)
    as_it_is = {"chapter": "ch3", "source_hash": source_hash(pair), "sizes": pair.sizes[size]}
    return pair_result(name, size=size, **as_it_is, **fields)


DEAD = {"rows": [Row("optimized", "baseline", "crashed", because("no kernel"))], "arms": {}}


@pytest.mark.parametrize(
    ("options", "interrupted", "status"), [([], False, 0), ([], True, 130), (["--only", "s*"], False, 0)]
)
def test_of_a_part_of_a_chapter_whole_classes_are_recorded(options, interrupted, status, ran, kept, tmp_path, printed):
    """Of a run that was interrupted, or was of some pairs only: those that were measured at all sizes of a class."""
    ran.record = record(of_chapter_3("softmax"), of_chapter_3("softmax", "small/4096x256"), interrupted=interrupted)
    out = printed("--chapter", 3, "--record", "--size", "default,small", *options, status=status).out
    is_part = bool(options) or interrupted
    assert kept() == (["ch3.json"] if is_part else ["ch3.json", "ch3_small.json"])
    assert ("not recorded: softmax small: without small/" in out) == is_part
    assert all(f"recorded in {tmp_path / 'kept/nvidia_h200' / file}\n" in out for file in kept())


def test_every_chapter_of_all_is_recorded_in_its_own_file(ran, kept, printed):
    fine, failed = pair_result(chapter="ch1"), of_chapter_3("rms_norm", **DEAD)
    ran.record = record(fine, of_chapter_3("softmax"), failed)
    out = printed("--all", "--record", status=1).out
    assert kept() == ["ch1.json", "ch3.json"]
    assert "not recorded: rms_norm default: failed default\n" in out


@pytest.mark.parametrize("options", [[], ["--verbose"], ["--stats"]])
def test_a_record_is_shown_as_when_it_was_measured(options, pairs, ran, tmp_path, printed):
    files = [tmp_path / name for name in ("r.json", "measured.md", "shown.md")]
    measured = printed("--path", pairs, "--json", files[0], "--markdown", files[1], *options).out
    assert printed("--show", files[0], "--markdown", files[2], *options).out == measured
    assert files[1].read_text() == files[2].read_text()
    assert (re.search(r"\bmean +sd\b", measured) is not None) == ("--stats" in options)
    out, err = printed("--show", files[0], "--markdown", "no/beyond.md", status=2)
    assert "beyond.md: cannot be written" in err and out == ""


def test_a_plot_of_nothing_is_not_drawn_and_no_error(pairs, ran, tmp_path, printed):
    ran.record, plot = record(pair_result(rows=[Row("optimized", "baseline", "verified")])), tmp_path / "p.png"
    assert f"{plot} not drawn: nothing was timed" in printed("--path", pairs, "--check", "--plot", plot).out
    assert not plot.exists()


def test_each_pair_of_several_sizes_has_a_picture_of_its_own(pairs, ran, tmp_path, printed):
    names = ("double", "other")
    ran.record = record(*(pair_result(name, size=size) for name in names for size in ("default", "small")))
    out = printed("--path", pairs, "--plot", tmp_path / "p.png").out
    drawn = [tmp_path / f"p_ch1_{name}.png" for name in names]
    assert sorted(tmp_path.glob("*.png")) == drawn and all(f"drawn: {path}" in out for path in drawn)


def test_limits_are_shown_with_units_and_origin(monkeypatch, printed):
    limits = {
        "dram_bytes": {"measured": 4.1e12, "datasheet": 4.8e12, "how": "a copy", "source": "a datasheet"},
        "fp32_flops": {"measured": 5.12e13, "datasheet": None, "how": "a product", "source": ""},
    }
    monkeypatch.setattr(runner, "survey_apart", lambda device: ({"name": "A device"}, limits))
    out, shown = (
        printed("--limits").out,
        ("A device", "4100 GB/s", "4800 GB/s", "51.2 TFLOP/s", "a copy", "a datasheet"),
    )
    assert [words for words in shown if words not in out] == []


def test_the_table_shows_what_the_record_holds(pairs, ran, printed):
    library = {"library": {"ratio": 0.5, "interval": (0.4, 0.6)}}
    row = Row("optimized/fused", "baseline", "faster", None, 2.345, (2.22, 2.46), library, "tf32", [because("a note")])
    arms = pair_result().arms
    arms["optimized/fused"] = arms["optimized"]
    ran.record = record(pair_result(rows=[row], arms=arms, voided_rounds=3))
    out = printed("--path", pairs).out
    shown = ["NVIDIA H200", "double", "fused", "faster", "2.35x", "[2.22, 2.46]", "tf32", "50 %", "25 %"]
    shown += ["2.00 ms", "1.00 ms", "0.500x", "a note: double", "slowdown: double (3)", "\n1 faster\n"]
    assert [words for words in shown if words not in out] == []
    assert "fast)" not in out


def test_where_the_time_went_is_told_on_request(pairs, ran, printed):
    spent = {"start": 0.25, "check": 1.0, "blocks": 2.0, "total": 4.0}
    dead = pair_result("dead", rows=[], spent_s={"total": 1.0})
    ran.record = record(pair_result(spent_s=spent), dead, survey_s=8.0)
    assert "0.25 s" not in printed("--path", pairs).out
    assert printed("--path", pairs, "--verbose").out.splitlines()[-4:] == [
        "this machine and its limits: 8.00 s",
        "double default: start 0.25 s, check 1.00 s, blocks 2.00 s, rest 0.75 s, total 4.00 s",
        "dead default: rest 1.00 s, total 1.00 s",
        "all: start 0.25 s (5%), check 1.00 s (20%), blocks 2.00 s (40%), rest 1.75 s (35%), total 5.00 s (100%)",
    ]


@pytest.mark.parametrize(("size", "lacks"), [("small/a,small/b", 1), ("small,default", 0), ("all", 0)])
def test_pairs_that_lack_the_size_are_named(size, lacks, pairs, ran, printed):
    said = [line for line in printed("--path", pairs, "--size", size).err.splitlines() if "left out" in line]
    assert said == [f"left out, because they have no size {size}: double"] * lacks


# Files that cannot be written or read


@pytest.mark.parametrize(("failures", "status"), [(9, 1), (1, 0)])
def test_a_record_that_cannot_be_written_costs_no_run(failures, status, pairs, ran, monkeypatch, tmp_path, printed):
    """It is written after each pair: one that could be written in the end is no failure."""
    results = [RecordError("r.json: cannot be written (No space left on device)")] * failures + [DEFAULT] * 9
    monkeypatch.setattr("common.record.record_file.save_record", Mock(wraps=save_record, side_effect=results))
    files = tmp_path / "r.json", tmp_path / "p.png"
    out, err = printed("--path", pairs, "--json", files[0], "--plot", files[1], status=status)
    assert "2.00x  [1.98, 2.02]" in out
    assert err.splitlines() == ["benchmark.py: r.json: cannot be written (No space left on device)"] * status
    assert [path.exists() for path in files] == [not status, True]
    assert status or load_record(files[0]).pairs


@pytest.mark.parametrize(("option", "folder"), [("--record", "recorded"), ("--profile", "results")])
def test_where_a_run_leaves_files_is_looked_at_before_it(option, folder, ran, monkeypatch, tmp_path, printed):
    monkeypatch.setattr(arguments, "ROOT", tmp_path)
    (tmp_path / folder).write_text("no folder")
    said = f"benchmark.py: {tmp_path / folder / 'ch1'}: cannot be written (Not a directory)\n"
    assert printed("--chapter", 1, option, status=2).err == said
    assert ran.asked is None


def test_a_bad_file_among_the_recorded_costs_no_run(pairs, ran, kept, tmp_path, printed):
    path = tmp_path / "kept/nvidia_h200/ch1.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    save_record(record(pair_result(ratio=3.0)), path.with_name("ch1.20260102-030405.json"))
    ran.record = record(pair_result(), kind="cpu")
    *table, said = printed("--path", pairs).out.splitlines()
    assert any("2.00x" in line and "[1.98, 2.02]" in line for line in table)
    assert said.startswith(f"recorded, but not shown: {path}: not JSON (")


STREAMS = ("{} >/dev/full 2>&1; [ $? = 1 ]", "{} <&- >&- 2>&-", "({} || echo Traceback >&2) | true")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("streams", STREAMS, ids=["full", "closed", "a reader that has seen enough"])
def test_streams_that_take_nothing_cost_no_file(streams, tmp_path):
    save_record(record(pair_result()), tmp_path / "r.json")
    command = [sys.executable, ROOT / "benchmark.py", "--show", tmp_path / "r.json", "--markdown", tmp_path / "r.md"]
    line = streams.format(shlex.join(map(str, command)))
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "2.00x" in (tmp_path / "r.md").read_text()


def test_a_pipe_gets_one_whole_record(pairs, ran, tmp_path):
    """A file is written after each pair, and once more in the end."""
    os.mkfifo(pipe := tmp_path / "pipe")
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        assert call("--path", pairs, "--json", pipe) == 0
        assert [pair["name"] for pair in json.load(reader)["results"]] == ["double"]


def test_ctrl_c_before_anything_is_measured_says_so():
    code = """
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as programs do while they import
from common.program import finish
finish(lambda: signal.raise_signal(signal.SIGINT) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


# Colours


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "no_color", "is_plain"),
    [(Terminal, "", False), (Terminal, "1", True), (io.StringIO, "", True), (io.StringIO, "1", True)],
)
def test_a_pipe_and_no_color_give_plain_text(stream, no_color, is_plain, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream())
    (pair,) = discover(ROOT / "ch1", "coalescing")
    with console.measurement_progress(1) as (on_progress, on_neighbours):
        on_progress(pair, "default", "start", 0.0)
        on_neighbours({"make (pid 7)": "kept 1.0 cores busy"})
        on_neighbours({"make (pid 7)": "kept 1.1 cores busy"})  # once is enough
        on_progress(pair, "default", "block 1 of 6", 0.5)
    console.print_record(record(pair_result()), console.make_console())
    out, err = sys.stdout.getvalue(), sys.stderr.getvalue()
    assert "double" in out and "faster" in out
    assert (ESCAPE not in out) is (ESCAPE not in err) is is_plain
    said = "[1] coalescing default\nother load: make (pid 7) kept 1.0 cores busy\n"
    assert not is_plain or err == said


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_names_are_shown_as_they_are_and_give_a_terminal_no_orders(stream, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream())
    monkeypatch.setenv("COLUMNS", "300")
    found, evil = pair_result("[bold]x[red]", size="[i]:100:"), f"a{ESCAPE}[31mb\rc"
    found = replace(found, neighbours=[evil])
    with console.progress() as (tell, _):
        tell(evil, 0, 1, evil)
    console.print_record(record(found, name=f"GPU{ESCAPE}[31m [/bold]\ud800"), console.make_console())
    out = sys.stdout.getvalue() + sys.stderr.getvalue()
    words = ["[bold]x[red]", "[i]:100:", r"GPU\x1b[31m [/bold]\ud800", r"a\x1b[31mb\rc"]
    assert [each for each in words if each not in out] == []
    assert f"{ESCAPE}[31mb" not in out and f"GPU{ESCAPE}" not in out


# From the shell, for real


in_one_process = pytest.mark.xdist_group("real run")  # with pytest -n: it is run once for both tests


@pytest.fixture(scope="module")
def real_run(tmp_path_factory):
    """The template, which is measured, and a wrong pair, run as a user does."""
    folder = tmp_path_factory.mktemp("real")
    chatty = "import os\nos.system('echo chatter >&2')\nprint('chatter', flush=True)\nreturn 0 * x"
    write_pair(folder / "pairs", "liar", version(chatty))
    write_template(folder / "pairs")
    options = ["--fast", "--json", folder / "r.json", "--plot", folder / "p.png", "--device", "cpu"]
    return shell("--path", folder / "pairs", *options), folder


@in_one_process
@pytest.mark.rest
def test_a_run_in_a_pipe_is_a_plain_table_and_its_progress_goes_to_stderr(real_run):
    done, _ = real_run
    for part in (ESCAPE, "chatter"):  # what a pair prints is its own affair
        assert part not in done.stdout + done.stderr
    progress = [line for line in done.stderr.splitlines() if not line.startswith("other load")]
    assert progress == ["[1] blend cpu", "[2] liar default"]
    assert "wrong answer at size check (" in done.stdout and "): liar" in done.stdout
    assert "cores), fast" in done.stdout
    assert done.returncode == 1


@in_one_process
@pytest.mark.rest
def test_a_run_leaves_a_valid_record_and_a_plot(real_run):
    _, folder = real_run
    kept = load_record(folder / "r.json")
    blend, liar = kept.pairs
    assert (blend.name, liar.name, liar.rows[0].ratio) == ("blend", "liar", None)
    assert blend.rows[0].verdict in ("faster", "slower", "same", "unsure")
    assert kept.environment["fast"] and kept.environment["device"]["kind"] == "cpu"
    assert kept.environment["argv"][:2] == ["--path", "pairs"]  # and no folder of this machine
    assert {"dram_bytes", "dram_read_bytes", "dram_write_bytes", "fp64_flops", "fp32_flops"} <= set(kept.limits)
    assert all(limit["measured"] > 0 for limit in kept.limits.values())
    assert blend.limit_s == pytest.approx(blend.cost["dram_bytes"] / kept.limits["dram_bytes"]["measured"])
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("was_killed", [False, True])
def test_test_tools_are_installed_at_their_pins_where_that_was_killed_too(was_killed, tmp_path):
    for name in ("Makefile", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    for stamp in [".adding"] * was_killed + [".ready"]:
        (tmp_path / ".venv" / stamp).touch()
    (tmp_path / "python").write_text('#!/bin/sh\necho "$@" > asked\n')
    (tmp_path / "python").chmod(0o755)
    subprocess.run(["make", "-s", ".venv/.tested", "PY=./python"], cwd=tmp_path, check=True)
    asked = (tmp_path / "asked").read_text().split()
    assert ("--force-reinstall" in asked) is was_killed
    pins = (tmp_path / asked[asked.index("-c") + 1]).read_text().splitlines()
    assert [pin for pin in pins if not pin.startswith("#")] == re.findall("^[a-z].*==.*", "\n".join(pins), re.MULTILINE)
    assert re.search(r"^pytest==", "\n".join(pins), re.MULTILINE)
    assert {path.name for path in (tmp_path / ".venv").iterdir()} == {".pins", ".ready", ".tested"}


# Two records


def saved(folder, file, *pairs, **environment):
    save_record(record(*pairs, **environment), folder / file)
    return folder / file


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ((2.0, 1.9, 2.1), (2.0, 1.9, 2.1), 0), ((2.0, 1.9, 2.1), (3.0, 2.9, 3.1), 0),
        ((2.0, 1.9, 2.1), (1.95, 1.8, 2.0), 0),  # the intervals overlap
        ((2.0, 1.9, 2.1), (1.87, 1.85, 1.89), 0),  # they do not, by less than the margin
        ((2.0, 1.9, 2.1), (1.5, 1.4, 1.6), 3), ((1.0, 0.99, 1.01), (0.5, 0.4, 0.6), 3),
        ((2.0, 1.9, 2.1), None, 3),
    ],
)  # fmt: skip
def test_a_regression_is_status_3(old, new, status, tmp_path, printed):
    def row(found):
        if not found:
            return Row("optimized", "baseline", "invalid", because("wrong answer"))
        return Row("optimized", "baseline", stats.verdict(stats.Estimate(*found)), None, found[0], found[1:])

    files = [saved(tmp_path, f"{i}.json", pair_result(rows=[row(found)])) for i, found in enumerate((old, new))]
    _, title, line, summary = printed("--compare", *files, status=status).out.splitlines()
    assert title == "double"
    assert line.split()[:2] == ["optimized", "REGRESSED" if status else "ok"]
    assert summary == f"{int(status == 3)} of 1 regressed"


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("invalid", "faster", 0), ("invalid", "invalid", 0), ("faster", "skipped", 0), ("verified", "verified", 0),
        ("skipped", "crashed", 0), ("verified", "invalid", 3), ("faster", "crashed", 3),
    ],
)  # fmt: skip
def test_a_version_without_a_speedup_has_regressed_only_where_it_was_right_and_fails(
    old, new, status, tmp_path, printed
):
    rows = [pair_result().rows if each == "faster" else [Row("optimized", "baseline", each)] for each in (old, new)]
    files = [saved(tmp_path, f"{i}.json", pair_result(rows=of)) for i, of in enumerate(rows)]
    out = printed("--compare", *files, status=status).out.splitlines()
    assert out[2].split()[1:3] == (["REGRESSED", *out[2].split()[2:3]] if status else ["not", "timed"])
    said = "1 of 1 regressed" if status else "nothing was timed in both: regressions cannot be determined"
    assert out[-1] == said and any(line.startswith("not timed: ") for line in out) is not bool(status)


def test_records_are_compared_row_by_row_and_devices_are_named(tmp_path, printed):
    old = saved(tmp_path, "old.json", pair_result("kept"), pair_result("gone"), pair_result("kept", size="small"))
    rows = (pair_result("kept", ratio=1.0), pair_result("fresh"))
    out = printed("--compare", old, saved(tmp_path, "new.json", *rows), status=3).out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    regressed = "optimized REGRESSED 2.00x 1.00x faster -> same [0.990, 1.01] [1.98, 2.02]"
    assert lines[1:6] == ["kept", regressed, "gone", "optimized missing 2.00x faster [1.98, 2.02]", "kept small"]
    assert lines[-2:] == ["missing: the new record lacks it", "1 of 1 regressed"]
    out = printed("--compare", old, saved(tmp_path, "new.json", *rows, name="Another")).out
    assert "different devices, NVIDIA H200 and Another: regressions cannot be determined" in out
    assert "REGRESSED" not in out and " ok " not in out
    other = saved(tmp_path, "other.json", pair_result("fresh"))
    assert "has no row in common" in printed("--compare", old, other, status=2).err


# Profiles


def test_profile_of_the_command_line_goes_to_results(pairs, ran, monkeypatch, tmp_path):
    profiled = Mock()
    monkeypatch.setattr(benchmark, "ROOT", tmp_path)
    monkeypatch.setattr(profile_commands, "profile_pairs", profiled)
    assert call("--path", pairs, "--profile", "--device", "cpu") == 0
    profiled.assert_called_once_with(discover(pairs), tmp_path / "results" / "pairs", "cpu")


@pytest.mark.parametrize("words", [["benchmark.py", "--list"], ["learn.py", "next"], ["-m", "tools", "record"]])
def test_without_the_courses_packages_a_program_ends_with_one_line(words):
    done = subprocess.run([sys.executable, "-S", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "needs the packages msgspec, numpy" in done.stderr and "source .venv/bin/activate" in done.stderr


@pytest.mark.rest
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_lab_opens_a_copy_without_outputs_and_leaves_the_notebook_as_it_is(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".venv", "notebooks"):
        (tmp_path / name).mkdir()
    for stamp in ("requirements.txt", ".venv/.ready"):
        (tmp_path / stamp).touch()
    kept = tmp_path / "notebooks/ch1_one.ipynb"
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": 1, "source": "1"}
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    kept.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    before = kept.read_bytes()
    (tmp_path / "python").write_text(f'#!/bin/sh\n[ "$3" = lab ] && echo "$@" && exit\nexec {sys.executable} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    done = subprocess.run(
        ["make", "-s", "lab", "PY=./python"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    copy = tmp_path / done.stdout.split("/lab/tree/")[1].strip()
    assert copy == tmp_path / "work/ch1_one.ipynb" and kept.read_bytes() == before
    assert [each["outputs"] for each in json.loads(copy.read_text())["cells"]] == [[]]


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize(
    ("argument", "said"), [("CHAPTER=9", "no notebook of chapter .9.: use CHAPTER=N"), ("", "make lab: .* work/")]
)
def test_make_lab_says_what_it_cannot_open_before_it_installs_or_opens_anything(argument, said, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/ch1_one.ipynb").touch()
    (tmp_path / "work").write_text("a file")
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "python").write_text("#!/bin/sh\necho called >> called\n")
    (tmp_path / "python").chmod(0o755)
    if not argument:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv/.ready").touch()
    command = ["make", "-s", "lab", "PY=./python", "PYTHON=./python", *argument.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and re.search(said, done.stderr) and "Errno" not in done.stderr
    assert not (tmp_path / "called").exists()
