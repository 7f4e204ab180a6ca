"""Processes: what a child gets of its user's environment, what Ctrl-C leaves behind, how a program begins."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from common.pairs.pair import ROOT

PROBE = """
import gc, os, sys
sys.path.insert(0, {root!r})

def look(say):
    given = {{"triton", "torch._dynamo"}} - sys.modules.keys() or gc.get_freeze_count() > 100_000
    from triton import knobs
    wanted = "TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION", "TRITON_CACHE_DIR"
    return [os.environ.get(name) for name in wanted], knobs.runtime.interpret, given

if __name__ == "__main__":
    from common.isolation import forkserver, worker
    from common.pairs.interpreter import INTERPRETED
    forkserver.prefer("triton")
    print(worker.call(look), worker.call(look, environment=INTERPRETED), os.environ["TRITON_INTERPRET"])
"""


@pytest.mark.rest
def test_a_child_interprets_where_it_is_told_to_and_not_where_its_user_does(tmp_path):
    """Whichever it does, it is forked with Triton imported, and its garbage collection leaves that alone."""
    pytest.importorskip("triton")
    (probe := tmp_path / "probe.py").write_text(PROBE.format(root=str(ROOT)))
    chosen = {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, probe], env={**os.environ, **chosen}, capture_output=True, text=True, check=False
    )
    place = f"None, {str(tmp_path)!r}"
    assert run.stdout == f"([None, {place}], False, True) (['1', {place}], True, True) 1\n", run.stderr


WAITS = """
import sys, time
sys.path.insert(0, {root!r})
from tempfile import TemporaryDirectory
from common import program
from common.isolation import worker

def sleep(say):
    say("asleep", 0.0)
    time.sleep(600)

def main():
    with TemporaryDirectory(prefix="exercise-"):
        worker.call(sleep, on_progress=lambda *_: print("asleep", flush=True))

if __name__ == "__main__":
    program.finish(main)
"""


@pytest.mark.rest
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted\n"), (signal.SIGTERM, "")])
@pytest.mark.usefixtures("signals_as_in_a_terminal")
def test_an_end_leaves_nothing(number, said, tmp_path):
    """No child and no temporary folder, the forkserver's neither."""
    (tmp_path / "waits.py").write_text(
        "import signal\nsignal.signal(2, signal.SIG_DFL)\n" + WAITS.format(root=str(ROOT))
    )
    command, env = [sys.executable, "waits.py"], {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "asleep\n"
    assert len(os.listdir(tmp_path)) == 4 and (children := psutil.Process(run.pid).children(recursive=True))
    run.send_signal(number)
    assert (run.communicate()[1], run.returncode) == (said, 130)
    assert os.listdir(tmp_path) == ["waits.py"]
    assert not [child for child in psutil.wait_procs(children, 10)[1] if child.is_running()]


PROGRAMS = [path for path in ROOT.glob("ch[0-9]*/*.py") if path.name in ("compare.py", "scale.py", "collectives.py")]
PROGRAMS += [ROOT / name for name in ("benchmark.py", "learn.py", "ch4/tune.py", "ch5/train.py", "ch1/script.py")]


INTERRUPT = """
import os, sys
class Interrupt:
    def find_spec(name, path, target=None):
        if name == "common":  # which all programs import
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Interrupt)
"""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.usefixtures("signals_as_in_a_terminal")
def test_ctrl_c_during_the_imports_is_no_traceback_and_missing_packages_are_named(path, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", -signal.SIGINT)
    run = subprocess.run([sys.executable, "-S", "-E", path], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and run.stderr.startswith("needs the packages ") and run.stderr.count("\n") == 1
