"""Roofline analysis: place a vector add, a reduction and matrix products under the roofs of this machine.

    arithmetic intensity AI = FLOPs / bytes that must cross DRAM          (one FMA = 2 FLOPs)
    roof(AI) = min(peak FLOP/s, AI x peak bytes/s)
    ridge point = peak FLOP/s / peak bytes/s

Left of the ridge an operation waits for memory, right of it for arithmetic. The roofs are measured here and now, and
stand beside the datasheet's where there is one. AI counts the useful minimum: every input read once, every output
written once. An operation far below its roof is limited by something that the roofline does not show: a launch, too
little parallel work, a poor kernel.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from script import Parser, Timing, positive, say, si, spread, start, timed, where

from common.program import picture_path
from common.record.files import check_writable

ELEMENTS = {"cpu": 1 << 25, "cuda": 1 << 27}  # 128 and 512 MiB of float32 an array: more than most caches hold
SIDES = {"cpu": (128, 512, 1536), "cuda": (512, 2048, 8192)}  # of the square matrices
PRECISIONS = {"cpu": ("fp32",), "cuda": ("fp32", "tf32", "bf16")}
QUICK = 64  # --quick: so many times fewer elements, and no large product


@dataclass(frozen=True)
class Operation:
    """The work that an operation cannot do without. `flops_key`, `bytes_key`: the roofs above it."""

    name: str
    flops: int
    bytes: int
    flops_key: str
    bytes_key: str

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes


Call = tuple[Operation, Callable[[], Any]]


def operations(device: str, quick: bool) -> Iterator[Call]:
    """What to run, one after the other: the call holds its arrays, and they go when it does."""
    import torch

    kind = device.split(":")[0]
    n = ELEMENTS[kind] // (QUICK if quick else 1)
    yield vector_add(n, device)
    yield reduction(n, device)
    for precision in PRECISIONS[kind]:
        if precision != "fp32" and torch.cuda.get_device_capability(device) < (8, 0):
            continue  # no tf32 and no bf16 units
        for side in SIDES[kind][: 2 if quick else None]:
            yield product(side, precision, device)


def vector_add(n: int, device: str) -> Call:
    import torch

    x, y, out = (torch.rand(n, device=device) for _ in range(3))
    traffic = 12 * n  # read x and y, write out: 4 bytes each
    return Operation("vector add", n, traffic, "fp32_flops", "dram_bytes"), lambda: torch.add(x, y, out=out)


def reduction(n: int, device: str) -> Call:
    import torch

    x = torch.rand(n, device=device)
    traffic = 4 * n + 4  # read x, write one number
    return Operation("reduction", n - 1, traffic, "fp32_flops", "dram_read_bytes"), lambda: torch.sum(x)


def product(side: int, precision: str, device: str) -> Call:
    import torch

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b, out = (torch.randn(side, side, device=device).to(dtype) for _ in range(3))

    def run() -> None:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.mm(a, b, out=out)
        torch.backends.cuda.matmul.allow_tf32 = before

    traffic = 3 * a.nbytes  # read a and b, write out
    return Operation(f"product {side} {precision}", 2 * side**3, traffic, f"{precision}_flops", "dram_bytes"), run


def main() -> None:
    parser = Parser(__doc__)
    plot = "the plot's file (default roofline_plot.png in the current folder)"
    parser.add_argument("--output", type=picture_path, default=Path("roofline_plot.png"), help=plot)
    parser.add_argument("--repeats", type=positive, default=7, help="warm calls of each operation (default 7)")
    parser.add_argument("--quick", action="store_true", help="a short try: small arrays, which a cache may hold")
    args = parser.parse_args()
    check_writable(args.output)
    device = parser.pick_device(args.device)

    from common.machine.limits import measure_limits

    say(where(device))
    limits = measure_limits(device)
    print_roofs(limits)
    timings = [(operation, timed(call, device, args.repeats)) for operation, call in operations(device, args.quick)]
    print_operations(timings, limits)
    conclude([(operation, timing, part_of_roof(operation, timing, limits)) for operation, timing in timings])
    points = [(operation.name, operation.intensity, operation.flops / timing.median_s) for operation, timing in timings]
    save(args.output, points, limits, where(device))


def roof(operation: Operation, limits: dict[str, Any], which: str) -> tuple[float, str]:
    """(FLOP/s that this operation could reach, what bounds it); 0 where a peak is not known."""
    compute = getattr(limits[operation.flops_key], which)
    memory = getattr(limits[operation.bytes_key], which) or getattr(limits["dram_bytes"], which)  # datasheets have one
    if not compute or not memory:
        return 0.0, ""
    return min(compute, operation.intensity * memory), "memory" if operation.intensity < compute / memory else "compute"


def used(limits: dict[str, Any]) -> list[str]:
    """The precisions of the products that have a roof here."""
    return [precision for precision in ("fp32", "tf32", "bf16") if f"{precision}_flops" in limits]


def print_roofs(limits: dict[str, Any]) -> None:
    """Every roof that is used here, and the ridge point of each precision."""
    for key in ("dram_bytes", "dram_read_bytes", *(f"{precision}_flops" for precision in used(limits))):
        limit, unit = limits[key], "FLOP/s" if key.endswith("flops") else "B/s"
        sheet = f"; {si(limit.datasheet, unit)} in the {limit.source}" if limit.datasheet else ""
        say(f"roof {key:<15} {si(limit.measured, unit):>13} measured ({limit.how}){sheet}")
    for precision in used(limits):
        ridge = limits[f"{precision}_flops"].measured / limits["dram_bytes"].measured
        say(f"ridge point {precision}: {ridge:.2f} FLOP/B, from the measured roofs")


def print_operations(timings: list[tuple[Operation, Timing]], limits: dict[str, Any]) -> None:
    from common.pairs.wide_tables import print_table
    from common.show.console import make_console

    rows = []
    for operation, timing in timings:
        rate, (_, bound) = operation.flops / timing.median_s, roof(operation, limits, "measured")
        sheet, _ = roof(operation, limits, "datasheet")
        rates = [si(rate, "FLOP/s"), si(operation.bytes / timing.median_s, "B/s"), bound]
        shares = [f"{part_of_roof(operation, timing, limits):.1%}", f"{rate / sheet:.1%}" if sheet else "-"]
        times = [spread(timing.warm_s, 1e3), f"{1e3 * timing.cold_s:.4g}"]
        rows.append([operation.name, f"{operation.intensity:.3g}", *rates, *shares, *times])
    shares_and_times = ("of roof", "of datasheet", "warm, ms (min-max)", "first, ms")
    headings = ("operation", "FLOP/B", "FLOP/s", "bytes/s", "bound", *shares_and_times)
    print_table("operations, each against its roof", headings, rows, make_console(), whole_cells=True)


def part_of_roof(operation: Operation, timing: Timing, limits: dict[str, Any]) -> float:
    return operation.flops / timing.median_s / roof(operation, limits, "measured")[0]


def conclude(rows: list[tuple[Operation, Timing, float]]) -> None:
    near = [operation.name for operation, _, part in rows if part >= 0.7]
    least, timing, part = min(rows, key=lambda row: row[2])
    cold, coldest = max((timing.cold_s / timing.median_s, operation.name) for operation, timing, _ in rows)
    loose = [operation.name for operation, timing, _ in rows if max(timing.warm_s) > 1.5 * min(timing.warm_s)]
    at_roof = f"{1e6 * timing.median_s:.1f} us, {1e6 * timing.median_s * part:.1f} us at the roof"
    say(f"at 70% of their roof or more: {', '.join(near) or 'none'}")
    say(f"furthest from its roof: {least.name}, {part:.1%} of it ({at_roof})")
    say(f"first call against a warm one: up to {cold:.1f}x ({coldest})")
    above = [operation.name for operation, _, part in rows if part > 1.05]
    if above:
        say(f"above their roof, by a cache or because this machine was busy when it was measured: {', '.join(above)}")
    if loose:
        say(f"unsteady, the slowest warm call over 1.5x the fastest: {', '.join(loose)}")


def save(path: Path, points: list[tuple[str, float, float]], limits: dict[str, Any], title: str) -> None:
    from common.show.plot import roofline
    from common.show.plot import save as save_figure

    keys = tuple(f"{precision}_flops" for precision in used(limits))
    save_figure(roofline(points, limits, title, keys), path)
    print(f"saved {path}")


if __name__ == "__main__":
    start(main)
