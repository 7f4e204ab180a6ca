"""What the scripts of this chapter share beside their lesson: arguments, devices, times and units.

torch is imported where it is needed and not here, so that `--help` answers at once.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program

PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


class Parser(program.Parser):
    """Every script takes `--device`."""

    def __init__(self, docstring: str | None) -> None:
        super().__init__(description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter)
        which = "cpu, cuda or cuda:N (default: the GPU where there is one, else the CPU)"
        self.add_argument("--device", type=program.device_name, help=which)

    def pick_device(self, requested: str | None) -> str:
        """`cpu` or `cuda:N`, made current; a device that is not there is an error."""
        from common.machine.device import default_device, describe, use_device

        device = requested or default_device()
        try:
            describe(device)
        except ValueError as error:
            self.error(str(error))
        use_device(device)
        return device


def start(main: Callable[[], None]) -> NoReturn:
    """Run a script; bad input is one line and status 2, Ctrl-C one line and status 130, as of benchmark.py."""

    def run() -> int:
        main()
        return 0

    program.finish(lambda: program.status_of(Path(sys.argv[0]).name, run))


def positive(text: str) -> int:
    """For argparse: a whole number above zero."""
    if not re.fullmatch(r"[0-9]+", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number above 0")
    return int(text)


@dataclass(frozen=True)
class Timing:
    """Seconds of one call. `cold_s`: the very first, with all that is done but once: compiling, set-up, page faults."""

    cold_s: float
    warm_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(self.warm_s)


def timed(fn: Callable[[], Any], device: str, repeats: int = 7) -> Timing:
    """Time one call, cold and warm apart.

    On a GPU the warm calls are measured between two CUDA events, with the L2 flushed before each; on a CPU by the wall
    clock, and what the caches hold stays there.
    """
    from common.machine.clock import host_seconds

    cold_s = _clock("wall", device).sample([fn]).seconds
    clock = _clock("wall" if device == "cpu" else "device", device)
    host_s = 0.0 if device == "cpu" else host_seconds(fn, device)  # how long the flush must keep the GPU busy
    return Timing(cold_s, tuple(clock.sample([fn], host_s).seconds for _ in range(repeats)))


@cache
def _clock(name: str, device: str) -> Any:
    from common.machine.clock import make_clock

    return make_clock(name, device)  # kept: each device clock owns the buffer with which it flushes the L2


def where(device: str) -> str:
    """The device with its name, and on a CPU the threads that work there."""
    from common.machine.device import describe

    info = describe(device)
    threads = f", {info['threads']} thread(s)" if device == "cpu" else ""
    return f"{device} ({info['name']}{threads})"


def spread(values: Sequence[float], scale: float = 1.0) -> str:
    """Median (min-max) of the values times `scale`."""
    return f"{scale * statistics.median(values):.4g} ({scale * min(values):.4g}-{scale * max(values):.4g})"


def si(value: float, unit: str) -> str:
    """Three digits and a prefix: si(4.2e12, "B/s") is "4.20 TB/s"."""
    scale, prefix = next(((scale, prefix) for scale, prefix in PREFIXES if abs(value) >= scale), PREFIXES[-1])
    number = value / scale
    return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f} {prefix}{unit}"
