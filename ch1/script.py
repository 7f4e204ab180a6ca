"""What the scripts of this chapter share beside their lesson: arguments, devices, times and units.

    python ch1/script.py --record    runs all four and keeps what they print, as recorded/<device>/ch1_scripts.md

torch is imported where it is needed and not here, so that `--help` answers at once.
"""

import signal
import sys
from pathlib import Path

if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:  # one of the programs, not a test
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # importing takes a second: Ctrl-C ends it without a traceback

import argparse
import os
import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program

SCRIPTS = ("performance_basics", "performance_basics_optimized", "roofline_analysis", "arithmetic_intensity_demo")
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


def say(text: str) -> None:
    """Print lines, each wrapped between words at a terminal's width."""
    from common.pairs.user_error import width_of, wrap_text

    for line in text.split("\n"):
        print(wrap_text(line, width_of(sys.stdout)))


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


def printed(name: str, device: str) -> str:
    """What a script prints on a device; its plots are not kept. Raises UserError if it fails."""
    from common.pairs.user_error import UserError

    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), "--device", device]
    wide = {**os.environ, "COLUMNS": "120"}  # so that no table is broken
    with TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no message").splitlines()[-1]
        raise UserError(f"{name}.py ended with status {done.returncode}: {reason}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def page(device: str, texts: dict[str, str]) -> str:
    """Markdown with what each script printed, the device's name, the date and the versions."""
    from common.machine.device import describe, versions

    software = ", ".join(f"{package} {version}" for package, version in versions().items())
    name, date = describe(device)["name"], f"{datetime.now(UTC):%Y-%m-%d}"
    parts = [f"# What the scripts of chapter 1 print: {name}", f"Recorded on {name}, {date} ({software})."]
    parts += [f"## `python ch1/{script}.py`\n\n```text\n{text}\n```" for script, text in texts.items()]
    return "\n\n".join(parts) + "\n"


def record() -> None:
    """Raises UserError, RecordError; writes nothing unless all scripts succeed."""
    from common.machine.device import describe
    from common.record.files import file_of_device, write_text

    parser = Parser(__doc__)
    parser.add_argument(
        "--record", action="store_true", required=True, help="run the four scripts, keep what they print"
    )
    device = parser.pick_device(parser.parse_args().device)
    path = file_of_device({"device": describe(device)}, "ch1_scripts.md")
    write_text(path, page(device, {name: printed(name, device) for name in SCRIPTS}))
    print(f"recorded in {path}")


if __name__ == "__main__":
    start(record)
