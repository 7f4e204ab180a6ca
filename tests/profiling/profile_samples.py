"""Events of a GPU and of the host, and a profile of them."""

from common.record.profile_file import About, Event, Profile

DEVICE = {"kind": "cuda", "name": "NVIDIA H200"}
ABOUT = About(
    "ch1", "double", "optimized/fused", "default", {"n": 4}, "0" * 16, {"device": DEVICE, "date": "2026-01-01"},
    call_s=60e-6, profiled_s=1e-4,
)  # fmt: skip


def launch(number: int, begin: float, end: float, name: str = "cudaLaunchKernel") -> Event:
    return Event(name, "X", "cuda_runtime", 0, 1, begin, end - begin, args={"correlation": number})


def work(number: int, begin: float, end: float, stream: int = 7, cat: str = "kernel") -> Event:
    return Event(f"work_{number}", "X", cat, 1, stream, begin, end - begin, args={"correlation": number})


def call(name: str, begin: float, end: float, cat: str = "cuda_runtime", thread: int = 1) -> Event:
    return Event(name, "X", cat, 0, thread, begin, end - begin)


def profile(*events: Event) -> Profile:
    """Of a call of 100 us under the profiler, 60 us without it."""
    return Profile(ABOUT, list(events))


BUSY = launch(1, 10, 15), work(1, 20, 50), launch(2, 60, 65), work(2, 70, 80)
