"""The knee of the roofline: the same array read and written once, with 1 to 512 FLOPs per element in between.

Every element v becomes a * v + b, again and again: one fused multiply-add (2 FLOPs) that needs the one before it. It is
read once and written once however long the chain, 8 bytes of DRAM traffic, so AI = FLOPs per element / 8. While memory is the
limit, arithmetic is free: the time stays where it is and FLOP/s doubles with every step. Past the knee the time doubles instead.

On a GPU a CUDA C++ kernel (compiled by NVRTC through CuPy, no nvcc needed) keeps four chains per thread in registers, so that the
arithmetic units are the limit. On a CPU there is no compiler to count on: one thread of torch walks the array in chunks that
stay in the L2 cache, one in-cache pass per multiply-add. DRAM still sees one read and one write, but the other limit is the rate of those
passes (8 bytes of cache traffic for 2 FLOPs) and not the arithmetic units: expect the knee before the ridge point.

Predict before you run: from the bandwidth and the peak of your machine, at how many FLOPs per element is the knee?
"""

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

from script import Parser, Timing, positive, si, timed

FLOPS = tuple(1 << k for k in range(10))  # 1 to 512 per element; 1 is a lone addition
A, B = (
    0.9921875,
    0.00390625,
)  # exact in float32; values move towards B / (1 - A) = 0.5 and after 256 steps still show where they began
ELEMENTS = {"cpu": 1 << 24, "cuda": 1 << 26}  # 64 and 256 MiB each way: more than the caches hold
CHUNK = 1 << 16  # elements a CPU thread passes over at a time: 256 KiB, which an L2 of today holds
THREADS = 256
TOLERANCE = 2e-5  # absolute, for values in [0, 1]: roundings of half an eps, two a step, shrink by A: 1.5e-5 at most

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
    n4 = x.numel() // 4
    grid, block = ((n4 + THREADS - 1) // THREADS,), (THREADS,)
    arguments = (
        cupy.asarray(x),
        cupy.asarray(out),
        np.float32(A),
        np.float32(B),
        np.int32(n4),
    )  # the same memory, as CuPy sees it

    def chain(flops: int) -> Callable[[], Any]:
        kernel = module.get_function(f"chain<{flops}>")
        return lambda: kernel(grid, block, arguments)

    return chain


def cpu_chain(x: Any, out: Any) -> Chain:
    import torch

    a, b = A, torch.tensor(B)
    chunks = list(zip(x.split(CHUNK), out.split(CHUNK)))

    def chain(flops: int) -> Callable[[], Any]:
        def run() -> None:
            for here, there in chunks:
                torch.add(b, here, alpha=a if flops > 1 else 1, out=there)  # from DRAM
                for _ in range(flops // 2 - 1):
                    torch.add(b, there, alpha=a, out=there)  # in the cache

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
    some = torch.cat((torch.arange(0, n, 1009), torch.arange(max(0, n - 4096), n))).to(
        x.device
    )  # 1009 is prime: all lanes
    x_some = x[some].cpu().double()
    for flops in FLOPS:
        chain(flops)()
        worst = max(worst, (out[some].cpu().double() - expected(x_some, flops)).abs().max().item())
        if not worst <= TOLERANCE:
            raise SystemExit(f"{flops} FLOPs per element: off by {worst:.1e} from float64, more than {TOLERANCE:.0e}")
    return worst


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--elements",
        type=positive,
        help=f"floats in the array, a multiple of 4 (default {ELEMENTS['cuda']}; on a CPU {ELEMENTS['cpu']})",
    )
    parser.add_argument("--repeats", type=positive, default=5, help="warm calls of each (default 5)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("arithmetic_intensity_demo.png"),
        help="the plot (default arithmetic_intensity_demo.png)",
    )
    args = parser.parse_args()
    if args.elements and args.elements % 4:
        parser.error(f"--elements {args.elements}: not a multiple of 4, and a thread takes 4 floats")
    parser.check_output(args.output)
    device = parser.pick_device(args.device)

    import torch

    from common.device import describe
    from common.limits import measure_limits

    gpu = device != "cpu"
    if not gpu:
        torch.set_num_threads(1)  # one core against its own roofs: a pass over a chunk is too short to be shared out
    x = torch.rand(args.elements or ELEMENTS["cuda" if gpu else "cpu"], device=device)
    out = torch.zeros_like(x)
    chain = (cuda_chain if gpu else cpu_chain)(x, out)
    print(f"checked: every chain agrees with float64, largest error {check(chain, x, out):.1e}")
    how = "a chain in registers per element" if gpu else "one thread, passes over chunks that stay in the L2 cache"
    print(f"{device}: {x.numel()} floats, {2 * x.nbytes / 1e6:.0f} MB of DRAM traffic; {how}")
    timings = {flops: timed(chain(flops), device, args.repeats) for flops in FLOPS}
    report(timings, x.numel())
    limits = measure_limits(device)
    conclude(timings, x.numel(), limits)
    save(args.output, timings, x.numel(), limits, describe(device)["name"])


def report(timings: dict[int, Timing], n: int) -> None:
    print(f"\n{'FLOP/element':>12}{'AI, FLOP/B':>12}{'median ms (min-max)':>30}{'FLOP/s':>15}{'bytes/s':>12}")
    for flops, timing in timings.items():
        warm = f"{1e3 * timing.median_s:.4g} ({1e3 * timing.min_s:.4g}-{1e3 * timing.max_s:.4g})"
        print(
            f"{flops:>12}{flops / 8:>12.3f}{warm:>30}{si(flops * n / timing.median_s, 'FLOP/s'):>15}{si(8 * n / timing.median_s, 'B/s'):>12}"
        )


def knee(timings: dict[int, Timing], n: int) -> tuple[float, float]:
    """(most bytes/s, most FLOP/s) over the sweep: the two straight parts of the curve, which cross at their ratio."""
    least = min(timings.values(), key=lambda timing: timing.median_s).median_s
    return 8 * n / least, max(flops * n / timing.median_s for flops, timing in timings.items())


def conclude(timings: dict[int, Timing], n: int, limits: dict[str, Any]) -> None:
    """The knee from the data beside the ridge point from the measured roofs."""
    memory, compute = knee(timings, n)
    peak, copy = limits["fp32_flops"].measured, limits["dram_bytes"].measured
    print(
        f"\nknee: {compute / memory:.2f} FLOP/B, where {si(memory, 'B/s')} and {si(compute, 'FLOP/s')}, the sweep's best, meet"
    )
    print(
        f"ridge point: {peak / copy:.2f} FLOP/B, from the measured roofs {si(copy, 'B/s')} (copy) and {si(peak, 'FLOP/s')} (fp32 matrix product)"
    )
    print(
        f"the sweep reaches {100 * memory / copy:.0f}% of the copy's bytes/s and {100 * compute / peak:.0f}% of the product's FLOP/s"
    )
    free = list(takewhile(lambda flops: timings[flops].median_s <= 1.1 * timings[1].median_s, FLOPS))[-1]
    print(f"arithmetic is free (within 10% of the time of 1 FLOP) up to {free} FLOP per element")
    last, before = (flops * n / timings[flops].median_s for flops in (FLOPS[-1], FLOPS[-2]))
    if last >= compute and last > 1.1 * before:
        print("FLOP/s still grows at the end of the sweep: the knee may lie further right")


def save(path: Path, timings: dict[int, Timing], n: int, limits: dict[str, Any], title: str) -> None:
    from common.plot import roofline

    memory, compute = knee(timings, n)
    figure = roofline([], limits, title)
    (axes,) = figure.axes
    rates = [flops * n / timing.median_s / 1e9 for flops, timing in timings.items()]
    axes.plot(
        [flops / 8 for flops in timings],
        rates,
        "o-",
        color="#D55E00",
        markeredgecolor="black",
        label="1 to 512 FLOPs per element, measured",
    )
    axes.axvline(
        compute / memory,
        color="#D55E00",
        linestyle="--",
        linewidth=1,
        label=f"knee of the sweep, {compute / memory:.1f} FLOP/B",
    )
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
