"""Whatever a pair, a user, a disk or another process does to a run: it is told in a line, and nobody is left behind."""

import itertools
import os
import re
import signal
import struct
import tempfile
import time
from contextlib import suppress
from functools import partial
from multiprocessing import reduction
from pathlib import Path

import psutil
import pytest
from faults import DEATHS, HARMLESS, HUNG, IN_BOTH_VERSIONS, LEFT_BEHIND, ORPHANS, SKIPPED, leaves, stuck_when_timed
from liars.child import measure_quickly
from samples import HONEST, PATIENCE_S, is_alive, reason_of, row_of, version, wait_until, write_pair

from common.engine import runner
from common.engine.runner import has_failed
from common.isolation import forkserver, interrupt, process_tree, worker
from common.isolation.pipe import MAY_COMPILE, End
from common.pairs.pair import discover
from common.record.outcome import WITH_SPEEDUP
from common.record.record_file import load_record, save_record

run_pairs = partial(runner.run_pairs, device="cpu")
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to look for processes")


pytestmark = [
    pytest.mark.xdist_group("faults"),  # with pytest -n, one process: its pairs die once for all tests
    pytest.mark.usefixtures("signals_as_in_a_terminal"),
]


# Pairs that take their process with them

HUNG_S, SLOW_S = 1.5, 60.0  # without a sign of progress: long enough to hang in, and for a busy machine
MOST_OUTPUT = 96 << 20


@pytest.fixture(scope="module")
def wrecks(machine, tmp_path_factory):
    """(record, folder, processes left behind) of one run over all of them."""
    folder, call = tmp_path_factory.mktemp("wrecks"), worker.call
    wrong = {name: text for name, (text, _) in {**DEATHS, **SKIPPED, **LEFT_BEHIND}.items()}
    for name, text in {**wrong, **HARMLESS}.items():
        write_pair(folder, name, text, text if name in IN_BOTH_VERSIONS else None)

    def impatient(function, job, errand=None, **options):
        return call(function, job, errand, **options, deadline_s=HUNG_S if job.pair.name in HUNG else SLOW_S)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "call", impatient)
        patch.setattr(runner, "_child_main", measure_quickly)
        patch.setattr(worker, "MOST_OUTPUT", MOST_OUTPUT)
        record = run_pairs(discover(folder), fast=True)
    left = [pid for file in folder.glob("*.pid") for pid in map(int, file.read_text().split()) if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return record, folder, left


VERDICTS = {"crashed": DEATHS, "skipped": SKIPPED, "invalid": LEFT_BEHIND}


@pytest.mark.rest
@pytest.mark.parametrize(("verdict", "name"), [(verdict, name) for verdict in VERDICTS for name in VERDICTS[verdict]])
def test_a_pair_that_dies_or_cannot_run_or_leaves_something_running_says_how(verdict, name, wrecks):
    row = row_of(wrecks[0], name)
    assert (row.verdict, row.ratio, row.interval) == (verdict, None, None)
    assert re.search(VERDICTS[verdict][name][1], reason_of(row)), reason_of(row)
    assert reason_of(row).isprintable()


@pytest.mark.rest
@pytest.mark.parametrize("name", HARMLESS)
def test_the_pairs_around_them_are_measured(name, wrecks):
    row = row_of(wrecks[0], name)
    assert row.verdict in WITH_SPEEDUP, reason_of(row)
    assert row.ratio > 0


@pytest.mark.rest
@needs_proc
def test_nobody_is_left_behind(wrecks):
    _, folder, left = wrecks
    noted = {file.stem.removeprefix("optimized_") for file in folder.glob("*.pid")}
    assert noted == set(ORPHANS)  # each did start one
    assert left == []


def test_a_process_that_ends_while_the_family_is_looked_at_hides_nobody(monkeypatch):
    """Whose parent is gone before it is asked for its children is not seen by that look."""
    child, look, seen = psutil.Popen(["sleep", "600"]), process_tree.descendants, [set()]
    monkeypatch.setattr(process_tree, "descendants", lambda: seen.pop() if seen else look())
    process_tree.end_all_but(look() - {psutil.Process(child.pid)})
    assert not is_alive(child.pid)


@pytest.mark.rest
def test_a_wrecked_run_is_a_failed_run_and_its_record_can_be_kept(wrecks, tmp_path):
    assert has_failed(wrecks[0])
    save_record(wrecks[0], tmp_path / "r.json")
    assert [pair.name for pair in load_record(tmp_path / "r.json").pairs] == [pair.name for pair in wrecks[0].pairs]


def answers(say):
    say("version", 0.5)
    return 42


@pytest.mark.parametrize("step", ["mkdtemp", "start"])
def test_a_machine_with_no_room_for_a_process_is_one_line(step, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    target = (tempfile, "mkdtemp") if step == "mkdtemp" else (forkserver.context.Process, "start")
    monkeypatch.setattr(*target, fail)
    with pytest.raises(worker.ChildFailed, match=r"^no process can be started here \(No space left on device\)$"):
        worker.call(print)
    monkeypatch.undo()
    assert worker.call(answers) == 42  # and the next one starts


def writes(content, say):
    """Writes into the pipe past what is made for it."""
    os.write(say._pipe.fileno(), content)
    os._exit(5)


@pytest.mark.parametrize("content", [struct.pack("!i", 1000) + b"version", struct.pack("!i", 4) + b"junk"])
def test_version_a_message_is_a_death_as_any_other(content):
    with pytest.raises(worker.ChildFailed, match=r"^exited with status 5 before it was done$"):
        worker.call(writes, content)


def test_who_listens_late_takes_nobody_for_dead():
    """A run that was stopped and goes on: its pair has been done for long."""
    late = lambda stage, fraction: time.sleep(1.2)  # noqa: E731
    assert worker.call(answers, on_progress=late, deadline_s=1.0) == 42


def compiles(seconds, afterwards_s, line):
    line("pilot", MAY_COMPILE)
    time.sleep(seconds)
    line("pilot", 0.0)
    time.sleep(afterwards_s)
    return 42


@pytest.mark.rest
def test_a_library_that_compiles_may_be_silent_for_longer(monkeypatch):
    monkeypatch.setattr(worker, "COMPILE_FACTOR", 2)
    said = list[tuple[str, float]]()
    assert worker.call(compiles, 1.2, 0.0, deadline_s=1.0, on_progress=lambda *word: said.append(word)) == 42
    assert said == [("pilot", 0.0), ("pilot", 0.0)]
    with pytest.raises(worker.ChildFailed, match=r"^hung: no progress for 2 s$"):
        worker.call(compiles, 60.0, 0.0, deadline_s=1.0)


def computes(line):
    """All the time, on several threads or one."""
    while True:
        sum(range(10_000))


@pytest.mark.rest
@pytest.mark.parametrize(("function", "arguments"), [(computes, ()), (compiles, (60.0, 0.0))])
def test_who_computes_is_too_slow_and_who_waits_hangs(function, arguments):
    how = "hung: " if arguments else "too slow, or without end: at work, but "
    with pytest.raises(worker.ChildFailed, match=f"^{how}no progress for 5 s$") as failure:
        worker.call(function, *arguments, deadline_s=1.0 if arguments else 5.0)
    assert failure.value.end == End.HUNG


# Ctrl-C is for where a run waits


def test_an_interrupt_strikes_where_a_run_waits_and_nowhere_else():
    before = signal.getsignal(signal.SIGINT)
    with interrupt.hold_signals():
        signal.raise_signal(signal.SIGINT)
        with interrupt.hold_signals():  # as `run_pairs` does in benchmark.py's
            assert interrupt.was_interrupted()
        with pytest.raises(KeyboardInterrupt), interrupt.interruptible():
            pytest.fail("waited")
    assert signal.getsignal(signal.SIGINT) is before
    with interrupt.interruptible():  # a note is of its own run
        pass
    with pytest.raises(KeyboardInterrupt), interrupt.hold_signals(), interrupt.interruptible():
        signal.raise_signal(signal.SIGTERM)


def test_what_tidies_up_after_an_interrupt_is_not_interrupted():
    tidied = []
    with interrupt.hold_signals():
        try:
            with interrupt.interruptible():
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            tidied.append(True)
    assert tidied


@pytest.mark.rest
@pytest.mark.skipif(forkserver.context.get_start_method() != "forkserver", reason="needs a forkserver")
def test_an_interrupt_while_a_child_is_asked_for_leaves_no_traceback(monkeypatch, capfd):
    """It closed the child's pipe after the server had the other end: the child read nothing and said so."""
    forkserver.stop()  # the next one writes to what capfd reads
    send = reduction.sendfds

    def send_and_interrupt(*arguments):
        send(*arguments)
        signal.raise_signal(signal.SIGINT)

    with interrupt.hold_signals():
        forkserver.start({})
        worker.call(hello)  # it has imported what it needs
        monkeypatch.setattr(reduction, "sendfds", send_and_interrupt)
        monkeypatch.setattr(forkserver, "stop", partial(delayed, forkserver.stop))
        with pytest.raises(KeyboardInterrupt):
            worker.call(hello)
    assert capfd.readouterr().err == ""


def hello(line):
    return "hello"


def delayed(function):
    time.sleep(0.5)  # as long as the server needs to fork the child, and this one to see the end of its pipe
    function()


def test_a_signal_that_is_ignored_stays_ignored():
    """As SIGHUP is under nohup."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupt.hold_signals(), interrupt.interruptible():
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.was_interrupted()
        with interrupt.hold_signals():
            with interrupt.hold_signals():
                signal.raise_signal(signal.SIGTERM)
            assert interrupt.was_interrupted()  # the inner one is no end of it
    finally:
        signal.signal(signal.SIGINT, before)


# Ctrl-C and a polite kill, as a terminal and a system send them: to benchmark.py and all that it started


@pytest.fixture
def stuck_in(launch, tmp_path):
    """stuck_in(pairs, ...): benchmark.py where one of them does not go on. None: it leaves a daemon behind."""

    def start(pairs, *options):
        stuck = leaves("daemon", f"open({str(tmp_path / 'stuck')!r}, 'w').close()\ntime.sleep(600)")
        for name, text in pairs.items():
            write_pair(tmp_path / "pairs", name, text or stuck)
        running = launch("--path", "pairs", *options)
        wait_until((tmp_path / "stuck").exists, running)
        return running

    return start


def interrupted(running, said):
    """What it has printed until it ended so."""
    out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, err.splitlines()[-1]) == (130, said)
    assert "Traceback" not in out + err
    return out


@needs_proc
def test_an_interrupted_benchmark_keeps_what_it_has_and_leaves_nobody(launch, stuck_in, tmp_path):
    running = stuck_in({"a": version(), "b": None, "c": version()}, "--check", "--json", "r.json")
    assert [pair.name for pair in load_record(tmp_path / "r.json").pairs] == ["a"]  # saved as soon as it was there
    for _ in range(2):  # impatience changes nothing
        os.killpg(running.pid, signal.SIGINT)
    out = interrupted(running, "interrupted after 1 of 3 pairs")
    assert any(re.match(r"  optimized +verified\b", line) for line in out.splitlines()), out
    record = load_record(tmp_path / "r.json")
    assert [(pair.name, pair.rows[0].verdict) for pair in record.pairs] == [("a", "verified")]
    assert record.environment["interrupted"]
    wait_until(lambda: not launch.left())


@pytest.mark.rest
@needs_proc
def test_a_benchmark_that_is_killed_leaves_nobody_either(launch, stuck_in):
    stuck_in({"a": None}, "--check").kill()
    wait_until(lambda: not launch.left())  # the server needs a moment to see it


@pytest.mark.rest
@needs_proc
def test_a_benchmark_interrupted_in_a_timed_call_keeps_the_pairs_before(launch, stuck_in, tmp_path):
    pairs = {"a": version(), "z": stuck_when_timed(tmp_path / "stuck")}
    running = stuck_in(pairs, "--fast", "--device", "cpu", "--json", "r.json")
    os.killpg(running.pid, interrupt.SIGNALS[-1])
    interrupted(running, "interrupted after 1 of 2 pairs")
    wait_until(lambda: not launch.left())
    assert sorted(os.listdir(tmp_path)) == ["pairs", "r.json", "stuck"]
    record = load_record(tmp_path / "r.json")
    assert record.environment["interrupted"]
    assert [(pair.name, {*pair.arms}) for pair in record.pairs] == [("a", {"baseline", "optimized", "control"})]
    assert record.pairs[0].rows[0].verdict in WITH_SPEEDUP, reason_of(record.pairs[0].rows[0])


def listens(pid):
    """Does this process catch every signal that interrupts a run?"""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and all(int(caught[1], 16) >> number - 1 & 1 for number in interrupt.SIGNALS)


@pytest.fixture
def checked_run(launch, tmp_path):
    """Starts a run of two pairs that cannot end while there is a file `held`, and waits until it listens to signals."""
    waits = f"while Path({str(tmp_path / 'held')!r}).exists(): time.sleep(0.01)\n{HONEST}"
    for name in ("a", "b"):
        write_pair(tmp_path / "pairs", name, version(waits, extra="import time\nfrom pathlib import Path"))

    def start():
        running = launch("--path", "pairs", "--check", "--device", "cpu", "--json", "r.json")
        wait_until(lambda: running.poll() is not None or listens(running.pid))
        return running

    return start


@pytest.mark.rest
@needs_proc
def test_an_interrupt_at_any_moment_is_status_130(checked_run, launch, tmp_path):
    """Or else it came too late: the run was done, as may be at any moment but the first."""
    running, begin = checked_run(), time.monotonic()
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    whole_s = time.monotonic() - begin
    (tmp_path / "held").touch()  # while the first moment lasts
    moments = (0.0, 0.3, 0.6, 0.9)  # imports, the server's imports, pairs, the table
    for moment, number in zip(moments, itertools.cycle(interrupt.SIGNALS), strict=False):
        (tmp_path / "r.json").unlink(missing_ok=True)
        running = checked_run()
        time.sleep(moment * whole_s)
        with suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        out, err = running.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in out + err
        wait_until(lambda: not launch.left())  # what has nothing to do ends by itself
        (tmp_path / "held").unlink(missing_ok=True)
        assert set(os.listdir(tmp_path)) <= {"pairs", "r.json"}
        kept = load_record(tmp_path / "r.json").pairs if (tmp_path / "r.json").exists() else []
        assert running.returncode == 130 or (running.returncode == 0 and len(kept) == 2 and moment > 0), (number, err)
