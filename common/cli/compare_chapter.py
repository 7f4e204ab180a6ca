"""A chapter's compare.py: measure or profile all its pairs."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.pairs.pair import ROOT, discover
from common.program import finish


def of_chapter(file: str) -> tuple[Callable[..., int], Callable[..., list[Path]]]:
    """The functions `compare` and `profile` for the chapter that contains `file`."""
    chapter = Path(file).resolve().parent.name
    return partial(compare_chapter, chapter), partial(profile_chapter, chapter)


def start(compare: Callable[..., int], text: str) -> None:
    """Run `compare` with the program's arguments, and end it with that status; --help shows `text`."""
    finish(partial(compare, *sys.argv[1:], text=text))


def compare_chapter(chapter: str, *options: str, text: str = "") -> int:
    """`benchmark.py --chapter N` with these options: measure, print, write. Returns the exit status."""
    import benchmark  # in ROOT, which compare.py has put first; a slow import

    return benchmark.main(list(options), f"{chapter}/compare.py", text, int(chapter.removeprefix("ch")))


def profile_chapter(chapter: str, only: str = "*", out: Path | None = None, device: str | None = None) -> list[Path]:
    """Profile a chapter's pairs: print each version's timeline, write traces. Returns the traces' paths."""
    from common.cli.profile_commands import profile_pairs  # a slow import

    return profile_pairs(discover(ROOT / chapter, only), out or ROOT / "results" / chapter, device)
