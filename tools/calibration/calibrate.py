"""Check that the harness measures correctly on this machine.

Pairs whose results are known beforehand are measured like any other pair, many times: versions that are equal, that
differ by 1 % and by 5 %, that do nothing, that copy. Spins of known length and reads of warm and cold memory test the
clocks.

Exit status: 0 every check passed; 1 a check failed, a measurement died, or a file cannot be written; 2 wrong usage;
130 interrupted.
"""

import math
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from common.isolation import interrupt
from common.machine import background_load
from common.machine.device import default_device
from common.pairs.pair import discover
from common.pairs.source import source_hash
from common.pairs.wide_tables import print_table
from common.record import files
from common.record.result import Record
from common.show.console import make_console, print_wrapped, progress
from tools.calibration import RUNS, known_times, trials
from tools.calibration.calibration_page import HEADINGS, rows
from tools.calibration.checks import ALONE, judge
from tools.calibration.findings import PAIRS, SCHEMA, Findings, keep, run_of
from tools.calibration.trials import PER_PROCESS, Say, TrialError

BUSY = 5  # with every core busy, 1 run in 5: each takes more than twice as long
SETTLED = 5  # with runs alone in separate processes, 1 run in 5: each takes several times as long
FEW = 2  # runs of the pairs `copy` and `nothing`, which are slow and hardly vary


def calibrate(device: str, runs: int, say: Say) -> Findings:
    """All measurements, those on a busy machine last. Raises UserError, KeyboardInterrupt."""
    begin, pairs = time.monotonic(), {pair.name: pair for pair in discover(PAIRS)}
    say("this machine's limits", 0, 1)
    record = trials.measure_in_turn(pairs["copy"], device, min(FEW, runs), say)
    nothing = trials.measure_in_turn(pairs["nothing"], device, min(FEW, runs), say)
    job = trials.job_of(pairs["work"], record, device)
    say("known times", 0, 1)
    times = trials.run_in_child(known_times.measure_known_times, job)
    with background_load.watch(job.info.get("uuid"), lambda load: None) as load:
        quiet = trials.run_repeatedly(job, runs, "quiet", say)
        alone = trials.measure_in_turn(pairs["work"], device, math.ceil(runs / SETTLED), say)
    with trials.all_cores_busy():
        busy = trials.run_repeatedly(job, math.ceil(runs / BUSY), "busy", say)
    others, took_s = [f"{who} {what}" for who, what in load.items()], round(time.monotonic() - begin)
    environment = {**record.environment, "runs": runs, "took_s": took_s, "neighbours": others}
    hashes = {name: source_hash(pair) for name, pair in pairs.items()}
    settled = [run_of(seed, pair) for seed, pair in enumerate(alone.pairs)]
    of_work = {"quiet": quiet, ALONE: settled, "busy": busy}
    findings = Findings(
        SCHEMA, environment, hashes, trials.repetitions(pairs["work"]), of_work,
        [run_of(0, pair) for pair in nothing.pairs], shares(record), times, [],
    )  # fmt: skip
    return replace(findings, checks=judge(findings))


def shares(record: Record) -> list[float | None]:
    """The share of the limit that each pair's versions reached; None for a version that was not timed."""
    arms = [pair.arms.get(label) for pair in record.pairs for label in ("baseline", "optimized")]
    return [arm.of_limit if arm else None for arm in arms]


@contextmanager
def _progress() -> Iterator[Say]:
    """Progress on stderr: a bar on a terminal, otherwise a line now and then."""
    with progress() as (tell, _):

        def say(what: str, done: int, of: int) -> None:
            text = f"{what}: {done} of {of} done"
            tell(text.removesuffix(" done"), done, of, text if done % PER_PROCESS == 0 else "")

        yield say


def print_findings(findings: Findings, console: Console) -> None:
    environment, passed = findings.environment, sum(check.passed for check in findings.checks)
    title = f"{environment['device']['name']}, {environment['took_s'] / 60:.1f} minutes"
    colors = {"passed": "green", "not passed": "bold red"}
    lines: list[list[str | Text]] = [
        [*row, Text(verdict, colors[verdict])] for *row, verdict in rows(findings, *colors)
    ]
    print_table(title, HEADINGS, lines, console)
    for line in environment["neighbours"]:
        print_wrapped(f"other processes were busy while this machine had to be quiet: {line}", console)
    console.print(f"{passed} of {len(findings.checks)} checks passed")


def measure(device: str, runs: int = RUNS) -> Findings:
    """Calibrate with progress on stderr. Raises UserError, KeyboardInterrupt."""
    with _progress() as say:
        return calibrate(device, runs, say)


def run(args: Namespace) -> int:
    """Calibrate, print, keep. Returns the exit status. Raises UserError, KeyboardInterrupt."""
    if args.record:
        files.check_writable(files.RECORDED / "any", makes_folder=True)
    with interrupt.hold_signals():
        status = _calibrate(args)
        return 130 if interrupt.was_interrupted() else status


def _calibrate(args: Namespace) -> int:
    try:
        findings = measure(args.device or default_device(), args.runs)
    except TrialError as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 1
    unwritten, written = list[str](), ""
    if args.record:  # before anything is printed: a closed pipe ends the printing
        with files.note_errors(unwritten):
            written = f"recorded in {keep(findings)}\n"
    print_findings(findings, make_console())
    print(written, end="")
    for problem in unwritten:
        print(f"calibrate: {problem}", file=sys.stderr)
    return 1 if unwritten or not all(check.passed for check in findings.checks) else 0
