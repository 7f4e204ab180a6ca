"""What a case consists of, and the texts of its versions: 2 * x + w_shift on a vector unless said otherwise."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from samples import HONEST, VECTOR, reason_of, version, write_pair

from common.pairs.pair import Pair, discover
from common.record.outcome import WITH_SPEEDUP
from common.record.result import Record, Row

X = 'return {"x": torch.randn(n, device=device)}'
MATRIX = 'return {"x": torch.randn(n, n, device=device)}'
# longer than a tensor: on a fast machine numpy copies 2048 elements in less time than the clock can tell
ARRAY = 'import numpy\nreturn {"x": numpy.random.standard_normal(32 * n).astype(numpy.float32)}'
SIZES = {"check": {"n": 127}, "default": {"n": 2048}}
FEW = {"check": {"n": 127}, "default": {"n": 256}}
SQUARE = {"check": {"n": 65}, "default": {"n": 96}}
WRONG = "wrong answer at size check"


@dataclass(frozen=True)
class Case:
    """A liar and its twin, as bodies of `run` and what stands before it (`extra`).

    Where `twin_baseline` is given it is the baseline that lies, and condemns all that is compared with it.
    """

    ways: tuple[int, ...]
    reason: str  # a regular expression
    run: str = HONEST
    twin: str = HONEST
    extra: str = ""
    twin_extra: str | None = None  # as the liar's
    arguments: str = "x, w_shift"
    more_arguments: str = ""  # of liar and twin: what `setup` made
    liar_arguments: str = ""
    inputs: str = VECTOR
    liar_inputs: str = ""
    baseline: str = HONEST
    baseline_extra: str = ""
    twin_baseline: str = ""
    twin_baseline_extra: str = ""
    twin_inputs: str = ""
    twin_arguments: str = ""
    sizes: dict[str, dict[str, int]] = field(default_factory=lambda: SIZES)
    verdict: str = "invalid"

    def is_caught(self, row: Row) -> bool:
        """For its own reason?"""
        return row.verdict == self.verdict and bool(re.search(self.reason, reason_of(row)))

    def versions(self) -> dict[str, tuple[str, str]]:
        """The texts of the liar and of its twin, each with that of its baseline."""
        text, more = partial(version, sizes=self.sizes), self.arguments + self.more_arguments
        liar = text(self.run, self.liar_arguments or more, self.liar_inputs or self.inputs, self.extra)
        baseline = text(self.baseline, self.arguments, self.inputs, self.baseline_extra)
        inputs, extra = self.twin_inputs or self.inputs, self.extra if self.twin_extra is None else self.twin_extra
        twin, beside_it = text(self.twin, self.twin_arguments or more, inputs, extra), baseline
        if self.twin_baseline:
            arguments = self.twin_arguments or self.arguments
            beside_it = text(self.twin_baseline, arguments, inputs, self.twin_baseline_extra)
        return {"liar": (liar, baseline), "twin": (twin, beside_it)}


def alone(
    ways: tuple[int, ...],
    reason: str,
    run: str,
    twin: str = "return x + x",
    baseline: str = "return 2 * x",
    **more: Any,
) -> Case:
    """A case whose one input is `x`: unless said otherwise it is a vector, to be doubled."""
    return Case(ways, reason, run, twin, baseline=baseline, **{"arguments": "x", "inputs": X, **more})


Rooms = dict[str, tuple[dict[str, str], str]]  # a pair's name -> (variant -> text, the baseline's text)


def rooms(families: dict[str, dict[str, Case]]) -> tuple[Rooms, dict[tuple[str, str], tuple[str, str]]]:
    """The pairs to write, and where in them to find (name, "liar" or "twin"): (pair, variant).

    Those that have the same baseline (of the usual one: and are of the same family) are variants of one pair: a liar
    must not cost its neighbours anything, and a process less is half a second.
    """
    pairs: Rooms = {}
    found, doors, usual = {}, {}, Case((), "").versions()["twin"][1]
    for family, cases in families.items():
        for name, case in cases.items():
            for who, (text, baseline) in case.versions().items():
                room = (family if baseline == usual else "", baseline)
                pair = doors.setdefault(room, f"{family}{len(doors)}")
                pairs.setdefault(pair, ({}, baseline))[0][f"{name}_{who}"] = text
                found[name, who] = (pair, f"optimized/{name}_{who}")
    return pairs, found


def write_rooms(pairs: Rooms, folder: Path) -> list[Pair]:
    for name, (variants, baseline) in pairs.items():
        write_pair(folder, name, variants, baseline)
    return discover(folder)


def rows_of(record: Record) -> dict[tuple[str, str], Row]:
    """(pair, variant) -> row."""
    return {(pair.name, row.variant): row for pair in record.pairs for row in pair.rows}


def assert_out(case: Case, row: Row) -> None:
    """For its own reason, and without a figure."""
    assert case.is_caught(row), row
    assert reason_of(row).isprintable(), row
    assert (row.ratio, row.interval, row.vs_library) == (None, None, {}), row


def assert_believed(row: Row) -> None:
    assert row.verdict in WITH_SPEEDUP, row
    assert row.ratio and row.ratio > 0, row
    assert row.interval, row


def shows(*ways: int) -> Callable[[Callable], Callable]:
    """Marks a test of the harness itself that covers these ways to lie, where no pair can."""

    def mark(test: Callable) -> Callable:
        test.ways = ways
        return test

    return mark
