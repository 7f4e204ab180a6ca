"""The results of a search, on the console and as a figure, computed from its history."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from common.pairs.wide_tables import TIE, print_table
from common.record.files import write_text
from common.show.console import print_wrapped
from common.show.plot import SERIES, new_figure
from search.history import History, Trial
from search.space import Problem, Space, brief

MOST_ROWS = 10


def best_of(history: History) -> dict[str, Any]:
    """The configuration that a search ends with: that of its last measurement, else the best scored."""
    return history.final.get("configuration") or history.measured[0].configuration


def print_report(history: History, space: Space, console: Console) -> None:
    timed = history.about["searched"] == "time"
    if history.measured:
        print_table("the fastest configurations", *table(history, timed), console)
    for line in lines(history, space):
        print_wrapped(line, console)


def table(history: History, timed: bool) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each of the best configurations and for the default."""
    score = ["times as fast as the default", "ms", "TFLOP/s"] if timed else ["proxy (share of peak)"]
    flops = Problem(**history.about["problem"]).flops
    default, measured = history.about.get("default"), history.measured
    rows = []
    for trial in measured[:MOST_ROWS] + [trial for trial in measured[MOST_ROWS:] if trial.configuration == default]:
        figures = [f"{trial.score:.3g}"]
        if timed:
            figures = [f"{trial.score:.3f} ({trial.low:.3f}{TIE}to{TIE}{trial.high:.3f})"]
            figures += [f"{trial.seconds * 1e3:.4g}", f"{flops / trial.seconds / 1e12:.0f}"]
        facts = [f"{trial.found[key]:,}" for key in ("registers", "spills", "shared_bytes", "warps_on_an_sm")]
        name = brief(trial.configuration) + (" (default)" if trial.configuration == default else "")
        rows.append([name, *figures, *facts])
    return ["configuration", *score, "registers", "spills", "shared bytes", "warps an SM"], rows


def lines(history: History, space: Space) -> list[str]:
    """The report below the table."""
    tried, valid = len(history.trials), len(space.valid)
    said = [
        f"tried {tried} of {valid} configurations ({tried / valid:.1%}); {len(space.pruned)} more were pruned unseen"
    ]
    failed = Counter(trial.outcome for trial in history.failures)
    if failed:
        said.append("failed: " + ", ".join(f"{count} x {outcome}" for outcome, count in failed.items()))
    said += _predictions([trial for trial in history.trials if "registers" in trial.found])
    said += _noise(history)
    return said


def _predictions(compiled: list[Trial]) -> list[str]:
    """How far the arithmetic that prunes was from what the compiler reports."""
    if not compiled:
        return []
    said = []
    for key, what in (("shared_bytes", "bytes of shared memory"), ("registers", "registers a thread")):
        off = np.array([trial.found[key] - trial.predicted[key] for trial in compiled])
        ends = f"from {off.min():+d} to {off.max():+d}"
        said.append(f"the compiler's {what} minus those predicted: median {np.median(off):+.0f}, {ends}")
    spilling = sum(trial.found["spills"] > 0 for trial in compiled)
    return [*said, f"registers spill, against the prediction, in {spilling} of {len(compiled)} compiled configurations"]


def _noise(history: History) -> list[str]:
    """The win, and beside it the A/A control: the default against itself."""
    said, ratios, final = [], [control["ratio"] for control in history.controls], history.final
    if ratios:
        ends = f"{min(ratios):.4f} to {max(ratios):.4f}"
        said.append(f"A/A control of {len(ratios)} generations: the default was {ends} of itself")
    if final:
        said += [
            f"measured anew, best over default: {ratio(final['over_default'])}: {final['verdict']}",
            f"beside it, default over itself (A/A control): {ratio(final['repeat'])}: a win of that size is noise",
        ]
    if "over_torch" in final:
        said.append(f"best over torch: {ratio(final['over_torch'])}")
    if history.measured:
        said.append(f"best: {json.dumps(best_of(history))}")
    return said


def ratio(found: dict[str, float]) -> str:
    return f"{found['ratio']:.4f}x ({found['low']:.4f} to {found['high']:.4f})"


def figure(history: History) -> Figure:
    """Every trial by generation, and the best so far with its 95 % interval. Needs one that was measured."""
    drawn, axes = new_figure()
    measured = history.measured
    axes.plot(
        [trial.generation for trial in measured], [trial.score for trial in measured], "o", color=SERIES[5], alpha=0.5,
        markersize=4, label="tried",
    )  # fmt: skip
    numbers = range(min(trial.generation for trial in measured), history.generations)
    best = [next(trial for trial in measured if trial.generation <= number) for number in numbers]
    scores = np.array([trial.score for trial in best])
    below, above = (np.abs(np.array([getattr(trial, end) for trial in best]) - scores) for end in ("low", "high"))
    axes.errorbar(numbers, scores, yerr=[below, above], fmt="s-", color=SERIES[0], capsize=3, label="best so far")
    timed = history.about["searched"] == "time"
    if timed:
        axes.axhline(1, color="black", linewidth=1)
        axes.plot([control["ratio"] for control in history.controls], "x", color="black", label="A/A control")
    what = "time of the default / time (95 % interval)" if timed else "proxy: share of the peak"
    title = f"{Problem(**history.about['problem'])}, {history.about['machine']['name']}"
    axes.set(xlabel="generation", ylabel=what, title=title)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=8)
    return drawn


def export(history: History, path: Path) -> None:
    """The best configuration, as `gemm.load` reads it, and where it is from. Raises RecordError."""
    said = {
        "configuration": best_of(history), "problem": history.about["problem"],
        "machine": history.about["machine"]["name"], "searched": history.about["searched"],
    }  # fmt: skip
    write_text(path, json.dumps(said, indent=2) + "\n")
