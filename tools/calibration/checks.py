"""The checks of a calibration: thresholds, and the judgement of what was measured."""

from collections.abc import Iterable
from statistics import median

import numpy as np

from common import stats
from common.record.files import MEASURE_OR_CONVERT, Format, RecordError
from common.record.outcome import FAILED, Cause
from tools.calibration.findings import SCHEMA, Check, Findings, KnownTimes, Run, Spin, VariantResult

CALLED = 0.05  # at most this share of equal pairs is called different: the promise of a 95 % interval
FOUND = 0.95  # at least this share of planted 5 % differences is found
COVERED = 0.93  # at least this share of intervals holds the truth: 95 % less the chance in 200 runs
DOUBTED = 0.02  # at most this share of true conclusions is unsure because of the runs alone
OWN_COST = 2  # repetitions of a hundred; with a higher cost the counts would not determine the time
OFF = 0.05  # allowed error of a clock
COLD = 1.2  # a read from memory takes at least this many times as long as from L2
COPY = (0.90, 1.02)  # of the measured limit: a copy cannot beat the best copy except by noise
ALONE = "alone"  # the condition: each candidate also ran alone, as for benchmark.py
SAME, SMALL, LARGE = "copy", "plus_1", "plus_5"  # the variants of the pair `work`


def judge(findings: Findings) -> list[Check]:
    """The rows of the table, computed from everything else."""
    times, counts, call_cost = findings.known, findings.repetitions, own_cost(findings.known)
    truths = {version: (counts["baseline"] + call_cost) / (count + call_cost) for version, count in counts.items()}

    def is_misled(run: Run) -> bool:
        return any(_is_called_right(run, version, 1 / truths[version]) for version in (SMALL, LARGE))

    quiet, conditions = findings.runs["quiet"], findings.runs.items()
    check = "equal versions are called different"
    checks = [_share(check, of, map(_claims_difference, runs), most=CALLED) for of, runs in conditions]
    hits = (_is_called_right(run, LARGE, truths[LARGE]) for run in quiet)
    checks.append(_share("a planted 5% is found", "quiet", hits, FOUND))
    for version in (SAME, SMALL, LARGE):
        hits = (_holds(run.said[version], truths[version]) for run in quiet)
        checks.append(_share(f"the interval holds the true {truths[version]:.4f}", "quiet", hits, COVERED))
    check = "a planted difference is called the wrong way"
    checks += [_share(check, of, map(is_misled, runs), most=0) for of, runs in conditions]
    if alone := [result for run in findings.runs.get(ALONE, []) for result in run.said.values()]:
        out = (result.verdict in FAILED for result in alone)
        checks.append(_share("an honest version is called invalid", ALONE, out, most=0))
        doubted = (result.reason == Cause.CONTRADICTED_ALONE for result in alone)
        checks.append(_share("a run alone contradicts", ALONE, doubted, most=DOUBTED))
    checks.append(_share("an empty call gets no ratio", "quiet", map(_gave_no_ratio, findings.nothing), 1))
    check, found = "a call costs little besides its repetitions", f"as much as {call_cost:.2f}"
    checks.append(Check(check, "quiet", len(times.one_s), found, f"at most {OWN_COST}", call_cost <= OWN_COST))
    return [*checks, *_clocks(times.spins), *_reads(times), _copies(findings.copies)]


def own_cost(times: KnownTimes) -> float:
    """The cost of a call without its repetitions, expressed in repetitions."""
    one_s, many_s = median(times.one_s), median(times.many_s)
    return (times.many - 1) * one_s / (many_s - one_s) - 1


def _claims_difference(run: Run) -> bool:
    return run.said[SAME].verdict not in ("same", "unsure")


def _is_called_right(run: Run, version: str, truth: float) -> bool:
    return run.said[version].verdict == ("faster" if truth > 1 else "slower")


def _holds(result: VariantResult, truth: float) -> bool:
    return result.low is not None and result.high is not None and result.low <= truth <= result.high


def _gave_no_ratio(run: Run) -> bool:
    """Whether the harness gave no ratio for every version."""
    results = run.said.values()
    return bool(results) and all(result.verdict == "too short" and result.ratio is None for result in results)


def _share(check: str, condition: str, hits: Iterable[bool], least: float = 0, most: float = 1) -> Check:
    """A check on how often something happened; it fails without runs."""
    came = list(hits)
    share = sum(came) / len(came) if came else float("nan")
    accepted = f"at least {least:.0%}" if least else f"at most {most:.0%}" if most else "never"
    return Check(check, condition, len(came), f"{sum(came)} ({share:.1%})", accepted, least <= share <= most)


def _clocks(spins: list[Spin]) -> list[Check]:
    """For each independent clock: the median error at every length of spin."""
    checks, samples = [], sum(len(spin.read_s) for spin in spins)
    for clock in dict.fromkeys(clock for spin in spins for clock in spin.true_s):
        off = [float(np.median(np.divide(spin.read_s, spin.true_s[clock]))) - 1 for spin in spins]
        check, found = f"a spin is as long as by {clock}", f"{min(off):+.2%} to {max(off):+.2%}"
        checks.append(Check(check, "quiet", samples, found, f"within {OFF:.0%}", max(map(abs, off)) <= OFF))
    return checks


def _reads(times: KnownTimes) -> list[Check]:
    """The read check; none on a CPU, where the wall clock does not change the caches."""
    if not times.cold_s and not times.warm_s:
        return []
    cold, warm = median(times.cold_s), median(times.warm_s)
    speedup = f"{cold / warm:.2f}x ({cold * 1e6:.1f} us, {warm * 1e6:.1f} us)"
    check = "a read with a cold L2 is slower than with a warm one"
    return [Check(check, "quiet", len(times.cold_s), speedup, f"above {COLD}x", cold > COLD * warm)]


def _copies(copies: list[float | None]) -> Check:
    shares = [share for share in copies if share is not None]
    middle = median(shares) if shares else float("nan")
    share_text = f"{middle:.1%} ({min(shares):.1%} to {max(shares):.1%})" if shares else "none was timed"
    passed = len(shares) == len(copies) and COPY[0] <= middle <= COPY[1]
    accepted = f"{COPY[0]:.0%} to {COPY[1]:.0%}"
    return Check("a copy reaches the measured limit", "quiet", len(copies), share_text, accepted, passed)


def contradiction(findings: Findings) -> str:
    """One line about the first figure that does not follow from the others; empty if all do."""
    for condition, run in ((condition, run) for condition, runs in findings.runs.items() for run in runs):
        for version, result in run.said.items():
            if (verdict := _verdict_of_interval(result, run.noise_floor)) != result.verdict:
                return f"{condition} run {run.seed}, {version}: {result.verdict}, but its interval says {verdict}"
    for says, gives in zip(findings.checks, judge(findings), strict=True):
        if says != gives:
            return f"{says.check}, {says.condition}: {says.found}, but its runs give {gives.found}"
    return ""


def _verdict_of_interval(result: VariantResult, noise_floor: float | None) -> str:
    """The verdict that follows from an interval, unless a run alone contradicts; without an interval the stated one."""
    if result.reason == Cause.CONTRADICTED_ALONE:
        return "unsure"
    if result.ratio is None or result.low is None or result.high is None or noise_floor is None:
        return result.verdict
    return stats.verdict(stats.Estimate(result.ratio, result.low, result.high), noise_floor)


def _require_no_contradiction(findings: Findings) -> Findings:
    if wrong := contradiction(findings):
        raise RecordError(f"a calibration whose checks do not follow from its runs ({wrong})")
    return findings


FORMAT = Format("a calibration", SCHEMA, Findings, _require_no_contradiction, MEASURE_OR_CONVERT)
