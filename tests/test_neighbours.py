"""Who else uses this machine is noticed and named, and never is it a run itself."""

import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pynvml
import pytest
from samples import half, write_pair

from common import neighbours
from common.neighbours import Look, look, used
from common.pair import ROOT
from common.result import load_record

ME = psutil.Process()
SPIN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


def seen(at_s, busy_s=0.0, ours_s=0.0, others=None, at_work=None):
    return Look(at_s, busy_s, ours_s, others or {}, at_work or {})


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
    monkeypatch.setattr(neighbours, "_name", lambda pid: "ME" if pid == ME.pid else "")
    assert used(before, after) == expected


def test_on_a_server_its_own_services_are_not_worth_a_word(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    assert used(seen(0), seen(10, 50)) == {}
    assert used(seen(0), seen(10, 90)) == {"other processes": "kept 9.0 cores busy"}


@pytest.fixture
def spinning(tmp_path):
    """A process that is no child of ours and keeps a core busy: its number."""
    (tmp_path / "spin.py").write_text(SPIN.format(60))
    command = f"{sys.executable} {tmp_path / 'spin.py'} >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout)
    yield pid
    os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="starts it by a shell")
def test_a_busy_process_is_named(spinning):
    told = []
    with neighbours.watch(None, told.append) as found:
        time.sleep(1)
    (who,) = [who for who in found if f"(pid {spinning})" in who]
    assert re.fullmatch(r"python[\d.]* spin.py \(pid \d+\)", who)
    assert re.fullmatch(r"kept \d\.\d cores busy", found[who])
    assert told == [{}, found] or who in told[-1]


def test_where_nothing_is_timed_nobody_looks(monkeypatch):
    monkeypatch.setattr(neighbours, "look", lambda uuid: pytest.fail("looked"))
    with neighbours.watch(None, print, on=False) as found:
        pass
    assert found == {}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody counts for processes that have ended")
def test_what_children_used_is_ours_when_they_have_ended_too():
    before = look(None)
    subprocess.run([sys.executable, "-c", SPIN.format(0.5)], check=True)
    living = subprocess.Popen([sys.executable, "-c", SPIN.format(60)])
    time.sleep(0.5)
    after = look(None)
    living.kill()
    living.wait()
    spent = psutil.Process().cpu_times()
    assert spent.children_user > 0.2
    assert after.ours_s - before.ours_s > 0.4  # of a second, on a machine that is busy otherwise
    assert living.pid not in {process.pid for process in after.others}


# A GPU, as a driver tells of it


def processes(*pids):
    return lambda handle: [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]


def test_who_else_uses_the_gpu_is_named(monkeypatch):
    monkeypatch.setattr(neighbours, "nvml_handle", lambda uuid: uuid)
    child = subprocess.Popen(["sleep", "60"])
    nobody = 2**22 + 1  # beyond any number that Linux gives
    monkeypatch.setattr(
        pynvml, "nvmlDeviceGetComputeRunningProcesses", processes(os.getpid(), child.pid, os.getppid(), nobody)
    )
    found = look("GPU-1").at_work
    child.kill()
    child.wait()
    on_gpu = {who for who, what in found.items() if what == "uses this GPU, too"}
    parent = f"{psutil.Process(os.getppid()).name()} (pid {os.getppid()})"
    assert on_gpu == {parent, f"a process not to be seen from here (pid {nobody})"}


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_GPU_IS_LOST])
def test_of_a_driver_that_does_not_tell_nothing_is_said(error, monkeypatch):
    def fail(handle):
        raise pynvml.NVMLError(error)

    monkeypatch.setattr(neighbours, "nvml_handle", lambda uuid: uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", fail)
    assert "uses this GPU, too" not in look("GPU-1").at_work.values()


# Another run of the course


@pytest.mark.skipif(sys.platform == "win32", reason="its children are not told from others")
def test_two_runs_at_once_both_say_so(tmp_path):
    """Each waits in each pair for the other; one is slower, so that each at some look finds the other at work."""
    runs = {}
    for me, other, slower_s in (("one", "two", 1.5), ("two", "one", 0.0)):
        for pair in ("p", "q"):
            meet = f"""
                if not seen:
                    seen.append(True)
                    Path({str(tmp_path / f"{pair}-{me}")!r}).touch()
                    while not Path({str(tmp_path / f"{pair}-{other}")!r}).exists():
                        time.sleep(0.01)
                    time.sleep({slower_s})
                return 2 * x + w_shift
            """
            write_pair(tmp_path / me, pair, half(meet, extra="import time\nfrom pathlib import Path\nseen = []"))
        command = [
            sys.executable,
            ROOT / "benchmark.py",
            "--path",
            me,
            "--fast",
            "--device",
            "cpu",
            "--json",
            f"{me}.json",
        ]
        runs[me] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for me, other in (("one", "two"), ("two", "one")):
        out, err = runs[me].communicate(timeout=120)
        said = f"benchmark.py (pid {runs[other].pid}) is measuring pairs of the course, too"
        assert said in err
        assert said in out
        assert any(said in text for pair in load_record(tmp_path / f"{me}.json").pairs for text in pair.neighbours)
        assert f"benchmark.py (pid {runs[me].pid})" not in out + err
