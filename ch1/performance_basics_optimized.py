"""The training loop of performance_basics.py, made faster in three ways; what is each worth per sample?

    test 1   the original: batches of 32 from pageable memory
    test 2   a DataLoader that pins its batches, copied without waiting
    test 3   larger batches, the whole step replayed as one CUDA graph (on a CPU, where there are no graphs: the larger batch alone)
    test 4   the step alone over batch sizes, until memory or the list ends

Every variant trains the same fresh model on the same samples: forward, backward and optimizer for each. What a larger batch saves is
the number of steps, so launches, Python and optimizer updates; it is therefore not the same training, and only loops with equal
batches must end with equal weights. Times are wall times of the loop divided by its samples, cold start excluded: warm-up steps and
graph capture come before the clock. The passes of all variants take turns, so that a noisy moment hits them alike.

Predict before you run: which test gains most here, and does a higher goodput mean a faster loop?
"""

import argparse
import statistics
from functools import partial
from typing import Any

from script import Parser, positive, si

SWEEP = {"cpu": (8, 32, 128, 512, 2048, 8192), "cuda": (32, 128, 512, 2048, 8192, 32768, 131072)}
SWEEP_S = 0.02  # a sample of the sweep takes at least this long, so that the clock's resolution does not matter
WEIGHTS_AGREE = 1e-4  # relative to the largest weight: float32 sums in another order drift apart a little in every step


def main() -> None:
    parser, args = arguments()
    device = parser.pick_device(args.device)

    from training import flops_per_sample, make_data, train

    gpu = device != "cpu"
    data = make_data(args.samples)
    large = f"batch {args.large_batch}"
    variants = {
        "original": partial(train, data, device, args.batch),
        "pinned DataLoader": partial(train, data, device, args.batch, pinned=gpu),
        f"{large} alone": partial(train, data, device, args.large_batch),
    }
    if gpu:
        variants[f"CUDA Graphs + {large}"] = partial(train, data, device, args.large_batch, graph=True)
    print(
        f"device {device}: {args.samples} samples a pass, forward + backward + optimizer for each: {si(flops_per_sample(), 'FLOP')} per sample"
    )
    print(
        f"{args.repeats} passes of each variant in turn, each with a fresh model after an untimed warm-up; times: median (min-max)"
    )
    runs: dict[str, list[Any]] = {name: [] for name in variants}
    for _ in range(args.repeats):
        for name, run in variants.items():
            runs[name].append(run())
    check(runs, args.samples)
    report(runs, gpu, large)
    sweep(device, args.batches or SWEEP["cuda" if gpu else "cpu"], args.repeats)
    last = list(runs)[-1]
    print(f"\noverall: {last} against original, time per sample: {compare(times(runs['original']), times(runs[last]))}")


def arguments() -> tuple[Parser, argparse.Namespace]:
    parser = Parser(__doc__)
    parser.add_argument("--samples", type=positive, default=4096, help="samples in a pass (default 4096)")
    parser.add_argument("--batch", type=positive, default=32, help="samples in a step of the original (default 32)")
    parser.add_argument("--large-batch", type=positive, default=256, help="samples in a step of test 3 (default 256)")
    parser.add_argument("--repeats", type=positive, default=5, help="timed passes of each variant (default 5)")
    batches = "sizes of the sweep, as 32,128,512 (on a CPU take what fits: Linux ends a process that fills the memory)"
    parser.add_argument("--batches", type=batch_list, help=batches)
    args = parser.parse_args()
    if args.repeats < 3:
        parser.error(f"--repeats {args.repeats}: a spread needs at least 3")
    for batch in (args.batch, args.large_batch):
        if args.samples % batch:
            parser.error(
                f"--samples {args.samples}: not a multiple of the batch of {batch}, and a graph replays one shape only"
            )
    return parser, args


def batch_list(text: str) -> list[int]:
    sizes = [positive(size) for size in text.split(",")]
    if max(sizes) > 1 << 40:
        raise argparse.ArgumentTypeError(f"{max(sizes)}: a batch beyond {1 << 40}")
    return sizes


def check(runs: dict[str, list[Any]], samples: int) -> None:
    """No time is printed for a loop that did not train, or that trained something else than its twin."""
    from training import make_model, weights

    start = weights(make_model("cpu")[0])
    for name, passes in runs.items():
        if not all(one.samples == samples and one.losses.isfinite().all() for one in passes):
            raise SystemExit(f"{name}: wrong number of samples, or a loss that is not finite")
    for twins in same_arithmetic(runs):
        one, other = (runs[name][-1].weights for name in twins)
        moved, apart = (one - start).abs().max().item(), (one - other).abs().max().item()
        if not apart <= WEIGHTS_AGREE * one.abs().max().item() < moved:
            raise SystemExit(f"{' and '.join(twins)}: their weights end {apart:.1e} apart, having moved by {moved:.1e}")
        print(
            f"checked: {' and '.join(twins)} end with the same weights (largest difference {apart:.1e}, moved by {moved:.1e})"
        )


def same_arithmetic(runs: dict[str, list[Any]]) -> list[tuple[str, str]]:
    """Variants with equal batches: the first two, and on a GPU the last two."""
    names = list(runs)
    return [(names[0], names[1])] + ([(names[2], names[3])] if len(names) == 4 else [])


def report(runs: dict[str, list[Any]], gpu: bool, large: str) -> None:
    before = times(runs["original"])
    titles = {
        "original": "\ntest 1: original",
        "pinned DataLoader": "\ntest 2: pinned DataLoader",
        f"{large} alone": f"\ntest 3: CUDA Graphs + {large}",
    }
    for name, passes in runs.items():
        if name in titles:
            print(titles[name])
        if name == "pinned DataLoader" and not gpu:
            print("  there is no GPU to copy to, so nothing is pinned: the original once more, as a control")
        if name.endswith("alone") and not gpu:
            print("  graphs need CUDA: this is the larger batch alone")
        result = "" if name == "original" else f"  -> {compare(before, times(passes))}"
        goodput = 100 * statistics.median(one.goodput for one in passes)
        print(
            f"  {name}: {spread([1e6 * t for t in times(passes)])} us per sample, {len(passes[0].losses)} steps, goodput {goodput:.1f}%{result}"
        )


def times(passes: list[Any]) -> list[float]:
    """Seconds per sample of each pass."""
    return [one.total_s / one.samples for one in passes]


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g})"


def compare(before: list[float], after: list[float]) -> str:
    """The ratio of the medians and what it is worth: above 1 is faster, and ranges that overlap are the same."""
    ratio = statistics.median(before) / statistics.median(after)
    if min(before) <= max(after) and min(after) <= max(before):
        return f"same ({ratio:.2f}x, inside the spread)"
    return f"{ratio:.2f}x, {'faster' if ratio > 1 else 'slower'}"


def sweep(device: str, batches: list[int], repeats: int) -> None:
    """Test 4. The samples are on the device already: this is the step and nothing else."""
    import torch
    from training import flops_per_sample

    print("\ntest 4: batch-size sweep, the step alone, samples already on the device, no graph")
    print(f"{'batch':>8}  {'ms/iter (min-max)':>28}  {'samples/s':>12}  {'FLOP/s':>14}")
    rates = {}
    for batch in batches:
        try:
            seconds = time_step(device, batch, repeats)
        except (torch.OutOfMemoryError, RuntimeError) as error:  # a CPU's allocator raises the plain one
            if not isinstance(error, torch.OutOfMemoryError) and "allocate memory" not in str(error):
                raise
            print(f"{batch:>8}  out of memory: the sweep ends here")
            break
        rates[batch] = batch / statistics.median(seconds)
        flops = si(flops_per_sample() * rates[batch], "FLOP/s")
        print(f"{batch:>8}  {spread([1e3 * s for s in seconds]):>28}  {rates[batch]:>12.4g}  {flops:>14}")
    if rates:
        best = max(rates.values())
        enough = min(batch for batch, rate in rates.items() if rate >= 0.9 * best)
        print(f"batch {enough} is the smallest with at least 90% of the best samples/s ({best:.4g})")


def time_step(device: str, batch: int, repeats: int) -> list[float]:
    """Seconds of one step, over `repeats` samples of as many steps as take SWEEP_S."""
    import torch
    from training import WARMUP_STEPS, WIDTHS, make_model, mark, seconds_between, synchronize, train_step

    model, optimizer = make_model(device)
    x = torch.randn(batch, WIDTHS[0], device=device)
    y = torch.randint(WIDTHS[-1], (batch,), device=device)

    def steps(count: int) -> float:
        synchronize(device)
        start = mark(device)
        for _ in range(count):
            loss = train_step(model, optimizer, x, y)
        stop = mark(device)
        synchronize(device)
        if not loss.isfinite():
            raise SystemExit(f"batch {batch}: the loss is not finite")
        return seconds_between(start, stop) / count

    steps(WARMUP_STEPS)
    count = max(1, round(SWEEP_S / steps(1)))
    return [steps(count) for _ in range(repeats)]


if __name__ == "__main__":
    main()
