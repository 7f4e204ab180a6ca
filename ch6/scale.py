"""Predict time, efficiency and memory of training a model on 8 to 16,384 GPUs, by each kind of parallelism.

A prediction is arithmetic: computing takes FLOPs over a rate, an exchange takes a latency and a bandwidth of each link
(alpha-beta), memory is what each GPU has to keep. All assumptions are printed with the tables. Links are those of a
datasheet, or fitted to a record of ch6/collectives.py. A strategy is free in its degrees, in its micro-batch, and to
recompute activations: shown is the fastest layout that fits into memory, or else the smallest. A step has two times:
with gradients and parameters exchanged behind computing as far as possible, and with nothing hidden.

--check holds predictions against measurements: steps against published ones, collectives against records.
"""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program
from common.program import Parser, picture_path

# isort: split
# after `common`, which says what to do where packages are missing
from configurations import MACHINES, MODELS, SHARE
from scaling import Layout

EXAMPLES = """examples:
  ch6/scale.py                                            Llama 3 70B on machines of 8 H100
  ch6/scale.py --model mixtral-8x7b --gpus 8,64,512 --plot scale.png --json scale.json
  ch6/scale.py --per-gpu 1                                the batch grows with the GPUs (weak scaling)
  ch6/scale.py --gpus 512 --layout tensor=8,pipeline=4,stage=1,micro=2,chunks=2,recompute
  ch6/scale.py --fit one_machine.json --fit-between machines.json
  ch6/scale.py --check                                    predicted and published steps
  ch6/scale.py --check ranks2.json ranks4.json            predicted and measured collectives

exit status: 0 done; 1 the output cannot be printed; 2 usage, or a file that is bad or cannot be read or written;
130 interrupted
"""


def main() -> int:
    return program.status_of("scale.py", run)


def run() -> int:
    """Raises UserError."""
    args = arguments()
    import scale_tables  # here and not above: it imports rich and matplotlib, and --help should not wait for them

    return scale_tables.show(args)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Raises UsageError."""
    parser = Parser("scale.py", description=__doc__, epilog=EXAMPLES)
    what = parser.add_argument_group("what")
    what.add_argument("--model", choices=MODELS, default="llama3-70b", help="(default llama3-70b)")
    what.add_argument("--machine", choices=MACHINES, default="h100", help="of 8 GPUs (default h100)")
    numbers = [8, 64, 512, 4096, 16384]
    what.add_argument("--gpus", type=counts, default=numbers, metavar="N,N", help="(default 8,64,512,4096,16384)")
    batch = what.add_mutually_exclusive_group()
    batch.add_argument("--batch", type=positive, default=2048, metavar="N", help="sequences a step (default 2048)")
    batch.add_argument("--per-gpu", type=positive, metavar="N", help="sequences a step for each GPU")
    what.add_argument("--sequence", type=positive, metavar="N", help="tokens (default: the model's context)")
    what.add_argument("--layout", type=layout, metavar="L", help="this layout alone, as below")
    how = parser.add_argument_group("how fast")
    how.add_argument("--share", type=share, default=SHARE, metavar="X", help=f"of the bf16 peak (default {SHARE})")
    how.add_argument("--fit", type=Path, metavar="F.json", help="links within a machine: a record of its processes")
    how.add_argument("--fit-between", type=Path, metavar="F.json", help="between: a record of one process a machine")
    said = "only compare predictions with measurements"
    parser.add_argument("--check", type=Path, nargs="*", metavar="F.json", help=said)
    parser.add_argument("--plot", type=picture_path, metavar="F.png", help="draw efficiency and memory over GPUs")
    parser.add_argument("--json", type=Path, metavar="F.json", help="write the numbers")
    args = parser.parse_args(argv)
    unset = argparse.Namespace(**dict.fromkeys(vars(args)))  # without defaults: what is given remains
    given = [name for name, value in vars(parser.parse_args(argv, unset)).items() if value is not None]
    unused = [f"--{name.replace('_', '-')}" for name in given if name not in ("check", "json")]
    if args.check is not None and unused:
        parser.error(f"--check does not use {', '.join(unused)}: predictions do")
    return args


def positive(text: str) -> int:
    """For argparse: a whole number above zero."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text}: not a whole number above 0")
    return int(text)


def counts(text: str) -> list[int]:
    """For argparse: 8,64,512."""
    return sorted({positive(each) for each in text.split(",")})


def share(text: str) -> float:
    """For argparse: above 0, at most 1."""
    if not re.fullmatch(r"[01]?\.?\d{1,9}", text) or not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text}: not a number above 0, up to 1")
    return float(text)


def layout(text: str) -> Layout:
    """For argparse: tensor=8,pipeline=4,stage=1,recompute."""
    given = dict(parts := [each.partition("=")[::2] for each in text.split(",")])
    recompute = given.pop("recompute", None)
    wrong = [name for name in given if name not in vars(Layout()) or not re.fullmatch(r"\d{1,6}", given[name])]
    values = {} if wrong else {name: int(value) for name, value in given.items()}
    zero = [name for name, value in values.items() if name != "stage" and not value]
    if wrong or zero or recompute or len(given) + (recompute is not None) < len(parts) or values.get("stage", 0) > 3:
        known = "tensor=8,pipeline=4,expert=1,stage=1,micro=2,chunks=2,recompute"
        raise argparse.ArgumentTypeError(f"{text}: not a part of {known}, each once, 1 or more (stage: 0 to 3)")
    return Layout(**values, recompute=recompute is not None)


if __name__ == "__main__":
    program.finish(main)
