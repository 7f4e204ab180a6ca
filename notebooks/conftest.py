"""Notebooks as tests, several at a time: each kernel speaks through files of its own, and measures quickly."""

import itertools
import os
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import nbval.kernel

TESTS = Path(__file__).resolve().parents[1] / "tests"
QUICKLY = f"""
import sys
sys.path.append({str(TESTS)!r})
from liars.child import measure_notebooks_quickly
measure_notebooks_quickly()
del measure_notebooks_quickly, sys
"""
collect_ignore = [] if find_spec("triton") else ["ch0_triton.ipynb"]  # which teaches nothing else


def pytest_configure(config):
    """In its start a kernel is told to measure as tests do: that the cells run is what is tested, not times.

    Over TCP, Jupyter picks five free ports and lets go of them, and the kernel takes them some time later.
    If another process was quicker (https://github.com/jupyter/jupyter_client/issues/487), the kernel lives on and never
    answers: "Kernel didn't respond in 60 seconds". ZeroMQ has files instead, but not on Windows.
    """
    folder = tempfile.TemporaryDirectory(prefix="kernels-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    startup = Path(folder.name, "profile_default/startup")
    startup.mkdir(parents=True)
    (startup / "quickly.py").write_text(QUICKLY, encoding="utf-8")
    os.environ["SPEED_OF_LIGHT_FORECASTER"] = "naive"  # nobody answers here
    make, numbers = nbval.kernel.KernelManager, itertools.count()

    def manager(**options):
        if sys.platform != "win32":
            options |= {"transport": "ipc", "ip": os.path.join(folder.name, str(next(numbers)))}
        made = make(**options)
        made.start_kernel = partial(
            made.start_kernel, env={**os.environ, "IPYTHONDIR": folder.name}
        )  # its kernel alone
        return made

    nbval.kernel.KernelManager = manager
