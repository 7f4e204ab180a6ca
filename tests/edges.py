"""What the chapters' tests at the edges share: to call a version, here or in Triton's interpreter, and what is near."""

import os
from functools import cache
from importlib.util import find_spec

import pytest
import torch
from torch.nn import functional

from common.checks import interpreter_watch
from common.pairs.pair import load

NAN, INF = float("nan"), float("inf")
# By what part of itself, and of the RMS of all, an element may be off (bfloat16: the interpreter cuts off, no rounding)
NEAR = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}


def interpret():
    """From here on this process interprets kernels, within their tensors, if it has not imported Triton yet."""
    os.environ["TRITON_INTERPRET"] = "1"
    if find_spec("triton"):
        import triton  # noqa: F401 (its interpreter is what `enforce` changes)

        interpreter_watch.enforce()


@cache
def module(path, constants=()):
    """A file of a chapter, loaded once for each set of constants that are to be others in it or its `helper.NAME`."""
    loaded = load(path)
    for name, value in constants:
        *helper, own = name.split(".")
        setattr(getattr(loaded, helper[0]) if helper else loaded, own, value)
    return loaded


def run_here(version, inputs):
    """The answer to inputs as they lie."""
    loaded = module(version.path)
    state = loaded.setup(**inputs) if hasattr(loaded, "setup") else {}
    result = loaded.run(**inputs, **state)
    return result if isinstance(result, tuple) else (result,)


def answer(path, device, inputs, layout=None, times=1, constants=()):
    """What `run` returns the last of so many times, after one `setup`, as a list of tensors on the CPU.

    `layout`: puts every input but `out` elsewhere in memory.
    """
    version, arguments = module(path, constants), {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            value = layout(value.to(device)) if layout and name != "out" else value.to(device)
        arguments[name] = value
    if hasattr(version, "setup"):
        arguments |= version.setup(**arguments)
    for _ in range(times):
        result = version.run(**arguments)
    return [part.cpu() for part in (result if isinstance(result, tuple) else (result,))]


def transposed(x):
    return x.mT.contiguous().mT if x.dim() > 1 else every_other(x)


def every_other(x):
    return x.repeat_interleave(2, -1)[..., ::2]


def transposed_among_others(x):
    """At multiples of 16 bytes, rows and columns of others around it."""
    return functional.pad(x.mT.contiguous(), (8, 8, 8, 8), value=NAN)[..., 8:-8, 8:-8].mT


def each(pairs, *names, devices=("cpu", "cuda")):
    """Every version of these pairs on every device that can run it."""
    return pytest.mark.parametrize(
        ("name", "version", "device"),
        [
            pytest.param(name, version, device, id=f"{version.path.stem}-{device}", marks=marks)
            for name in names
            for version in pairs[name].versions
            for device, marks in (("cpu", ()), ("cuda", pytest.mark.gpu))
            if device in devices and (device == "cuda" or not (version.needs_cuda or pairs[name].baseline.needs_cuda))
        ],
    )


def assert_near(actual, wanted, least=0.0):
    """Of the same shape, NaN and infinite at the same places, and near elsewhere. `least`: the RMS of what cancels."""
    assert len(actual) == len(wanted)
    for mine, true in zip(actual, wanted, strict=True):
        assert mine.shape == true.shape
        true = true.to(mine.dtype).double()  # what is too large for 16 bits is infinite
        finite = true[true.isfinite()]
        rms = max(finite.square().mean().sqrt().item() if len(finite) else 0.0, least)
        near = NEAR[mine.dtype]
        torch.testing.assert_close(mine.double(), true, rtol=near, atol=near * rms, equal_nan=True)


def skip_without(gib):
    torch.cuda.empty_cache()
    if (free := torch.cuda.mem_get_info()[0] / 2**30) < gib:
        pytest.skip(f"needs {gib} GiB of GPU memory, {free:.0f} are free")
