"""What a chapter's compare.py does: all its pairs measured, or profiled."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT, discover


def of_chapter(file: str) -> tuple[Callable[[], int], Callable[..., list[Path]]]:
    """`compare` and `profile` of the chapter that a file lies in."""
    chapter = Path(file).resolve().parent.name
    return partial(compare_chapter, chapter), partial(profile_chapter, chapter)


def start(compare: Callable[[], int], text: str) -> None:
    """End a compare.py that was run with its status; --help shows its docstring."""
    argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(compare())


def compare_chapter(chapter: str) -> int:
    """Measure all pairs of a chapter and print the table; returns the exit status."""
    from common.engine.runner import has_failed, run_pairs  # heavy, as the next one is: --help should not wait
    from common.show.console import make_console, print_record

    try:
        pairs = discover(ROOT / chapter)
        record = run_pairs(pairs)
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before anything was measured; later, run_pairs returns what there is
        print("interrupted", file=sys.stderr)
        return 130
    print_record(record, make_console(), pairs)
    return 130 if record.environment["interrupted"] else 1 if has_failed(record) else 0


def profile_chapter(chapter: str, only: str = "*", out: Path | None = None, device: str | None = None) -> list[Path]:
    """Profile a chapter's pairs: each version's costliest operations on stdout, traces in results/<chapter>/."""
    from common.cli.profile import profile_pairs  # heavy

    return profile_pairs(discover(ROOT / chapter, only), out or ROOT / "results" / chapter, device)
