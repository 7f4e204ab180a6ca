"""A chapter's compare.py: measure or profile all its pairs."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT, discover


def of_chapter(file: str) -> tuple[Callable[[], int], Callable[..., list[Path]]]:
    """The functions `compare` and `profile` for the chapter that contains `file`."""
    chapter = Path(file).resolve().parent.name
    return partial(compare_chapter, chapter), partial(profile_chapter, chapter)


def start(compare: Callable[[], int], text: str) -> None:
    """Run `compare` and end the program with its status; --help shows `text`."""
    argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(compare())


def compare_chapter(chapter: str) -> int:
    """Measure all pairs of a chapter and print the table. Returns the exit status."""
    from common.engine.runner import has_failed, run_pairs  # slow imports, as below: --help must not wait
    from common.show.console import make_console, print_record

    try:
        pairs = discover(ROOT / chapter)
        record = run_pairs(pairs)
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before any measurement; later, run_pairs returns the results so far
        print("interrupted", file=sys.stderr)
        return 130
    print_record(record, make_console(), pairs)
    return 130 if record.environment["interrupted"] else 1 if has_failed(record) else 0


def profile_chapter(chapter: str, only: str = "*", out: Path | None = None, device: str | None = None) -> list[Path]:
    """Profile a chapter's pairs: print each version's costliest operations, write traces. Returns the traces' paths."""
    from common.cli.profile import profile_pairs  # a slow import

    return profile_pairs(discover(ROOT / chapter, only), out or ROOT / "results" / chapter, device)
