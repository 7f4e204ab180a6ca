"""Search the fastest configuration of a matrix product: tiles, groups, stages, warps, variant, in generations.

Each candidate is checked by arithmetic (does an SM have the shared memory and the registers?), compiled and verified
against float64. Only then it is timed, in turns with the default and an A/A control (the default again), which shows
how large noise is. Every trial is written to a history (JSON lines). The same command continues a history that was
interrupted, and measures nothing twice.

Without a GPU the same loop searches a proxy for time, computed from the machine code for a named GPU (--arch).
"""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program
from common.isolation import interrupt
from common.program import Parser, device_name, picture_path
from common.xray.occupancy import MACHINES

EXAMPLES = """examples:
  ch4/tune.py                                       a tenth of the space, by evolution
  ch4/tune.py --problem 8192x8192x8192 --dtype bfloat16 --budget 120 --export best.json --plot best.png
  ch4/tune.py --exhaustive --history sweep.jsonl    everything; once is enough
  ch4/tune.py --compare search.jsonl sweep.jsonl    how near the search came, and at what price
  ch4/tune.py --replay sweep.jsonl --seeds 100      the search against the recorded sweep: no GPU, many seeds
  ch4/tune.py --load best.json                      an exported configuration in the kernel, against the default
  ch4/tune.py --arch sm_90 --evaluations 24         no GPU: X-ray's proxy
  ch4/tune.py --proposer llm                        a language model (OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL)

exit status: 0 done; 1 a process died, the model gave nothing to try, a file could not be written; 2 usage;
130 interrupted
"""
PROPOSERS = ("evolutionary", "random", "llm")
DTYPES, ACTIVATIONS = ("float16", "bfloat16"), ("none", "leaky_relu", "relu")


def main() -> int:
    return program.status_of("tune.py", run)


def run() -> int:
    """Raises UserError."""
    args = arguments()
    with interrupt.hold_signals():
        from search import commands  # here and not above: it imports torch, and --help should not wait for it

        return commands.run(args, progress)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Raises UsageError."""
    parser = Parser("tune.py", description=__doc__, epilog=EXAMPLES)
    what = parser.add_argument_group("what")
    what.add_argument(
        "--problem", type=sides, default=(4096, 4096, 4096), metavar="MxNxK", help="(default 4096x4096x4096)"
    )
    what.add_argument("--dtype", choices=DTYPES, default="float16")
    what.add_argument("--activation", choices=ACTIVATIONS, default="leaky_relu", help="(default leaky_relu)")
    where = parser.add_argument_group("where").add_mutually_exclusive_group()
    where.add_argument("--device", type=device_name, metavar="DEV", help="cuda:N (default: the first GPU)")
    where.add_argument(
        "--arch", choices=MACHINES, metavar="SM", help="search X-ray's proxy for this GPU (default without one: sm_90)"
    )
    how = parser.add_argument_group("how")
    how.add_argument("--proposer", choices=PROPOSERS, default=PROPOSERS[0], help="(default evolutionary)")
    how.add_argument("--exhaustive", action="store_true", help="try the whole space")
    how.add_argument("--evaluations", type=int, metavar="N", help="try so many (default: a tenth of the space)")
    how.add_argument("--budget", type=float, default=math.inf, metavar="S", help="begin no generation after S seconds")
    how.add_argument("--seed", type=int, default=0, metavar="N", help="of proposals and inputs (default 0)")
    how.add_argument(
        "--history", type=Path, metavar="F.jsonl", help="go on with it, or begin it (default: in results/ch4)"
    )
    instead = parser.add_argument_group("instead of a search").add_mutually_exclusive_group()
    instead.add_argument(
        "--compare", nargs=2, type=Path, metavar=("SEARCH", "SWEEP"), help="two histories: their bests"
    )
    instead.add_argument("--replay", type=Path, metavar="SWEEP", help="search a recorded sweep, once for each seed")
    instead.add_argument(
        "--load", type=Path, metavar="F.json", help="time an exported configuration against the default"
    )
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="with --replay (default 20)")
    output = parser.add_argument_group("output")
    output.add_argument("--export", type=Path, metavar="F.json", help="write the best configuration, for gemm.load")
    output.add_argument("--plot", type=picture_path, metavar="F.png", help="draw the best so far by generation")
    args = parser.parse_args(argv)
    if (args.evaluations is not None and args.evaluations < 1) or args.seeds < 1 or not args.budget > 0:
        parser.error("--evaluations, --seeds and --budget are numbers above 0")
    if args.exhaustive and args.evaluations:
        parser.error("--exhaustive tries everything: --evaluations belongs to a search")
    if (args.compare or args.replay or args.load) and (args.export or args.plot or args.history):
        parser.error("--export, --plot and --history belong to a search")
    asked = ("problem", "dtype", "activation", "arch")
    if args.replay and (given := [name for name in asked if vars(args)[name] != parser.get_default(name)]):
        parser.error(f"--replay searches what its sweep was made of: --{given[0]} belongs to another search")
    if args.device == "cpu":
        parser.error("--device cpu: times nothing; without --device and without a GPU a proxy is searched")
    return args


def sides(text: str) -> tuple[int, ...]:
    """For argparse: 4096x4096x4096."""
    if not re.fullmatch(r"[1-9]\d{0,6}(x[1-9]\d{0,6}){2}", text):
        raise argparse.ArgumentTypeError(f"{text}: three whole numbers above 0, as in 4096x4096x4096")
    return tuple(map(int, text.split("x")))


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal, a line for each generation elsewhere; on stderr. It never goes back: its pace is shown."""
    from common.show import console  # here and not above: --help should not wait for rich

    seen, done = set[str](), 0.0
    with console.progress() as (tell, _):

        def say(what: str, fraction: float) -> None:
            nonlocal done
            generation, done = what.split(":")[0], max(done, fraction)
            tell(what, done, line="" if generation in seen else f"{fraction:4.0%} {what}")
            seen.add(generation)

        yield say


if __name__ == "__main__":
    program.finish(main)
