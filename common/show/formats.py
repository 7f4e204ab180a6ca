"""Number formats of tables, figures and notebooks. 1 GB = 1e9 bytes, 1 KiB = 1024 bytes."""

from collections.abc import Callable

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # of seconds


def digits(value: float) -> str:
    """A value with three significant digits, never as a power of ten."""
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:.0f}"


def four_digits(value: float) -> str:
    """A value with at most four digits, as in a datasheet (67, not 67.00), never as a power of ten."""
    return f"{value:.4g}" if value < 9999.5 else f"{value:.0f}"


def seconds(value: float) -> str:
    unit = next((unit for unit, scale in UNITS.items() if value >= 0.9995 * scale), "ns")
    return f"{digits(value / UNITS[unit])} {unit}"


def binary(value: float) -> str:
    """Bytes as 48 KiB, 1.5 MiB or 140 GiB."""
    power = max((k for k in range(4) if value >= 1 << 10 * k), default=0)
    return f"{value / (1 << 10 * power):.{4 if value < 1 << 20 else 3}g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def bandwidth(per_s: float) -> str:
    """Bytes per second as 52.1 GB/s or 4.03 TB/s."""
    return f"{digits(per_s / 1e12)} TB/s" if per_s >= 1e12 else f"{digits(per_s / 1e9)} GB/s"


def rate(per_s: float, resource: str, number: Callable[[float], str] = digits) -> str:
    """Units per second as GB/s or TFLOP/s, by the resource (`dram_bytes`, `fp16_flops`)."""
    return f"{number(per_s / 1e9)} GB/s" if resource.endswith("bytes") else f"{number(per_s / 1e12)} TFLOP/s"


def tflops(per_s: float) -> str:
    return rate(per_s, "flops")
