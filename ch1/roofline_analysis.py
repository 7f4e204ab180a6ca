"""Roofline analysis: place a vector add, a reduction and matrix products under the roofs of this machine.

    arithmetic intensity AI = FLOPs / bytes that must cross DRAM          (one FMA = 2 FLOPs)
    roof(AI) = min(peak FLOP/s, AI x peak bytes/s)
    ridge point = peak FLOP/s / peak bytes/s

Left of the ridge an operation waits for memory, right of it for arithmetic. The roofs are measured here, now, and stand beside the
datasheet's where there is one. AI counts the useful minimum: every input read once, every output written once. An operation far
below its roof is limited by something that the roofline does not know: a launch, too little parallel work, a poor kernel.

Predict before you run: which of the operations sit left of the ridge, and by what factor does the smallest product miss its roof?
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from script import Parser, Timing, positive, si, timed

ELEMENTS = {"cpu": 1 << 25, "cuda": 1 << 27}  # 128 and 512 MiB of float32 an array: more than the caches hold
SIDES = {"cpu": (128, 512, 1536), "cuda": (512, 2048, 8192)}  # of the square matrices
PRECISIONS = {"cpu": ("fp32",), "cuda": ("fp32", "tf32", "bf16")}
QUICK = 64  # --quick: so many times fewer elements, and no large product


@dataclass(frozen=True)
class Operation:
    """What runs, and the work it cannot do without. `flops_key`, `bytes_key`: the roofs above it."""

    name: str
    flops: int
    bytes: int
    run: Callable[[], Any]
    flops_key: str
    bytes_key: str

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes


def operations(device: str, quick: bool) -> Iterator[Operation]:
    """One at a time, so that only one operation's arrays are in memory."""
    import torch

    kind = device.split(":")[0]
    n = ELEMENTS[kind] // (QUICK if quick else 1)
    x, y, out = (torch.rand(n, device=device) for _ in range(3))
    yield Operation(
        "vector add", n, 12 * n, lambda: torch.add(x, y, out=out), "fp32_flops", "dram_bytes"
    )  # read x, y, write out
    yield Operation(
        "reduction", n - 1, 4 * n + 4, lambda: torch.sum(x), "fp32_flops", "dram_read_bytes"
    )  # read x, write one
    del x, y, out
    for precision in PRECISIONS[kind]:
        if kind == "cuda" and precision != "fp32" and torch.cuda.get_device_capability(device) < (8, 0):
            continue  # no tf32 and no bf16 units
        for side in SIDES[kind][: 2 if quick else None]:
            yield product(side, precision, device)


def product(side: int, precision: str, device: str) -> Operation:
    import torch

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b, out = (torch.randn(side, side, device=device).to(dtype) for _ in range(3))

    def run() -> None:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.mm(a, b, out=out)
        torch.backends.cuda.matmul.allow_tf32 = False

    return Operation(f"product {side} {precision}", 2 * side**3, 3 * a.nbytes, run, f"{precision}_flops", "dram_bytes")


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("roofline_plot.png"),
        help="the plot (default roofline_plot.png, in the current folder)",
    )
    parser.add_argument("--repeats", type=positive, default=7, help="warm calls of each operation (default 7)")
    parser.add_argument(
        "--quick", action="store_true", help="smaller arrays, which may fit in a cache: to try the script out"
    )
    args = parser.parse_args()
    parser.check_output(args.output)
    device = parser.pick_device(args.device)

    from common.device import describe
    from common.limits import measure_limits

    name = describe(device)["name"]
    limits = measure_limits(device)
    print(f"{name} ({device})")
    print_roofs(limits)
    print(
        f"\n{'operation':<18}{'FLOP/B':>8}{'first call':>12}{'warm median (min-max), ms':>30}{'FLOP/s':>15}{'bytes/s':>12}{'bound':>9}{'% of roof':>11}{'datasheet':>11}"
    )
    points = []
    for operation in operations(device, args.quick):
        timing = timed(operation.run, device, args.repeats)
        points.append((operation, timing, print_row(operation, timing, limits)))
    conclude(points)
    save(args.output, [(op.name, op.intensity, op.flops / timing.median_s) for op, timing, _ in points], limits, name)


def roof(operation: Operation, limits: dict[str, Any], which: str) -> tuple[float, str]:
    """(FLOP/s that this operation could reach, what bounds it); 0 where a needed peak is unknown."""
    compute = getattr(limits[operation.flops_key], which)
    memory = getattr(limits[operation.bytes_key], which) or getattr(
        limits["dram_bytes"], which
    )  # datasheets know one bandwidth
    if not compute or not memory:
        return 0.0, ""
    return min(compute, operation.intensity * memory), "memory" if operation.intensity < compute / memory else "compute"


def print_roofs(limits: dict[str, Any]) -> None:
    """Every roof that is used here, and the ridge point of each precision."""
    for key, limit in limits.items():
        if key not in ("dram_bytes", "dram_read_bytes", "fp32_flops", "tf32_flops", "bf16_flops"):
            continue
        unit = "FLOP/s" if key.endswith("flops") else "B/s"
        sheet = f"; datasheet {si(limit.datasheet, unit)} ({limit.source})" if limit.datasheet else ""
        print(f"roof {key:<16} {si(limit.measured, unit):>13} measured ({limit.how}){sheet}")
    for key in ("fp32_flops", "tf32_flops", "bf16_flops"):
        if key in limits:
            print(
                f"ridge point {key.split('_')[0]}: {limits[key].measured / limits['dram_bytes'].measured:.2f} FLOP/B, from the measured roofs"
            )


def print_row(operation: Operation, timing: Timing, limits: dict[str, Any]) -> float:
    """Prints one line of the table; the part of the measured roof that was reached."""
    rate = operation.flops / timing.median_s
    top, bound = roof(operation, limits, "measured")
    sheet, _ = roof(operation, limits, "datasheet")
    warm = f"{1e3 * timing.median_s:.4g} ({1e3 * timing.min_s:.4g}-{1e3 * timing.max_s:.4g})"
    print(
        f"{operation.name:<18}{operation.intensity:>8.3g}{1e3 * timing.cold_s:>9.4g} ms{warm:>30}{si(rate, 'FLOP/s'):>15}"
        f"{si(operation.bytes / timing.median_s, 'B/s'):>12}{bound:>9}{100 * rate / top:>10.1f}%{f'{100 * rate / sheet:.1f}%' if sheet else '-':>11}"
    )
    return rate / top


def conclude(points: list[tuple[Operation, Timing, float]]) -> None:
    near = [operation.name for operation, _, part in points if part >= 0.7]
    least, timing, part = min(points, key=lambda point: point[2])
    cold = max((timing.cold_s / timing.median_s, operation.name) for operation, timing, _ in points)
    print(f"\nat 70% of their roof or more: {', '.join(near) or 'none'}")
    print(
        f"furthest from its roof: {least.name}, {100 * part:.0f}% (takes {1e6 * timing.median_s:.1f} us, {1e6 * timing.median_s * part:.1f} us at the roof)"
    )
    print(f"a first call against a warm one: up to {cold[0]:.1f}x ({cold[1]})")
    unsteady = [operation.name for operation, timing, _ in points if timing.max_s > 1.5 * timing.min_s]
    if unsteady:
        print(f"unsteady, the slowest call over 1.5x the fastest: {', '.join(unsteady)}")


def save(path: Path, points: list[tuple[str, float, float]], limits: dict[str, Any], name: str) -> None:
    from common.plot import roofline

    keys = tuple(key for key in ("fp32_flops", "tf32_flops", "bf16_flops") if key in limits)
    roofline(points, limits, name, keys).savefig(path, dpi=120)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
