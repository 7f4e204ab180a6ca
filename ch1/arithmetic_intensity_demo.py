"""The knee of the roofline: one array read and written once, with 1 to 512 FLOPs per element in between.

Every element v becomes a * v + b, many times: each is one fused multiply-add (2 FLOPs) that needs the one before it.
However long this chain is, the element is read once and written once, 8 bytes of DRAM traffic. So the arithmetic
intensity (AI) is FLOPs per element / 8. While memory is the limit, arithmetic is free: the time does not change, and
FLOP/s double with every step. Past the knee the time doubles instead.

On a GPU a CUDA C++ kernel (compiled by NVRTC through CuPy, no nvcc needed) keeps four chains per thread in registers,
so that the arithmetic units are the limit. On a CPU there may be no compiler. There one thread of torch walks the array
in chunks that stay in the L2 cache, with one pass per multiply-add. DRAM still sees one read and one write, but the
other limit is the rate of those passes (8 bytes of cache traffic for 2 FLOPs), not that of the arithmetic units. So the
knee lies before the ridge point.
"""

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

from script import Parser, Timing, positive, say, si, spread, start, timed, where

from common.program import picture_path
from common.record.files import check_writable

FLOPS = tuple(1 << k for k in range(10))  # 1 to 512 per element; 1 is a lone addition
A, B = 0.9921875, 0.00390625  # exact in float32; towards B / (1 - A) = 0.5, but 256 steps still show where one began
ELEMENTS = {"cpu": 1 << 24, "cuda": 1 << 26}  # 64 and 256 MiB each way: more than most caches hold
MOST = 1 << 28  # 1 GiB each way
CHUNK = 1 << 16  # elements in a pass on a CPU: 256 KiB, which an L2 of today holds
THREADS = 256
TOLERANCE = 2e-5  # for values in [0, 1]: two roundings of half an eps a step, each shrunk by A later: 1.5e-5 at most

KERNEL = r"""
template <int FLOPS>
__global__ void chain(const float4* __restrict__ x, float4* __restrict__ y, float a, float b, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = x[i];  // 16 bytes a thread, neighbours adjacent; four chains that do not wait for one another
    if (FLOPS == 1) {
        v.x += b; v.y += b; v.z += b; v.w += b;
    }
    #pragma unroll
    for (int k = 0; k < FLOPS / 2; k++) {
        v.x = fmaf(v.x, a, b);
        v.y = fmaf(v.y, a, b);
        v.z = fmaf(v.z, a, b);
        v.w = fmaf(v.w, a, b);
    }
    y[i] = v;
}
"""
NAMES = [f"chain<{flops}>" for flops in FLOPS]  # what NVRTC is asked to instantiate

Chain = Callable[[int], Callable[[], Any]]  # FLOPs per element -> the call that computes them


def cuda_chain(x: Any, out: Any) -> Chain:
    import cupy
    import numpy as np

    module = cupy.RawModule(code=KERNEL, options=("--std=c++17",), name_expressions=NAMES)
    n4 = len(x) // 4
    grid, block = ((n4 + THREADS - 1) // THREADS,), (THREADS,)
    arguments = (cupy.asarray(x), cupy.asarray(out), np.float32(A), np.float32(B), np.int32(n4))  # torch's own memory

    def chain(flops: int) -> Callable[[], Any]:
        kernel = module.get_function(f"chain<{flops}>")
        return lambda: kernel(grid, block, arguments)

    return chain


def cpu_chain(x: Any, out: Any) -> Chain:
    import torch

    b = torch.tensor(B)
    chunks = list(zip(x.split(CHUNK), out.split(CHUNK), strict=True))

    def chain(flops: int) -> Callable[[], Any]:
        def run() -> None:
            for x_chunk, out_chunk in chunks:
                torch.add(b, x_chunk, alpha=A if flops > 1 else 1, out=out_chunk)  # from DRAM
                for _ in range(flops // 2 - 1):
                    torch.add(b, out_chunk, alpha=A, out=out_chunk)  # in the cache

        return run

    return chain


def expected(x: Any, flops: int) -> Any:
    """The chain's value in closed form, in float64: a^k x + b (1 - a^k) / (1 - a)."""
    k = flops // 2
    return x + B if flops == 1 else A**k * x + B * (1 - A**k) / (1 - A)


def check(chain: Chain, x: Any, out: Any) -> float:
    """The largest error over all chains, on elements spread over the array and its end; exits if one is wrong.

    Few launches beside the chains', and before any timing: profile_cuda.sh looks at the first launches of a script.
    """
    import torch

    n, worst = len(x), 0.0
    every_lane = torch.arange(0, n, 1009)  # a prime number apart
    some = torch.cat((every_lane, torch.arange(max(0, n - 4096), n))).to(x.device)
    x_some = x[some].cpu().double()
    for flops in FLOPS:
        chain(flops)()
        worst = max(worst, (out[some].cpu().double() - expected(x_some, flops)).abs().max().item())
        if not worst <= TOLERANCE:
            raise SystemExit(f"{flops} FLOPs per element: off by {worst:.1e} from float64, more than {TOLERANCE:.0e}")
    return worst


def main() -> None:
    parser = Parser(__doc__)
    elements = f"floats in the array, a multiple of 4 (default {ELEMENTS['cuda']}, on a CPU {ELEMENTS['cpu']})"
    parser.add_argument("--elements", type=positive, help=elements)
    parser.add_argument("--repeats", type=positive, default=5, help="warm calls of each chain (default 5)")
    plot = "the plot's file (default arithmetic_intensity_demo.png in the current folder)"
    parser.add_argument("--output", type=picture_path, default=Path("arithmetic_intensity_demo.png"), help=plot)
    args = parser.parse_args()
    if args.elements and (args.elements % 4 or args.elements > MOST):
        parser.error(f"--elements {args.elements}: not a multiple of 4 up to {MOST}")
    check_writable(args.output)
    device = parser.pick_device(args.device)

    from common.machine.limits import measure_limits

    n = args.elements or ELEMENTS[device.split(":")[0]]
    timings = measure(n, device, args.repeats)
    limits = measure_limits(device)
    print_table(timings, n)
    conclude(timings, n, limits)
    save(args.output, timings, n, limits, where(device))


def measure(n: int, device: str, repeats: int) -> dict[int, Timing]:
    """FLOPs per element -> times, of chains that were verified before."""
    import torch

    if device == "cpu":
        torch.set_num_threads(1)  # one core against its own roofs: a pass over a chunk is too short to be shared out
    x = torch.rand(n, device=device)
    out = torch.zeros_like(x)
    chain = (cpu_chain if device == "cpu" else cuda_chain)(x, out)
    say(f"verified: every chain agrees with float64, largest error {check(chain, x, out):.1e}")
    how = "passes over chunks that stay in L2" if device == "cpu" else "four chains per thread, in registers"
    say(f"{where(device)}: {n} floats, {8 * n / 1e6:.0f} MB of DRAM traffic; {how}")
    return {flops: timed(chain(flops), device, repeats) for flops in FLOPS}


def print_table(timings: dict[int, Timing], n: int) -> None:
    print(f"\n{'FLOP/element':>12}{'AI, FLOP/B':>12}{'ms (min-max)':>29}{'FLOP/s':>15}{'bytes/s':>12}")
    for flops, timing in timings.items():
        rate, traffic = si(flops * n / timing.median_s, "FLOP/s"), si(8 * n / timing.median_s, "B/s")
        print(f"{flops:>12}{flops / 8:>12.3f}{spread(timing.warm_s, 1e3):>29}{rate:>15}{traffic:>12}")


def knee(timings: dict[int, Timing], n: int) -> tuple[float, float]:
    """(most bytes/s, most FLOP/s) of the sweep: the two straight parts of the curve, which cross at their ratio."""
    seconds = {flops: timing.median_s for flops, timing in timings.items()}
    return 8 * n / min(seconds.values()), max(flops * n / time for flops, time in seconds.items())


def conclude(timings: dict[int, Timing], n: int, limits: dict[str, Any]) -> None:
    """The knee from the data beside the ridge point from the measured roofs."""
    memory, compute = knee(timings, n)
    copy, peak = limits["dram_bytes"].measured, limits["fp32_flops"].measured
    best = f"{si(memory, 'B/s')} and {si(compute, 'FLOP/s')}"
    say(f"\nknee: {compute / memory:.2f} FLOP/B, where the sweep's best meet: {best}")
    roofs = f"{si(copy, 'B/s')} (copy) and {si(peak, 'FLOP/s')} (fp32 product)"
    say(f"ridge point: {peak / copy:.2f} FLOP/B, from the measured roofs: {roofs}")
    say(f"the sweep reaches {memory / copy:.0%} of the copy's bytes/s and {compute / peak:.0%} of the product's FLOP/s")
    free = list(takewhile(lambda flops: timings[flops].median_s <= 1.1 * timings[1].median_s, FLOPS))[-1]
    say(f"arithmetic is free (within 10% of the time of 1 FLOP) up to {free} FLOP per element")
    last, before = (flops * n / timings[flops].median_s for flops in (FLOPS[-1], FLOPS[-2]))
    if last >= compute and last > 1.1 * before:
        say("FLOP/s still grows at the end of the sweep: the knee may lie further right")


def save(path: Path, timings: dict[int, Timing], n: int, limits: dict[str, Any], title: str) -> None:
    from common.show.plot import roofline
    from common.show.plot import save as save_figure

    memory, compute = knee(timings, n)
    figure = roofline([], limits, title)
    (axes,) = figure.axes
    intensity = [flops / 8 for flops in timings]
    rates = [flops * n / timing.median_s / 1e9 for flops, timing in timings.items()]
    axes.plot(intensity, rates, "o-", color="#D55E00", markeredgecolor="black", label="1 to 512 FLOPs per element")
    label = f"knee of the sweep, {compute / memory:.1f} FLOP/B"
    axes.axvline(compute / memory, color="#D55E00", linestyle="--", linewidth=1, label=label)
    axes.legend(fontsize=8)
    save_figure(figure, path)
    print(f"saved {path}")


if __name__ == "__main__":
    start(main)
