"""What the scripts of this chapter share beside their lesson: arguments, devices, times and units.

torch is imported where it is needed and not here, so that `--help` answers at once.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line; the exit status is 2. Every script takes `--device`."""

    def __init__(self, docstring: str) -> None:
        super().__init__(description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--device", help="cpu, cuda or cuda:N (default: the GPU where there is one, else the CPU)")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")

    def pick_device(self, requested: str | None) -> str:
        """ "cpu" or "cuda:N"; a device that is not there is an error."""
        if requested is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", requested):
            self.error(f"--device {requested}: neither cpu, cuda nor cuda:N")
        import torch

        here = torch.cuda.device_count() if torch.cuda.is_available() else 0
        device = requested or ("cuda" if here else "cpu")
        if device == "cpu":
            return device
        index = int(device.removeprefix("cuda").removeprefix(":") or 0)
        if index >= here:
            self.error(
                f"--device {requested}: torch sees {here or 'no'} CUDA device{'' if here == 1 else 's'} on this machine"
            )
        torch.cuda.set_device(index)
        return f"cuda:{index}"

    def check_output(self, path: Path) -> None:
        """Found before the run and not after it: a picture that could not be saved."""
        if path.suffix not in (".png", ".svg", ".pdf"):
            self.error(f"--output {path}: the name must end in .png, .svg or .pdf")
        if not path.parent.is_dir() or path.is_dir():
            self.error(
                f"--output {path}: {path if path.is_dir() else path.parent} is {'' if path.is_dir() else 'not '}a folder"
            )


def positive(text: str) -> int:
    """For argparse: a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number above 0")
    return int(text)


@dataclass(frozen=True)
class Timing:
    """Seconds of one call. `cold_s` is the very first one, with whatever is done only once in it: compiling, library set-up, page faults."""

    cold_s: float
    median_s: float
    min_s: float
    max_s: float


def timed(fn: Callable[[], Any], device: str, repeats: int = 7) -> Timing:
    """Time one call, cold and warm apart; warm is the median of `repeats`.

    On a GPU the warm calls are measured between two CUDA events with the L2 flushed before each, on a CPU by the wall clock.
    """
    from common.clock import host_seconds

    cold_s = _clock("wall", device).sample([fn]).seconds
    clock = _clock("wall" if device == "cpu" else "device", device)
    host_s = 0.0 if device == "cpu" else host_seconds(fn, device)  # how long the flush must keep the GPU busy
    seconds = sorted(clock.sample([fn], host_s).seconds for _ in range(repeats))
    return Timing(cold_s, seconds[repeats // 2], seconds[0], seconds[-1])


@cache
def _clock(name: str, device: str) -> Any:
    from common.clock import make_clock

    return make_clock(name, device)  # kept: each device clock owns the buffer with which it flushes the L2


def si(value: float, unit: str) -> str:
    """Three digits and a prefix: si(4.2e12, "B/s") is "4.20 TB/s"."""
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), PREFIXES[-1])
    number = value / scale
    return f"{number:.{max(0, 2 - len(str(int(abs(number)))) + 1)}f} {prefix}{unit}"
