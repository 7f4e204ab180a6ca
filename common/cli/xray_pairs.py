"""The machine code of all versions of pairs: benchmark.py --xray."""

from argparse import Namespace

from common.isolation import interrupt
from common.pairs.pair import Pair, sizes_of
from common.show.console import make_console
from common.xray.picture import xray
from common.xray.xray_tables import print_pictures


def xray_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Show the kernels' machine code. Exit status 1 if a version fails by its own fault."""
    failed = False
    with interrupt.hold_signals():
        for pair in pairs:
            for size in sizes_of(pair, args.size, on_cpu=False):
                pictures = xray(pair, args.arch, size)
                title = pair.name if size == "default" else f"{pair.name} {size}"
                print_pictures(title, pictures, make_console(), args.code)
                failed |= any(picture.failed for picture in pictures)
    return 1 if failed else 0
