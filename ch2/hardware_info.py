"""The measured datasheet of this machine: what it is, and what each part of it reaches.

On a GPU: SMs, clocks, caches; read, write and copy bandwidth by working set, in which L1, L2 and DRAM show as steps;
latency of one load after the other, by the same sets; matrix products in each precision; transfers to and from the
host, and between GPUs. On a CPU: caches, read bandwidth by working set, the loops of STREAM, matrix products. Where
there is a datasheet, its figures stand beside the measured ones.

It takes half a minute, once: the sheet is kept in results/ until the device, the driver or torch is another.

Predict before you run: how many times faster is a read from L2 than one from DRAM, and one from L1 than one from L2?
"""

import argparse
import re
import sys
from pathlib import Path

from common import interrupt
from common.contract import OneLine
from common.request import Parser


def main() -> int:
    try:
        with interrupt.held_back():
            show(arguments())
        return 0
    except OneLine as error:
        print(f"hardware_info.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def arguments() -> argparse.Namespace:
    parser = Parser("hardware_info.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu or cuda:N (default: the first GPU, else the CPU)")
    parser.add_argument("--fresh", action="store_true", help="measure again, whatever was kept")
    parser.add_argument("--record", action="store_true", help="keep the sheet under recorded/ as well")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="folder for the figures (default: beside the sheet)")
    args = parser.parse_args()
    if args.device and not re.fullmatch(r"cpu|cuda(:\d+)?", args.device):
        parser.error(f"--device {args.device}: neither cpu, cuda nor cuda:N")
    return args


def show(args: argparse.Namespace) -> None:
    """Raises OneLine."""
    from common.console import make_console
    from common.device import default_device
    from common.hardware import sheet as sheets
    from common.hardware.show import print_sheet
    from common.result import check_writable

    if args.plot:
        if not args.plot.is_dir():
            raise OneLine(f"--plot {args.plot}: no such folder")
        check_writable(args.plot / "bandwidth.png")
    sheet = sheets.cached_or_measured(args.device or default_device(), args.fresh, on_progress)
    print_sheet(sheet, make_console())
    path = sheets.cache_file(sheet.environment["device"])
    print(f"sheet: {path}")
    save_figures(sheet, args.plot or path.parent)
    if args.record:
        print(f"recorded in {sheets.keep(sheet)}")


def on_progress(stage: str, fraction: float) -> None:
    print(f"measuring: {stage}", file=sys.stderr)


def save_figures(sheet, folder: Path) -> None:
    from common import plot
    from common.hardware.plots import figures

    for name, figure in figures(sheet).items():
        path = folder / f"{name}.png"
        plot.save(figure, path)
        print(f"figure: {path}")


if __name__ == "__main__":
    sys.exit(main())
