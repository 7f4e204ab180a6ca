"""Compare or profile the pairs of this chapter.

python ch1/compare.py                                        every pair, measured
python -c "from ch1.compare import profile; profile()"       where their time goes: tables, and traces under results/ch1/
"""

import sys
from pathlib import Path

from common.compare import compare_chapter, profile_chapter

CHAPTER = "ch1"


def compare() -> int:
    """Measure every pair and print the table; the exit status of benchmark.py."""
    return compare_chapter(CHAPTER, [])


def profile(only: str = "*") -> list[Path]:
    """Run both halves of the pairs that match `only` under torch.profiler; the traces that were written."""
    return profile_chapter(CHAPTER, only)


if __name__ == "__main__":
    sys.exit(compare_chapter(CHAPTER, sys.argv[1:]))
