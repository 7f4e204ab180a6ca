"""Goodput of a small training loop: which part of the wall time is the step itself?

    goodput = time in the step's forward, backward and optimizer work / wall time of the loop

The loop takes a batch from a DataLoader, copies it to the device and takes one training step. On a GPU the step's time
is read from two events in the stream around it, so that nothing has to be synchronized inside the loop. The wall time
ends after a synchronization. On a CPU, where a call returns when its work is done, both are read with perf_counter.
Cold start is excluded: every pass begins with warm-up steps before the clock.

Goodput does not show whether the GPU is busy within the step: between the two events it may wait for the next launch,
and that wait counts as useful. A loop can have a high goodput and be slow. performance_basics_optimized.py compares
times.
"""

from script import Parser, positive, say, spread, start, where


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--samples", type=positive, default=4096, help="samples in a pass (default 4096)")
    parser.add_argument("--batch", type=positive, default=32, help="samples in a step (default 32)")
    parser.add_argument("--repeats", type=positive, default=5, help="timed passes, each a fresh model (default 5)")
    args = parser.parse_args()
    if args.batch > args.samples:
        parser.error(f"--batch {args.batch}: more than --samples {args.samples}")
    device = parser.pick_device(args.device)

    from training import flops_per_sample, make_data, train

    data = make_data(args.samples)
    passes = [train(data, device, args.batch) for _ in range(args.repeats)]
    losses = passes[-1].losses
    if not losses.isfinite().all():
        raise SystemExit("the loss is not finite: this loop trains nothing, and its time means nothing")
    useful_s, total_s = sum(one.useful_s for one in passes), sum(one.total_s for one in passes)
    steps = args.repeats * len(losses)
    rate = args.repeats * args.samples * flops_per_sample() / useful_s
    say(f"{where(device)}: {args.repeats} passes of {len(losses)} steps, batch {args.batch}, warm-up excluded")
    say(f"goodput={100 * useful_s / total_s:.2f}% (useful={useful_s:.5f}s total={total_s:.5f}s)")
    say(f"of each pass, median (min-max): {spread([one.goodput for one in passes], 100)}%")
    say(f"outside the step (loader, copies, Python): {1e6 * (total_s - useful_s) / steps:.1f} us per step")
    say(f"inside the step: {1e6 * useful_s / steps:.1f} us, {rate / 1e9:.1f} GFLOP/s")
    say(f"loss: {losses[0]:.3f} in the first step, {losses[-1]:.3f} in the last")


if __name__ == "__main__":
    start(main)
