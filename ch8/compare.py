"""This chapter's pairs, measured; profiled by: python -c "from ch8.compare import profile; profile()"."""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed
from common.cli.compare_chapter import of_chapter, start

compare, profile = of_chapter(__file__)
if __name__ == "__main__":
    start(compare, __doc__)
