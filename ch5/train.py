"""Train two Clifford layers to tell the signed volume of four points, beside a plain network of about the same size.

All bodies to learn from lie the same way: long in x, flat in z. At the end both models are asked about new bodies, as
they lie, and turned and mirrored at random. The layers are equivariant, so a turned body is nothing new to them. The
layers run as operators (on a GPU by the fused kernels), or with --eager by formulas in plain PyTorch: the same losses
but for rounding, in another time. An error of 100 % is what the answer 0 has. signed_volume.py has what is trained.
"""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import math
import re
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program
from common.isolation import interrupt
from common.pairs.user_error import UserError
from common.program import Parser, device_name, picture_path

EXAMPLES = """examples:
  ch5/train.py                                      200 steps of 16 features
  ch5/train.py --eager --plot loss.png              the same by formulas, and both networks' losses in a figure
  ch5/train.py --product fcgp --features 64         another product, and more features
  ch5/train.py --steps 1000 --seed 1 --device cpu   longer, other bodies and weights, no GPU

exit status: 0 done; 2 usage, or a figure that cannot be written; 130 interrupted
"""
TOLD = 10  # losses that are printed
BODIES = 2048  # that no network has learned from


def main() -> int:
    return program.status_of("train.py", run)


def run() -> int:
    """Raises UserError."""
    args = arguments()
    with interrupt.hold_signals():
        import signed_volume  # here and not above: it imports torch, and --help should not wait for it

        where = place(args.device)
        clifford, plain = signed_volume.models(
            args.seed, args.device, features=args.features, product=args.product, eager=args.eager
        )
        how = "formulas" if args.eager else "operators"
        count = signed_volume.size(clifford)
        print(f"{where}: {count:,} parameters, {args.features} features, {args.product} by {how}")
        losses, seconds = timed(signed_volume.train, clifford, args.steps, args.seed, show=True)
        others, plain_seconds = timed(signed_volume.train, plain, args.steps, args.seed)
        report(signed_volume, clifford, plain, args)
        print(f"\n{1e3 * seconds:.2f} ms a step, {1e3 * plain_seconds:.2f} ms of the plain network (medians)")
        if args.plot:
            draw(args.plot, losses, others)
    return 0


def place(device: str) -> str:
    """The device, made current, and its name. Raises UserError."""
    from common.machine.device import describe, use_device

    try:
        name = describe(device)["name"]
    except ValueError as error:
        raise UserError(str(error)) from None
    use_device(device)
    return f"{device} ({name})"


def timed(train: Callable, model: object, steps: int, seed: int, show: bool = False) -> tuple[list[float], float]:
    """The losses of all steps, and the median of their seconds; some losses are printed.

    Raises UserError, and KeyboardInterrupt between two steps: inside one Ctrl-C may strike where Python drops it.
    """
    moments = [time.perf_counter()]

    def tell(step: int, loss: float) -> None:
        moments.append(time.perf_counter())
        if show and (step % max(steps // TOLD, 1) == 0 or step == steps - 1):
            print(f"step {step:>6}  loss {loss:.2e}", flush=True)
        if interrupt.was_interrupted():
            raise KeyboardInterrupt

    losses = train(model, steps, seed, tell)
    if not math.isfinite(losses[-1]):
        raise UserError(f"the loss is {losses[-1]} after {steps} steps: nothing was learned")
    return losses, statistics.median(after - before for before, after in pairwise(moments))


def report(signed_volume, clifford, plain, args: argparse.Namespace) -> None:
    """The errors for bodies that are new, as they lie and turned; and do the answers turn with them?"""
    points, _ = signed_volume.bodies(BODIES, args.seed + 1, args.device)
    turns = signed_volume.turns(BODIES, args.seed, args.device)
    print(f"\n{'error for new bodies':<22}{'as they lie':>14}{'turned, mirrored':>18}")
    for name, model in (("Clifford layers", clifford), ("plain network", plain)):
        lying, turned = signed_volume.error(model, points), signed_volume.error(model, points @ turns.mT)
        print(f"{name:<22}{lying:>14.1%}{turned:>18.1%}")
    gap = signed_volume.gap(clifford, points, turns)
    print(f"all blades of the answers for turned bodies are {gap:.0e} away from the turned answers")


def draw(path: Path, losses: list[float], others: list[float]) -> None:
    """Raises RecordError."""
    from common.show.plot import SERIES, legend, new_figure, save

    figure, axes = new_figure()
    for color, style, name, drawn in (
        (SERIES[0], "-", "Clifford layers", losses),
        (SERIES[1], "--", "plain network", others),
    ):
        axes.plot(range(1, len(drawn) + 1), drawn, style, color=color, label=name)
    axes.set(xlabel="step", ylabel="loss: mean squared error of volumes", yscale="log")
    axes.grid(alpha=0.2)
    legend(axes)
    save(figure, path)
    print(f"figure: {path}")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Raises UserError."""
    from common.machine.device import default_device
    from common.record.files import check_writable

    parser = Parser("train.py", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--steps", type=whole(1, 1_000_000), default=200, metavar="N", help="(default 200)")
    parser.add_argument("--seed", type=whole(0, 1 << 32), default=0, metavar="S", help="of bodies and weights")
    parser.add_argument("--features", type=whole(1, 1024), default=16, metavar="N", help="of a blade (default 16)")
    parser.add_argument("--product", choices=("sgp", "fcgp"), default="sgp", help="(default sgp)")
    parser.add_argument("--eager", action="store_true", help="by the formulas of reference.py, not by operators")
    parser.add_argument(
        "--device", type=device_name, default=default_device(), metavar="DEV",
        help="cuda:0, cpu, ... (default: the first GPU, else the CPU)",
    )  # fmt: skip
    parser.add_argument("--plot", type=picture_path, metavar="F.png", help="draw the losses of all steps")
    args = parser.parse_args(argv)
    if args.plot:
        check_writable(args.plot)
    return args


def whole(least: int, most: int) -> Callable[[str], int]:
    """For argparse: a whole number in these bounds."""

    def number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: not a whole number from {least} to {most}")
        return int(text)

    return number


if __name__ == "__main__":
    program.finish(main)
