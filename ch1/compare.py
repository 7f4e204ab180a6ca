"""Compare or profile the pairs of this chapter, from the repository's root.

python ch1/compare.py                                      every pair, measured
python -c "from ch1.compare import profile; profile()"     where the time goes: tables, traces under results/ch1/
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

CHAPTER = "ch1"


def compare() -> int:
    """Measure every pair and print the table; returns the exit status, as benchmark.py would give it."""
    from common.cli.compare import (
        compare_chapter,
    )  # here and not above: it imports torch, and --help should not wait for it

    return compare_chapter(CHAPTER)


def profile(only: str = "*") -> list[Path]:
    """Run both versions of the pairs that match `only` under torch.profiler; returns the traces that were written."""
    from common.cli.compare import profile_chapter

    return profile_chapter(CHAPTER, only)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.exit(compare())
