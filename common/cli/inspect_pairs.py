"""What pairs' versions run: machine code (benchmark.py --xray), races (--race)."""

import sys
from argparse import Namespace

from common.isolation import interrupt
from common.pairs.pair import Pair, short, sizes_of
from common.pairs.user_error import printable, width_of, wrap_text
from common.record.outcome import Verdict
from common.show import words
from common.show.console import make_console, measurement_progress
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


def race_pairs(pairs: list[Pair]) -> int:
    """Look for races in Triton's interpreter, at every check size. Exit status 1 if a version has one, or is wrong."""
    from common.engine import runner

    kernels = [pair for pair in pairs if any("triton" in version.imports for version in pair.versions)]
    if others := [pair.name for pair in pairs if pair not in kernels]:
        print(f"no Triton kernel: {', '.join(others)}")
    with interrupt.hold_signals(), measurement_progress(len(kernels)) as (on_progress, _):
        record = runner.run_pairs(kernels, device="cpu", check_only=True, stressed=False, on_progress=on_progress)
    for result in record.pairs:
        print(result.name)
        for row in result.rows:
            is_right = row.verdict == Verdict.VERIFIED
            text = "no race, whatever the order of programs" if is_right else words.text(row.reason)
            print(wrap_text(printable(f"  {short(row.variant)}: {text}"), width_of(sys.stdout), "    "))
    if record.environment["interrupted"]:
        return 130
    return 1 if runner.has_failed(record) else 0
