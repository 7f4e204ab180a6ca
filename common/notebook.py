"""What the chapters' notebooks share: a pair's diff, its calls counted, results in tables, a guess beside them."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from IPython.display import Markdown
from torch.overrides import TorchFunctionMode

from common.pair import ROOT, Half, Pair, discover, load, source_hash
from common.report import origin, ratio, share, times, variant
from common.result import Record, Row, recorded
from common.stats import MARGIN


def table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> Markdown:
    head, *body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (headings, *rows)]
    return Markdown("\n".join([head, "|" + " --- |" * len(headings), *body]))


def show_diff(pair: Pair, label: str = "optimized") -> Markdown:
    """What distinguishes a variant from its baseline, docstrings aside: the lesson."""
    old, new = pair.baseline.path, next(half.path for half in pair.variants if half.label == label)
    code = [path.read_text(encoding="utf-8").split('"""', 2)[2].splitlines() for path in (old, new)]
    diff = difflib.unified_diff(code[0], code[1], old.name, new.name, n=2, lineterm="")
    return Markdown("\n".join(["```diff", *diff, "```"]))


def ready(half: Half, size: dict[str, Any], device: str = "cpu") -> Callable[[], Any]:
    """One call of a half, set up in this process; on the device "meta" it has shapes and no values."""
    module = load(half.path)
    inputs = module.inputs(**size, device=device)
    return partial(module.run, **inputs, **(module.setup(**inputs) if hasattr(module, "setup") else {}))


class CountCalls(TorchFunctionMode):
    """While active, counts in `calls` how often torch is asked for what."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.__name__] += 1
        return func(*args, **(kwargs or {}))


def recorded_on_gpu(chapter: str) -> Record | None:
    """The newest GPU record of a chapter, without the pairs that have changed since; None if there is none."""
    current = {pair.name: source_hash(pair) for pair in discover(ROOT / chapter)}
    gpu = (record for _, record in recorded(chapter) if record.environment["device"]["kind"] == "cuda")
    return next((replace(r, pairs=[p for p in r.pairs if current.get(p.name) == p.source_hash]) for r in gpu), None)


def show(record: Record) -> Markdown:
    """A record's rows under their origin, then what a reader must know beside them."""
    rows, remarks = [], []
    for pair in record.pairs:
        for row in pair.rows:
            rows.append([pair.name, variant(row), f"**{row.verdict}**", ratio(row), times(pair, row), share(pair, row)])
            remarks += [f"- {pair.name}, {variant(row)}: {text}" for text in (row.reason, *row.notes) if text]
    headings = ("pair", "variant", "verdict", "ratio [95 % interval]", "time", "of measured limit / datasheet")
    return Markdown("\n".join([f"*{origin(record)}*", "", table(headings, rows).data, "", *remarks]))


def against(guess: float, row: Row) -> str:
    """A guessed ratio beside the measured one."""
    if row.interval is None:
        return f"you guessed {guess:g}x; {row.verdict}: {row.reason}"
    low, high = row.interval[0] / (1 + MARGIN), row.interval[1] * (1 + MARGIN)
    side = "too low" if guess < low else "too high" if guess > high else "right"
    return f"you guessed {guess:g}x; measured {ratio(row)}: {side}"
