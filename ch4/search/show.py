"""The results of a search, on the console and as a figure, computed from its history."""

import json
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
from matplotlib.figure import Figure
from msgspec import Struct
from rich.console import Console

from common.pairs.wide_tables import TIE, print_table
from common.record.files import write_text
from common.show.console import print_wrapped
from common.show.plot import INK, SERIES, legend, new_figure, save
from common.stats import Estimate
from search.history import History, Repeat
from search.space import Configuration, Problem, Space, brief

MOST_ROWS = 10
FOUND = {"registers": "registers", "spills": "spills", "shared_bytes": "shared bytes", "warps_on_an_sm": "warps an SM"}


def best_of(history: History) -> Configuration:
    """The configuration that a search ends with: that of its last measurement, else the best scored."""
    return (history.final or history.measured[0]).configuration


def print_report(history: History, space: Space, console: Console) -> None:
    if history.measured:
        print_table("the fastest configurations", *table(history), console)
    for line in [*_counts(history, space), *_predictions(history), *_noise(history)]:
        print_wrapped(line, console)


def table(history: History) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each of the best configurations and for the default."""
    timed, default, measured = history.about.searched == "time", history.about.default, history.measured
    score = ["times as fast as the default", "ms", "TFLOP/s"] if timed else ["proxy (share of peak)"]
    rows = []
    for trial in measured[:MOST_ROWS] + [trial for trial in measured[MOST_ROWS:] if trial.configuration == default]:
        figures = [f"{trial.score:.3g}"]
        if timed:
            figures = [f"{trial.score:.3f} ({trial.low:.3f}{TIE}to{TIE}{trial.high:.3f})"]
            figures += [f"{trial.seconds * 1e3:.4g}", f"{history.about.problem.flops / trial.seconds / 1e12:.0f}"]
        name = brief(trial.configuration) + " (default)" * (trial.configuration == default)
        rows.append([name, *figures, *(f"{trial.found[key]:,}" for key in FOUND)])
    return ["configuration", *score, *FOUND.values()], rows


def _counts(history: History, space: Space) -> list[str]:
    """What was tried, and what failed."""
    tried, valid = len(history.trials), len(space.valid)
    share = f"tried {tried} of {valid} configurations ({tried / valid:.1%})"
    failed = Counter(trial.outcome for trial in history.failures)
    counts = ", ".join(f"{count} x {outcome}" for outcome, count in failed.items())
    return [f"{share}; {len(space.pruned)} more were pruned unseen", *([f"failed: {counts}"] if counts else [])]


def _predictions(history: History) -> list[str]:
    """How far the arithmetic that prunes was from what the compiler reports."""
    compiled, lines = [trial for trial in history.trials if "registers" in trial.found], list[str]()
    if not compiled:
        return lines
    for key, what in (("shared_bytes", "bytes of shared memory"), ("registers", "registers a thread")):
        off = np.array([trial.found[key] - trial.predicted[key] for trial in compiled])
        ends = f"from {off.min():+d} to {off.max():+d}"
        lines.append(f"the compiler's {what} minus those predicted: median {np.median(off):+.0f}, {ends}")
    spilling = sum(trial.found["spills"] > 0 for trial in compiled)
    text = f"registers spill, against the prediction, in {spilling} of {len(compiled)} compiled configurations"
    return [*lines, text]


def _noise(history: History) -> list[str]:
    """The win, and beside it the A/A control: the default against itself."""
    lines, ratios, final = list[str](), [control.ratio for control in history.of(Repeat)], history.final
    if ratios:
        ends = f"{min(ratios):.4f} to {max(ratios):.4f}"
        lines.append(f"A/A control of {len(ratios)} generations: the default was {ends} of itself")
    if final:
        lines += [
            f"measured anew, best over default: {interval(final.over_default)}: {final.verdict}",
            f"beside it, default over itself (A/A control): {interval(final.repeat)}: a win of that size is noise",
        ]
        lines += [f"best over torch: {interval(final.over_torch)}"] if final.over_torch else []
    return lines + ([f"best: {json.dumps(best_of(history))}"] if history.measured else [])


def interval(found: Estimate) -> str:
    return f"{found.ratio:.4f}x ({found.low:.4f} to {found.high:.4f})"


def figure(history: History) -> Figure:
    """Every trial by generation, and the best so far with its 95 % interval. Needs one that was measured."""
    drawn, axes = new_figure()
    measured, about = history.measured, history.about
    points = [(trial.generation, trial.score) for trial in measured]
    axes.plot(*zip(*points, strict=True), "o", color=SERIES[5], alpha=0.5, markersize=4, label="tried")
    numbers = range(min(trial.generation for trial in measured), history.generations)
    best = [next(trial for trial in measured if trial.generation <= number) for number in numbers]
    scores, low, high = np.array([(trial.score, trial.low, trial.high) for trial in best]).T
    ends = [abs(scores - low), abs(high - scores)]
    axes.errorbar(numbers, scores, yerr=ends, fmt="s-", color=SERIES[0], capsize=3, label="best so far")
    timed = about.searched == "time"
    if timed:
        axes.axhline(1, color=INK, linewidth=1)
        axes.plot([control.ratio for control in history.of(Repeat)], "x", color=INK, label="A/A control")
    what = "time of the default / time (95 % interval)" if timed else "proxy: share of the peak"
    axes.set(xlabel="generation", ylabel=what, title=f"{about.problem}, {about.machine.name}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend(axes)
    return drawn


def plot(history: History, path: Path) -> None:
    """Raises RecordError."""
    save(figure(history), path)


class Best(Struct):
    """An exported configuration, as `gemm.load` reads it, and where it is from."""

    configuration: Configuration
    problem: Problem | None = None
    machine: str = ""
    searched: str = ""


def export(history: History, path: Path) -> None:
    """Raises RecordError."""
    about = history.about
    best = Best(best_of(history), about.problem, about.machine.name, about.searched)
    write_text(path, msgspec.json.format(msgspec.json.encode(best)).decode() + "\n")
