"""What all tests share: those marked `gpu` are skipped, with the reason, where there is no GPU to run them on."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

os.environ.pop("COLUMNS", None)  # of who runs the tests, or of pytest-xdist: what is printed would depend on it


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if "committed" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("committed"))
        if item.path.suffix == ".ipynb":  # its cells share a kernel: of several processes, one runs them all
            item.add_marker(pytest.mark.xdist_group(item.path.name))
        if item.path.suffix == ".ipynb" or item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.rest)
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needs_gpu:
        return
    import torch  # seconds: only where a test asks for it

    if torch.cuda.is_available():
        return
    built_for = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
    skip = pytest.mark.skip(reason=f"needs an NVIDIA GPU; torch {torch.__version__}, {built_for}, sees none here")
    for item in needs_gpu:
        item.add_marker(skip)


@pytest.fixture
def signals_as_in_a_terminal():
    """Where pytest was started by nohup, or by a script and `&`, it and all that it starts would be deaf to some."""
    from common.isolation import interrupt

    ignored = [number for number in interrupt.SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def in_its_process():
    """Who asks for it has each version compiled in a process of its own, as users have."""


@pytest.fixture
def in_this_process(request, monkeypatch):
    """Versions are compiled in this process, which has imported what one for each would import anew."""
    from common.isolation import worker

    if "in_its_process" not in request.fixturenames:
        call = lambda function, *arguments, **options: function(*arguments, lambda *progress: None)  # noqa: E731
        monkeypatch.setattr(worker, "call", call)


@pytest.fixture(scope="module")
def machine():
    """This machine, described once; what it can do is measured where it is tested."""
    from common.engine import runner  # imports torch

    surveyed = runner.survey_apart("cpu", with_limits=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: surveyed)
        yield surveyed[0]


@pytest.fixture(scope="session")
def committed():
    """From here on each file under recorded/ is read once. (Whoever asks for it is of the group `committed`.)"""
    from common.record import files

    load = files.Format.load
    remembered = cache(load)

    def load_once(form, path):
        return (remembered if files.ROOT / "recorded" in Path(path).parents else load)(form, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.Format, "load", load_once)
        yield


@pytest.fixture(scope="session")
def interpreter():
    """A process in which Triton interprets kernels, which is chosen before it is first imported.

    One for all files: it takes seconds to start.
    """
    from edges import interpret  # imports torch

    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=interpret) as process:
        yield process


@pytest.fixture
def run_on(interpreter):
    """run_on(device, function, ...): what the function returns, from here on a GPU, else from the interpreter."""

    def on(device, function, *arguments, **how):
        if device == "cpu":
            return interpreter.submit(function, *arguments, **how).result()
        return function(*arguments, **how)

    return on


@pytest.fixture
def call(run_on):
    """call(version, device, inputs, ...): what `edges.answer` returns there."""
    from edges import answer

    return lambda version, device, inputs, **how: run_on(device, answer, version.path, device, inputs, **how)


@pytest.fixture
def launch(tmp_path):
    """launch(argument, ...): benchmark.py as a program, in a folder of its own."""
    from samples import launching  # imports torch

    with launching(tmp_path) as start:
        yield start
