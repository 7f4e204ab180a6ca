"""What several test modules need: pairs to write into a folder, runs of benchmark.py over them, chosen records."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from common import stats
from common.pairs.pair import ROOT, Pair, discover
from common.pairs.user_error import UserError
from common.record.outcome import Cause, Finding, Verdict
from common.record.result import Arm, PairResult, Record, Row
from common.show import words

SIZES = {"check": {"n": 127}, "default": {"n": 4096}}
VECTOR = 'return {"x": torch.randn(n, device=device), "w_shift": torch.randn(1, device=device)}'
HONEST = "return 2 * x + w_shift"
TEMPLATE = ["baseline_blend.py", "optimized_blend.py"]
NAMED_BLOCK = re.compile(r"^`(\w+\.py)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def version(
    run: str = HONEST, arguments: str = "x, w_shift", inputs: str = VECTOR, extra: str = "", sizes: Any = None
) -> str:
    """The text of one version; by default 2 * x + w_shift on a vector. `extra` stands before `run`.

    `inputs` takes what the first of its sizes names.
    """
    first = next(iter(sizes.values()), None) if isinstance(sizes, dict) else None
    names = first if isinstance(first, dict) and first else ["n"]
    return "\n".join(
        [
            '"""Double a vector and shift it: 8 bytes moved per element."""',
            "import torch",
            f"SIZES = {sizes or SIZES!r}",
            f'def inputs({", ".join(f"{name}=127" for name in names)}, device="cuda"):',
            textwrap.indent(textwrap.dedent(inputs), "    "),
            textwrap.dedent(extra),
            f"def run({arguments}):",
            textwrap.indent(textwrap.dedent(run), "    "),
            "",
        ]
    )


def write_pair(folder: Path, name: str, variants: dict[str, str] | str, baseline: str | None = None) -> None:
    """baseline_<name>.py and optimized_<name>_<variant>.py; the variant "" (or a text alone) is optimized_<name>.py.

    What a variant says of SIZES only by default it leaves to the baseline.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"baseline_{name}.py").write_text(version() if baseline is None else baseline)
    for variant, text in ({"": variants} if isinstance(variants, str) else variants).items():
        path = folder / f"optimized_{name}{'_' if variant else ''}{variant}.py"
        path.write_text(text.replace(f"SIZES = {SIZES!r}\n", ""))


def write_template(folder: Path) -> None:
    """The pair of CONTRIBUTING.md, as a reader would save it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = dict(NAMED_BLOCK.findall(text))
    assert sorted(blocks) == TEMPLATE
    assert text.count("```python") == len(blocks)
    for name, code in blocks.items():
        (folder / name).write_text(code, encoding="utf-8")


def one_pair(folder: Path, optimized: str | None = None, baseline: str | None = None, name: str = "double") -> Pair:
    write_pair(folder, name, version() if optimized is None else optimized, baseline)
    return discover(folder, name)[0]


def reason_of(row: Row) -> str:
    """Why a row has its verdict, in words."""
    return words.text(row.reason)


def notes_of(row: Row) -> list[str]:
    return [words.text(note) for note in row.notes]


def in_words(check: Callable[..., Finding | None]) -> Callable[..., str]:
    """A check that says in words what it finds; an empty text for nothing."""
    return lambda *arguments, **named: words.text(check(*arguments, **named))


def because(text: str) -> Finding:
    """A reason that is no more than a text."""
    return Finding(Cause.NEEDS, {"text": text})


def row_of(record: Record, name: str) -> Row:
    """The one row of the one result of this pair."""
    (pair,) = [pair for pair in record.pairs if pair.name == name]
    (row,) = pair.rows
    return row


@contextmanager
def refused(said: str, start: object = "", kind: type[Exception] = UserError) -> Iterator[Any]:
    """What is done inside ends in an error of one line that begins so and, as a regular expression, says this."""
    with pytest.raises(kind, match=said) as caught:
        yield caught
    assert str(caught.value).startswith(str(start)) and "\n" not in str(caught.value), caught.value


# benchmark.py as a program, with all that it starts

MARK = "SPEED_OF_LIGHT_TEST"  # a variable that they inherit
PATIENCE_S = 300.0  # for what takes seconds, on a machine however busy; whoever is left behind sleeps for longer


@contextmanager
def launching(folder: Path) -> Iterator[Any]:
    """Yields a function that starts benchmark.py in this folder, with its arguments, in a process group of its own.

    Its `left()` are the processes that are left of that, by number; in the end they are killed.
    """
    started = []

    def launch(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "benchmark.py"), *map(str, arguments)]
        environment, pipe = {**os.environ, MARK: str(folder)}, subprocess.PIPE
        options: Any = {"text": True, "cwd": folder, "start_new_session": True, "env": environment}
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, **options))
        return started[-1]

    launch.left = lambda: marked(str(folder))
    try:
        yield launch
    finally:
        for running in started:
            running.kill()
        for pid in marked(str(folder)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for running in started:
            running.communicate()


def marked(value: str) -> list[int]:
    """The processes with this mark in their environment: benchmark.py, its forkserver, pairs, what they started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since, or is somebody else's
            if f"{MARK}={value}".encode() in (folder / "environ").read_bytes().split(b"\0") and is_alive(folder.name):
                found.append(int(folder.name))
    return found


def is_alive(pid: int | str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:  # it has ended
        return False


def wait_until(condition: Callable[[], object], running: Any = None) -> None:
    """Fails where that takes too long, or where what is `running` ends before."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert running is None or running.poll() is None, running.communicate()
        time.sleep(0.05)


def arm(median_s: float = 1e-3, **fields: Any) -> Arm:
    """Six blocks of five equal samples, with what they reach of the limits of `record`."""
    figures = {"host_s": None, "of_limit": 5e-4 / median_s, "of_datasheet": 2.5e-4 / median_s, "compile_s": 0.01}
    figures["limit_by"] = "dram_bytes"
    return Arm(median_s, **{**figures, "seconds": [[median_s] * 5] * 6, **fields})


def arms_for(rows: list[Row]) -> dict[str, Arm]:
    """Arms whose samples give the figures of these rows: the first variant takes 1 ms."""
    found = {"baseline": arm(1e-3 * next((row.ratio for row in rows if row.ratio), 1.0))}
    for row in [row for row in rows if row.ratio]:
        versus = found.setdefault(row.versus, arm())
        found[row.variant] = _scaled(versus, [1 / factor for factor in _factors(row.ratio, row.interval)])
        for label, value in row.vs_library.items():
            found[label] = _scaled(found[row.variant], _factors(value["ratio"], value["interval"]))
    return {**found, "control": found["baseline"]}


def _factors(ratio: float, interval: tuple[float, float] | None) -> list[float]:
    """A block each: their median is the ratio, and the interval of six is from end to end."""
    low, high = interval or (ratio, ratio)
    return [low, ratio, ratio, ratio, ratio, high]


def _scaled(of: Arm, factors: list[float]) -> Arm:
    seconds = [[second * factor for second in block] for block, factor in zip(of.seconds, factors, strict=True)]
    return arm(stats.overall_median(seconds), seconds=seconds)


def pair_result(name: str = "double", ratio: float = 2.0, **fields: Any) -> PairResult:
    """A pair whose variant takes 1 ms and whose baseline takes `ratio` times that, with an interval of +- 1 %."""
    interval = (0.99 * ratio, 1.01 * ratio)
    verdict = Verdict(stats.verdict(stats.Estimate(ratio, *interval)))
    rows = fields.setdefault("rows", [Row("optimized", "baseline", verdict, ratio=ratio, interval=interval)])
    figures = {
        "clock": "device", "noise_floor": 0.0, "cost": {"dram_bytes": 2e9}, "limit_s": 5e-4, "limit_by": "dram_bytes",
        "arms": arms_for(rows), "orders": [[["baseline", "optimized", "control"]] * 5] * 6, "seeds": [1, 2],
    }  # fmt: skip
    named = {"chapter": "ch1", "name": name, "size": "default", "sizes": {"n": 8}, "source_hash": "0123456789abcdef"}
    return PairResult(**{**named, **figures, **fields})


def record(*pairs: PairResult, kind: str = "cuda", name: str = "NVIDIA H200", **environment: Any) -> Record:
    device = {"kind": kind, "name": name, "capability": [9, 0] if kind == "cuda" else None, "threads": 1, "cores": 2}
    defaults = {
        "device": device, "versions": {"torch": "2.11.0"}, "date": "2026-01-02T03:04:05+00:00",
        "argv": ["--chapter", "1"], "fast": False, "platform": "linux", "interrupted": False,
    }  # fmt: skip
    limits = {"dram_bytes": {"measured": 4e12, "datasheet": 8e12, "how": "copy", "source": "a datasheet"}}
    return Record({**defaults, **environment}, limits, list(pairs))


def rows_of(text: str) -> list[list[str]]:
    """The cells of the tables in a Markdown text, headings included."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
