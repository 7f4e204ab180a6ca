"""From samples to conclusions: the rows of a pair."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from common import stats
from common.checks.compare_to_baseline import Error, Errors
from common.engine.candidates import LIBRARY_KINDS
from common.engine.plausibility import too_fast, works_on
from common.engine.sampling import Samples
from common.engine.stage import Bench
from common.pairs.contract import Version
from common.pairs.source import has_no_launch, is_copy, source_hash
from common.record.decision import decide
from common.record.outcome import Cause, Finding, Verdict
from common.record.recompute import FLOOR_TIMES, of_limit
from common.record.result import CONTROL, Arm, PairResult, Row

LONG_COMPILE_S = 1.0  # above this, a note says so
ABOVE_LIMIT = 1.05  # an arm this far above a measured limit makes the limit doubtful
MORE_CORES = 0.5  # difference in busy cores that a note mentions
UNEVEN = 1.25  # times the baseline's mean over median: a median hides this
LEAST_ALLOCATED = 64 << 10  # bytes: smaller differences are not mentioned


def pair_result(bench: Bench, samples: Samples) -> PairResult:
    """The pair's record: rows for every loaded variant, samples of reliable arms."""
    job, pair = bench.job, bench.job.pair
    timed = [each.label for each in bench.remaining] if samples.blocks else []
    bench = bench.without({**too_fast(timed, samples, job), **works_on(timed, samples)})
    left = {each.label for each in bench.remaining}
    arms = {label: _arm(label, samples, job.limits) for label in timed if label in left}
    libraries = {each.label: each.precision for each in bench.candidates if each.is_library}
    arms = {label: replace(arm, precision=libraries.get(label, "")) for label, arm in arms.items()}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if arms else None
    cost = samples.costs.get("baseline", {})
    least_s, by = of_limit(cost, job.limits)
    loaded = [version for version in pair.variants if version.label in job.labels]
    rows = [row for version in loaded for row in _rows(bench, version, arms, floor or 0.0, samples)]
    orders = [[list(each) for each in block] for block in samples.blocks]
    return PairResult(
        pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows, samples.clock, floor, cost,
        least_s, by, arms, orders, [*bench.seeds], samples.voided, bench.progress.spent_s, clocks=samples.clocks,
        group=bench.ranks.described(),
    )  # fmt: skip


def _arm(label: str, samples: Samples, limits: dict[str, Any]) -> Arm:
    seconds, pace = samples.seconds(label), samples.plan.paces[label]
    median_s, cost = stats.overall_median(seconds), samples.costs[label]
    (measured, by), (sheet, _) = (of_limit(cost, limits, which) for which in ("measured", "datasheet"))
    host_s = pace.host_s if samples.clock == "device" else None
    of = (measured and measured / median_s, sheet and sheet / median_s)  # None if a peak is not known
    seen = samples.seen.get(label)
    memory = (seen.allocated_bytes, seen.peak_bytes) if seen else (None, None)
    arm = Arm(median_s, host_s, *of, pace.compile_s, seconds, memory[0], by, memory[1], pace.calls)
    own = {} if cost == samples.costs["baseline"] else cost
    arm = replace(arm, **_errors(samples.errors.get(label)), floor_s=pace.floor_s, cost=own)
    by_rank = [[list(each[label].by_rank) for each in block] for block in samples.blocks]
    return replace(arm, by_rank=by_rank, sent_bytes=samples.sent.get(label, [])) if by_rank[0][0] else arm


def _errors(by_path: Errors | None) -> dict[str, Any]:
    """The errors of the worst array of an answer: 0 if none is of a floating type, nothing if it was not judged."""
    if by_path is None:
        return {}
    largest, rms = map(max, zip(Error(), *by_path.values(), strict=True))
    return {"max_error": largest, "rms_error": rms}


def _rows(bench: Bench, version: Version, arms: dict[str, Arm], floor: float, samples: Samples) -> list[Row]:
    """A variant's rows: against the baseline, and against the earlier variant that it names."""
    precision = version.constants.get("PRECISION", "")
    for guilty, whose in (("baseline", {"whose": "baseline"}), (version.label, {})):
        if guilty in bench.outcomes:
            outcome = bench.outcomes[guilty]
            reason = outcome.reason and outcome.reason.at(**whose)
            return [Row(version.label, "baseline", outcome.verdict, reason, precision=precision)]
    copy, empty = (has(version, bench.job.pair.baseline) for has in (is_copy, has_no_launch))
    known = [Finding(Cause.IS_A_COPY if copy else Cause.NO_KERNEL)] if copy or empty else []
    if version.label not in arms:
        voided = samples.voided
        reason = Finding(Cause.ALL_VOIDED, {"rounds": voided}) if voided else None
        return [Row(version.label, "baseline", Verdict.VERIFIED, reason, precision=precision, notes=known)]
    notes, others = known + _notes(bench, arms, samples, version.label), ("baseline", version.versus)
    rows = [_believed(bench, arms, samples, version.label, other, floor) for other in others if other in arms]
    return [replace(row, precision=precision, notes=notes) for row in rows]


def _believed(bench: Bench, arms: dict[str, Arm], samples: Samples, variant: str, versus: str, floor: float) -> Row:
    """A row from samples that were found valid."""
    short = _too_short(arms, samples)
    for label in (variant, versus):
        if label in short:
            return Row(variant, versus, Verdict.TOO_SHORT, short[label])
    ratio = stats.estimate(arms[versus].seconds, arms[variant].seconds)
    blocks = len(arms[variant].seconds)
    outcome = decide(ratio, blocks, floor, [], [])
    if not stats.sign_interval_rank(blocks):
        return Row(variant, versus, outcome.verdict, outcome.reason, ratio.ratio)
    libraries = {}
    precisions = {each.label: each.precision for each in bench.candidates}
    for label in _libraries(arms):  # except those of another precision, which do less than this variant
        if label not in short and precisions[label] in ("", precisions[variant]):
            against = stats.estimate(arms[label].seconds, arms[variant].seconds)
            named = {"precision": precisions[label]} if precisions[label] else {}
            libraries[label] = {"ratio": against.ratio, "interval": (against.low, against.high), **named}
    interval = (ratio.low, ratio.high)
    return Row(variant, versus, outcome.verdict, outcome.reason, ratio.ratio, interval, libraries)


def _too_short(arms: dict[str, Arm], samples: Samples) -> dict[str, Finding]:
    """Label -> reason, for times below the timer's resolution."""
    floors = {label: samples.plan.paces[label].floor_s for label in arms}
    return {
        label: Finding(Cause.TOO_SHORT, {"factor": FLOOR_TIMES, "floor_us": floor_s * 1e6})
        for label, floor_s in floors.items()
        if arms[label].median_s < FLOOR_TIMES * floor_s
    }


def _libraries(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.split("/")[0] in LIBRARY_KINDS]


def _waits(labels: Iterable[str], samples: Samples) -> list[Finding]:
    """Notes on arms whose device waited for the host in more than a quarter of the samples."""
    waits = {label: [sample.waited for sample in samples.of(label)] for label in labels}
    often = {label: found for label, found in waits.items() if sum(found) > len(found) / 4}
    facts = ({"whose": label, "waits": sum(found), "samples": len(found)} for label, found in often.items())
    return [Finding(Cause.DEVICE_WAITED, each) for each in facts]


def _notes(bench: Bench, arms: dict[str, Arm], samples: Samples, label: str) -> list[Finding]:
    """Notes that belong beside a time."""
    arm, notes, libraries = arms[label], list[Finding](), _libraries(arms)
    notes += [arm.host_bound] if arm.host_bound else []
    notes += _waits([each for each in arms if each in (label, "baseline", *libraries)], samples)
    notes += [why.at(whose=each) for each, why in _too_short(arms, samples).items() if each in libraries]
    if arm.compile_s > LONG_COMPILE_S:
        notes.append(Finding(Cause.COMPILED_LONG, {"seconds": arm.compile_s}))
    if label in samples.seen and not samples.seen[label].is_known:
        notes.append(Finding(Cause.NOT_PROFILED))
    cores = [float(np.median([sample.cores for sample in samples.of(each)])) for each in (label, "baseline")]
    if bench.job.info["kind"] == "cpu" and max(cores) - min(cores) > MORE_CORES:
        notes.append(Finding(Cause.CORES_BUSY, {"cores": cores[0], "baseline": cores[1]}))
    dearer = [np.mean(np.concatenate(arms[each].seconds)) / arms[each].median_s for each in (label, "baseline")]
    if dearer[0] > UNEVEN * dearer[1]:
        notes.append(Finding(Cause.UNEVEN, {"times": float(dearer[0])}))
    mine, theirs = (arms[each].allocated_bytes or 0 for each in (label, "baseline"))
    if abs(mine - theirs) > max(LEAST_ALLOCATED, 0.1 * theirs):
        notes.append(Finding(Cause.ALLOCATES, {"bytes": mine, "baseline": theirs}))
    cost, cache_bytes = samples.costs["baseline"], bench.job.info.get("cache_bytes") or 0
    is_warm = arm.host_s is None  # the wall clock; the device's clock begins with a cold L2
    if is_warm and of_limit(cost, bench.job.limits)[1] == "dram_bytes" and cost["dram_bytes"] <= cache_bytes:
        notes.append(Finding(Cause.FITS_IN_CACHE))
    elif arm.of_limit and arm.of_limit > ABOVE_LIMIT:
        notes.append(Finding(Cause.ABOVE_LIMIT))
    reasons = ((name, bench.outcomes[name].reason) for name in _libraries(bench.outcomes))
    return notes + [reason.at(whose=name) for name, reason in reasons if reason]
