"""What the programs have in common at their edges: an exit status, one line for what goes wrong, no traceback."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from common.isolation import interrupt
from common.pairs.contract import OneLine


class UsageError(OneLine):
    """A request that makes no sense."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (--help shows all)")


def device_name(text: str) -> str:
    """An argument's type: cpu or cuda:N."""
    from common.machine.device import device_named

    try:
        return device_named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def status_of(name: str, run: Callable[[], int]) -> int:
    """The exit status of a program: that of `run`, or 2, 130 or 1 after one line that says why."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except OneLine as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # stdout's reader has seen enough, as in `| head`; its disk is full; a file cannot be read
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"{name}: {error}", file=sys.stderr)
        return 1


def finish(main: Callable[[], int]) -> NoReturn:
    """Run a program's `main` and end the process with its status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may lack a character
    status = main()
    interrupt.ignore()  # nothing is left to do but to exit
    sys.exit(status)
