"""The measured datasheet of this machine: what it is, and what each part of it reaches.

On a GPU: SMs, clocks, caches; bandwidth of reads, writes and copies by working set, where L1, L2 and DRAM show as
steps; latency by working set, from loads that depend on each other; matrix products in each precision; transfers to and
from the host, and between GPUs. On a CPU: caches, read bandwidth by working set, the loops of STREAM, matrix products.
Where there is a datasheet, its figures stand beside the measured ones.

The first run takes some seconds. The result is kept in results/ until the device, the driver or torch changes.
"""

import signal

if __name__ == "__main__":  # importing takes a second, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program
from common.isolation import interrupt
from common.pairs.user_error import UserError
from common.program import Parser, device_name


def main() -> int:
    return program.status_of("hardware_info.py", run)


def run() -> int:
    """Raises UserError."""
    from common.machine.device import default_device

    args = arguments()
    with interrupt.hold_signals():
        return show(args, args.device or default_device())


def arguments() -> argparse.Namespace:
    parser = Parser("hardware_info.py", description=__doc__)
    parser.add_argument(
        "--device", type=device_name, metavar="DEV", help="cpu or cuda:N (default: the first GPU, else the CPU)"
    )
    parser.add_argument("--fresh", action="store_true", help="measure again, whatever was kept")
    parser.add_argument("--record", action="store_true", help="keep the sheet under recorded/ as well")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="folder for the figures (default: beside the sheet)")
    return parser.parse_args()


def show(args: argparse.Namespace, device: str) -> int:
    """The exit status: 1 if something that was measured could not be written. Raises UserError."""
    from common.hardware import sheet as sheets
    from common.hardware.plots import figures
    from common.hardware.sheet_text import print_sheet
    from common.record.files import RECORDED, check_writable, note_errors
    from common.show.console import make_console
    from common.show.plot import save

    if args.plot:
        if not args.plot.is_dir():
            raise UserError(f"--plot {args.plot}: {'a file' if args.plot.exists() else 'no such folder'}")
        check_writable(args.plot / "bandwidth.png")
    if args.record:
        check_writable(RECORDED / "any" / "hardware.json", makes_folder=True)
    unwritten: list[str] = []
    sheet = sheets.cached_or_measured(device, args.fresh, on_progress, unwritten=unwritten)
    print_sheet(sheet, make_console())
    with note_errors(unwritten):
        if args.record:
            print(f"recorded in {sheets.keep(sheet)}")
        folder = args.plot or sheets.cache_file(sheet.environment["device"]).parent
        for name, figure in figures(sheet).items():
            save(figure, folder / f"{name}.png")
            print(f"figure: {folder / name}.png")
    for problem in unwritten:
        print(f"hardware_info.py: {problem}", file=sys.stderr)
    return 1 if unwritten else 0


def on_progress(stage: str, fraction: float) -> None:
    print(f"measuring: {stage}", file=sys.stderr)


if __name__ == "__main__":
    program.finish(main)
