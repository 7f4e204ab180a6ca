"""Who else uses this machine is noticed and named, and never is it a run itself."""

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pynvml
import pytest
from samples import HONEST, PATIENCE_S, version, wait_until, write_pair

from common.machine import background_load
from common.machine.background_load import Snapshot, load_between, take_snapshot
from common.record.record_file import load_record

ME = psutil.Process()
SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"  # seconds of CPU time
TICKS_S = 0.05  # a few ticks of the clock that CPU time is told by


def seen(at_s, busy_s=0.0, ours_s=0.0, others=None, at_work=None):
    return Snapshot(at_s, busy_s, ours_s, others or {}, at_work or {})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (seen(0), seen(10), {}),
        (seen(0, 5, 5), seen(10, 15, 15), {}),  # ten seconds of ours
        (seen(0, 5, 5), seen(10, 25, 15), {"other processes": "kept 1.0 cores busy"}),
        (seen(0, 0, 0, {ME: 5}), seen(10, 9, 0, {ME: 14}), {"ME": "kept 0.9 cores busy"}),
        (seen(0), seen(10, 9, 0, {ME: 9}), {"ME": "kept 0.9 cores busy"}),  # started meanwhile
        (seen(0, 0, 0, {ME: 5}), seen(10, 1, 0, {ME: 6}), {}),  # a tenth of a core
        (seen(0, at_work={"a": "was here"}), seen(10), {"a": "was here"}),
        (seen(0), seen(10, at_work={"a": "is here"}), {"a": "is here"}),
    ],
)
def test_what_is_said_of_two_looks(before, after, expected, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(background_load, "_process_name", lambda pid: "ME" if pid == ME.pid else "")
    assert load_between(before, after) == expected


def test_on_a_server_its_own_services_are_not_worth_a_word(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    assert load_between(seen(0), seen(10, 50)) == {}
    assert load_between(seen(0), seen(10, 90)) == {"other processes": "kept 9.0 cores busy"}


def spent_s(pid):
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def ended_s():
    """CPU time of children of ours that have ended."""
    times = ME.cpu_times()
    return times.children_user + times.children_system


@pytest.fixture
def spinning(tmp_path):
    """A process that is no child of ours and spins: its number."""
    (tmp_path / "spin.py").write_text(SPIN.format(600))
    command = f"{sys.executable} {tmp_path / 'spin.py'} >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout)
    try:
        if psutil.Process(pid).ppid() == os.getpid():
            pytest.skip("orphans fall to this process, as to the first of a container: whatever it starts is its own")
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="starts it by a shell")
def test_a_busy_process_is_named(spinning, monkeypatch):
    monkeypatch.setattr(background_load, "BUSY_CORES", 0.0)  # a loaded machine may give it a small share
    told, before_s = [], spent_s(spinning)
    with background_load.watch(None, told.append) as found:
        wait_until(lambda: spent_s(spinning) > before_s + TICKS_S)
    (who,) = [who for who in found if f"(pid {spinning})" in who]
    assert re.fullmatch(r"python[\d.]* spin.py \(pid \d+\)", who)
    assert re.fullmatch(r"kept \d\.\d cores busy", found[who])
    assert told[1:] == [found]


def test_where_nothing_is_timed_nobody_looks(monkeypatch):
    monkeypatch.setattr(background_load, "take_snapshot", lambda uuid: pytest.fail("looked"))
    with background_load.watch(None, print, on=False) as found:
        pass
    assert found == {}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody counts for processes that have ended")
def test_what_children_used_is_ours_when_they_have_ended_too():
    before, ended_before_s = take_snapshot(None), ended_s()
    subprocess.run([sys.executable, "-c", SPIN.format(0.4)], check=True)
    then_waits = [sys.executable, "-c", SPIN.format(0.2) + "\nprint(flush=True)\ninput()"]
    living = subprocess.Popen(then_waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        living.stdout.readline()
        living_s, spent_by_ended_s, after = spent_s(living.pid), ended_s() - ended_before_s, take_snapshot(None)
    finally:
        living.communicate(b"\n")
    assert living_s > 0.2 - TICKS_S
    assert spent_by_ended_s > 0.4 - TICKS_S
    assert after.ours_s - before.ours_s > living_s + spent_by_ended_s - TICKS_S
    assert living.pid not in {process.pid for process in after.others}


# A GPU, as a driver tells of it


def processes(*pids):
    return lambda handle: [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]


def test_who_else_uses_the_gpu_is_named(monkeypatch):
    monkeypatch.setattr(background_load, "nvml_handle", lambda uuid: uuid)
    child = subprocess.Popen(["sleep", "600"])
    nobody = 2**22 + 1  # beyond any number that Linux gives
    told = processes(os.getpid(), child.pid, os.getppid(), nobody)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", told)
    try:
        found = take_snapshot("GPU-1").at_work
    finally:
        child.kill()
        child.wait()
    on_gpu = {who for who, what in found.items() if what == "also uses this GPU"}
    assert {int(re.search(r"\(pid (\d+)\)$", who)[1]) for who in on_gpu} == {os.getppid(), nobody}
    assert f"a process that is not visible here (pid {nobody})" in on_gpu


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_GPU_IS_LOST])
def test_of_a_driver_that_does_not_tell_nothing_is_said(error, monkeypatch):
    def fail(handle):
        raise pynvml.NVMLError(error)

    monkeypatch.setattr(background_load, "nvml_handle", lambda uuid: uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", fail)
    assert "also uses this GPU" not in take_snapshot("GPU-1").at_work.values()


# Another run of the course


@pytest.mark.rest
@pytest.mark.skipif(sys.platform == "win32", reason="its children are not told from others")
def test_two_runs_at_once_both_say_so(launch, tmp_path):
    """The first is held in its pair until the second is in its own, which is held until the first is done.

    So the second finds the first at work when it looks before its pair, and the first the second after its own.
    """
    runs, here = {}, f"Path({str(tmp_path)!r})"
    for me, until in (("one", "two.in"), ("two", "one.out")):
        waits = f"({here} / '{me}.in').touch()\nwhile not ({here} / '{until}').exists(): time.sleep(0.01)\n{HONEST}"
        write_pair(tmp_path / me, "p", version(waits, extra="import time\nfrom pathlib import Path"))
        runs[me] = launch("--path", me, "--fast", "--device", "cpu", "--json", f"{me}.json")
        wait_until((tmp_path / f"{me}.in").exists, runs[me])
    for me, other in (("one", "two"), ("two", "one")):
        out, err = runs[me].communicate(timeout=PATIENCE_S)
        (tmp_path / f"{me}.out").touch()
        said = f"benchmark.py (pid {runs[other].pid}) is also measuring pairs of the course"
        assert said in err and said in out
        assert any(said in text for pair in load_record(tmp_path / f"{me}.json").pairs for text in pair.neighbours)
        assert f"benchmark.py (pid {runs[me].pid})" not in out + err
