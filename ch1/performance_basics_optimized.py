"""The training loop of performance_basics.py, made faster in three ways; what is each worth per sample?

    test 1   the original: batches of 32 from pageable memory
    test 2   a DataLoader that pins its batches, copied without waiting
    test 3   larger batches, the whole step replayed as one CUDA graph (on a CPU, without graphs: larger batches alone)
    test 4   the step alone over batch sizes, until memory or the list ends

Every variant trains the same fresh model on the same samples, with forward, backward and optimizer. A larger batch
means fewer steps: fewer launches, less Python, fewer updates by the optimizer. That is another training, so only loops
with equal batches must end with equal weights. Times are wall times of the loop divided by its samples. Cold start is
excluded: warm-up steps and graph capture come before the clock. The variants take turns, so that noise affects all.
"""

import argparse
import statistics
from functools import partial
from typing import Any

from script import Parser, positive, say, si, spread, start, where

SWEEP = {"cpu": (8, 32, 128, 512, 2048, 8192), "cuda": (32, 128, 512, 2048, 8192, 32768, 131072)}
SWEEP_S = 0.02  # one sample of the sweep takes about as long: far above the clock's resolution
AGREE = 1e-4  # of the largest weight: float32 sums in another order drift apart a little in every step

Runs = dict[str, list[Any]]  # variant -> its passes


def main() -> None:
    parser = Parser(__doc__)
    args = arguments(parser)
    device = parser.pick_device(args.device)

    from training import flops_per_sample, make_data

    work = f"{args.samples} samples a pass, {si(flops_per_sample(), 'FLOP')} each (forward + backward + optimizer)"
    say(f"{where(device)}: {work}")
    say(f"{args.repeats} passes a variant, in turns, warm-up excluded; times: median (min-max)")
    runs = run_all(variants(make_data(args.samples), device, args.batch, args.large_batch), args.repeats)
    check(runs, args.samples)
    report(runs, device)
    sweep(device, args.batches or SWEEP[device.split(":")[0]], args.repeats)
    last = list(runs)[-1]
    say(f"\noverall: {last} against original, per sample: {compare(times(runs['original']), times(runs[last]))}")


def arguments(parser: Parser) -> argparse.Namespace:
    parser.add_argument("--samples", type=positive, default=4096, help="samples in a pass (default 4096)")
    parser.add_argument("--batch", type=positive, default=32, help="samples in a step of the original (default 32)")
    parser.add_argument("--large-batch", type=positive, default=256, help="samples in a step of test 3 (default 256)")
    parser.add_argument("--repeats", type=positive, default=5, help="timed passes of each variant (default 5)")
    fits = "on a CPU take what fits: Linux ends a process that fills the memory"
    parser.add_argument("--batches", type=batch_list, help=f"sizes of test 4, as 32,128,512 ({fits})")
    args = parser.parse_args()
    if args.repeats < 3:
        parser.error(f"--repeats {args.repeats}: a spread needs at least 3")
    for batch in (args.batch, args.large_batch):
        if args.samples % batch:
            parser.error(
                f"--samples {args.samples}: not a multiple of the batch {batch}; a graph replays one shape only"
            )
    return args


def batch_list(text: str) -> list[int]:
    sizes = [positive(size) for size in text.split(",")]
    if max(sizes) > 1 << 40:
        raise argparse.ArgumentTypeError(f"{max(sizes)}: a batch of more than {1 << 40}")
    return sizes


def variants(data: Any, device: str, batch: int, large: int) -> dict[str, Any]:
    """Name -> the call that trains. The last one is the most optimized."""
    from training import train

    gpu = device != "cpu"
    graphs = {f"CUDA Graphs + batch {large}": partial(train, data, device, large, graph=True)} if gpu else {}
    return {
        "original": partial(train, data, device, batch),
        "pinned DataLoader": partial(train, data, device, batch, pinned=gpu),
        f"batch {large} alone": partial(train, data, device, large),
        **graphs,
    }


def run_all(calls: dict[str, Any], repeats: int) -> Runs:
    runs: Runs = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            runs[name].append(call())
    return runs


def check(runs: Runs, samples: int) -> None:
    """No time is printed for a loop that did not train, or that trained something else than its twin."""
    from training import make_model, weights

    for name, passes in runs.items():
        if not all(one.samples == samples and one.losses.isfinite().all() for one in passes):
            raise SystemExit(f"{name}: a wrong number of samples, or a loss that is not finite")
    start = weights(make_model("cpu")[0])
    names = list(runs)
    for first, second in zip(names[::2], names[1::2], strict=False):  # twins with equal batches stand side by side
        one, other = runs[first][-1].weights, runs[second][-1].weights
        moved, apart = (one - start).abs().max().item(), (one - other).abs().max().item()
        if not apart <= AGREE * one.abs().max().item() < moved:
            raise SystemExit(f"{first} and {second}: weights that moved by {moved:.1e} end {apart:.1e} apart")
        say(f"verified: {first} and {second} end with equal weights (moved by {moved:.1e}, {apart:.1e} apart)")


def report(runs: Runs, device: str) -> None:
    names = list(runs)
    say("\ntest 1: original")
    print_variant(runs, names[0])
    say("\ntest 2: pinned DataLoader")
    if device == "cpu":
        say("  no GPU to copy to, so nothing is pinned: the original once more, as an A/A control")
    print_variant(runs, names[1])
    say("\ntest 3: CUDA Graphs + larger batch")
    if device == "cpu":
        say("  graphs need CUDA: this is the larger batch alone")
    for name in names[2:]:
        print_variant(runs, name)


def print_variant(runs: Runs, name: str) -> None:
    passes, result = runs[name], ""
    if name != "original":
        result = f" -> {compare(times(runs['original']), times(passes))}"
    goodput = 100 * statistics.median(one.goodput for one in passes)
    rest = f"{len(passes[0].losses)} steps, goodput {goodput:.1f}%"
    say(f"  {name}: {spread(times(passes), 1e6)} us per sample, {rest}{result}")


def times(passes: list[Any]) -> list[float]:
    """Seconds per sample of each pass."""
    return [one.total_s / one.samples for one in passes]


def compare(before: list[float], after: list[float]) -> str:
    """The ratio of the medians and what it is worth: above 1 is faster; ranges that overlap cannot tell."""
    ratio = statistics.median(before) / statistics.median(after)
    if min(before) <= max(after) and min(after) <= max(before):
        return f"unsure ({ratio:.2f}x, inside the spread)"
    return f"{ratio:.2f}x, {'faster' if ratio > 1 else 'slower'}"


def sweep(device: str, batches: list[int], repeats: int) -> None:
    """Test 4. The samples are on the device already: this is the step and nothing else."""
    from training import flops_per_sample

    say("\ntest 4: batch-size sweep: the step alone, samples already on the device, no graph")
    print(f"{'batch':>8}{'ms/iter (min-max)':>30}{'samples/s':>14}{'FLOP/s':>16}")
    rates = {}
    for batch in batches:
        seconds = time_step(device, batch, repeats)
        if not seconds:
            print(f"{batch:>8}  out of memory: the sweep ends here")
            break
        rates[batch] = batch / statistics.median(seconds)
        flops = si(flops_per_sample() * rates[batch], "FLOP/s")
        print(f"{batch:>8}{spread(seconds, 1e3):>30}{rates[batch]:>14.4g}{flops:>16}")
    if rates:
        best = max(rates.values())
        enough = min(batch for batch, rate in rates.items() if rate >= 0.9 * best)
        say(f"batch {enough} is the smallest with at least 90% of the best samples/s ({best:.4g})")


def time_step(device: str, batch: int, repeats: int) -> list[float]:
    """Seconds of one step, `repeats` times, each over as many steps as take SWEEP_S; empty: out of memory."""
    import torch
    from training import WARMUP_STEPS, fixed_steps

    try:
        steps = fixed_steps(device, batch)
        steps(WARMUP_STEPS)
        count = max(1, round(SWEEP_S / steps(1)))
        return [steps(count) for _ in range(repeats)]
    except RuntimeError as error:  # a GPU's allocator raises OutOfMemoryError, a CPU's the plain one
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            return []
        raise


if __name__ == "__main__":
    start(main)
