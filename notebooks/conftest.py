"""Notebooks as tests, several at a time: each kernel speaks through files of its own, not through ports."""

import itertools
import os
import sys
import tempfile
from importlib.util import find_spec

import nbval.kernel

collect_ignore = [] if find_spec("triton") else ["ch0_triton.ipynb"]  # which teaches nothing else


def pytest_configure(config):
    """Over TCP, Jupyter picks five free ports and lets go of them, and the kernel takes them some time later.

    If another process was quicker (https://github.com/jupyter/jupyter_client/issues/487), the kernel lives on and never
    answers: "Kernel didn't respond in 60 seconds".
    """
    os.environ["SPEED_OF_LIGHT_FORECASTER"] = "naive"  # nobody answers here
    if sys.platform == "win32":  # ZeroMQ has no such files there
        return
    folder = tempfile.TemporaryDirectory(prefix="kernels-")
    config.add_cleanup(folder.cleanup)
    manager, numbers = nbval.kernel.KernelManager, itertools.count()

    def with_files(**options):
        return manager(transport="ipc", ip=os.path.join(folder.name, str(next(numbers))), **options)

    nbval.kernel.KernelManager = with_files
