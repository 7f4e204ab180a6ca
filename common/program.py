"""What all programs share: an exit status, one line for an error, no traceback."""

import argparse
import atexit
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any, NoReturn

from common.isolation import interrupt
from common.pairs.user_error import UserError, require_width, wrap_text

LEAVE_S = 5  # the most that an interrupted program takes to tidy up


class UsageError(UserError):
    """A request that cannot be fulfilled."""


class _Help(argparse.HelpFormatter):
    """Help at the terminal's width: paragraphs are filled, indented lines are kept where all of a text fit."""

    def _format_usage(self, *parts: Any) -> str:
        lines = super()._format_usage(*parts).split("\n")  # options that exclude each other stand on one line
        return "\n".join(wrap_text(line, self._width, " " * (len(line) - len(line.lstrip()))) for line in lines)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = re.sub(r"(?<=\S)\n(?=\S)", " ", text.strip()).split("\n")
        if any(line.startswith(" ") and len(line) > width for line in lines):  # explanations go below their examples
            lines = re.sub(r"(?<=\S) {2,}|\n {8,}", "\n      ", "\n".join(lines)).split("\n")
        return "\n".join(wrap_text(line, width, "      " * line.startswith(" ")) for line in lines)


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are a UsageError, and whose help is wrapped between words."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "formatter_class": _Help})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (--help shows all)")


def device_name(text: str) -> str:
    """A type for argparse: cpu or cuda:N."""
    from common.machine.device import full_device_name

    try:
        return full_device_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def chapter_number(text: str) -> int:
    """A type for argparse: 3, or ch3."""
    if not (number := text.removeprefix("ch")).isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no chapter's number, such as 3 or ch3")
    return int(number)


def picture_path(text: str) -> Path:
    """A type for argparse: a file that a plot can be saved as."""
    if Path(text).suffix not in (".png", ".svg", ".pdf"):
        raise argparse.ArgumentTypeError(f"{text}: the name must end in .png, .svg or .pdf")
    return Path(text)


def status_of(name: str, run: Callable[[], int]) -> int:
    """The exit status of a program: that of `run`; or 2, 130 or 1 after one line with the reason."""
    try:
        require_width(sys.stdout)
        status = run()
        sys.stdout.flush()
        return status
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # the reader of stdout has ended (`| head`), its disk is full, or a file cannot be read
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"{name}: {f'{error.filename}: {error.strerror}' if error.filename else error}", file=sys.stderr)
        return 1


class _Lossy(io.FileIO):
    """A stream whose disk may be full: output that cannot be written is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def protect_streams() -> None:
    """Make the standard streams safe: a closed or full stream must not end a run."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed, as by `>&-`: the next opened file would take its number
            lowest = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
            os.set_inheritable(lowest, True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may lack a character
    encoding = getattr(sys.stderr, "encoding", None)
    lossy = io.BufferedWriter(_Lossy(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(lossy, encoding, errors="replace", line_buffering=True)


def _end_now(arrived: int, frame: Any) -> NoReturn:
    """End the process from wherever it is, and leave nothing: no child, no temporary folder."""
    for number in interrupt.SIGNALS:
        signal.signal(number, lambda *_: os._exit(130))  # another signal, or time, ends what takes long
    try:
        Timer(LEAVE_S, os._exit, (130,)).start()
        os.write(2, b"interrupted\n" * (arrived == signal.SIGINT))  # torchrun ends our processes by another
        if "common.isolation.process_tree" in sys.modules:  # there may be children, which write into the folders
            sys.modules["common.isolation.process_tree"].end_all_but(set())
        atexit._run_exitfuncs()  # temporary folders, the forkserver's too
    finally:
        os._exit(130)


def finish(main: Callable[[], int]) -> NoReturn:
    """Run a program's `main` and end the process with its status.

    Where nothing else handles Ctrl-C it ends the process at once: an exception in an import would be a traceback.
    """
    protect_streams()
    for number in interrupt.SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_now)
    status = main()
    interrupt.ignore_signals()  # only the exit is left
    sys.exit(status)
