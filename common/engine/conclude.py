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
from common.engine.session import Session
from common.pairs.contract import Version
from common.pairs.source import remarks, source_hash
from common.record.outcome import Cause, Finding, Verdict, prose
from common.record.recompute import FLOOR_TIMES, of_limit
from common.record.result import CONTROL, Arm, PairResult, Row

LONG_COMPILE_S = 1.0  # above this, a note says so
ABOVE_LIMIT = 1.05  # an arm this far above a measured limit makes the limit doubtful
MORE_CORES = 0.5  # difference in busy cores that a note mentions
UNEVEN = 1.25  # times the baseline's mean over median: a median hides this
LEAST_ALLOCATED = 64 << 10  # bytes: smaller differences are not mentioned


def pair_result(session: Session, samples: Samples) -> PairResult:
    """The pair's record: rows for every loaded variant, samples of reliable arms."""
    job, pair = session.job, session.job.pair
    timed = [each.label for each in session.remaining] if samples.blocks else []
    for label, reason in {**too_fast(timed, samples, job), **works_on(timed, samples)}.items():
        session.disqualify(label, reason)
    left = {each.label for each in session.remaining}
    arms = {label: _arm(label, samples, job.limits) for label in timed if label in left}
    libraries = {each.label: each.precision for each in session.candidates if each.is_library}
    arms = {label: replace(arm, precision=libraries.get(label, "")) for label, arm in arms.items()}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if arms else None
    cost = samples.costs.get("baseline", {})
    least_s, by = of_limit(cost, job.limits)
    loaded = [version for version in pair.variants if version.label in job.labels]
    rows = [row for version in loaded for row in _rows(session, version, arms, floor or 0.0, samples)]
    orders = [[list(each) for each in block] for block in samples.blocks]
    return PairResult(
        pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows, samples.clock, floor, cost,
        least_s, by, arms, orders, session.seeds, samples.voided, session.progress.spent_s, clocks=samples.clocks,
        group=session.ranks.described(),
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


def _rows(session: Session, version: Version, arms: dict[str, Arm], floor: float, samples: Samples) -> list[Row]:
    """A variant's rows: against the baseline, and against the earlier variant that it names."""
    precision = version.constants.get("PRECISION", "")
    for guilty, whose in (("baseline", "the baseline: "), (version.label, "")):
        if guilty in session.disqualified:
            verdict, reason = session.disqualified[guilty]
            return [Row(version.label, "baseline", Verdict(verdict), prose(whose + reason), precision=precision)]
    known = [*filter(None, map(prose, remarks(version, session.job.pair.baseline)))]
    if version.label not in arms:
        voided = samples.voided
        reason = f"not timed: all {voided} rounds were voided for thermal or hardware slowdown" if voided else ""
        return [Row(version.label, "baseline", Verdict.VERIFIED, prose(reason), precision=precision, notes=known)]
    notes = [*known, *filter(None, map(prose, _notes(session, arms, samples, version.label)))]
    others = ("baseline", version.versus)
    rows = [_believed(session, arms, samples, version.label, other, floor) for other in others if other in arms]
    return [replace(row, precision=precision, notes=notes) for row in rows]


def _believed(session: Session, arms: dict[str, Arm], samples: Samples, variant: str, versus: str, floor: float) -> Row:
    """A row from samples that were found valid."""
    short = _too_short(arms, samples)
    for label in (variant, versus):
        if label in short:
            return Row(variant, versus, Verdict.TOO_SHORT, prose(short[label]))
    ratio = stats.estimate(arms[versus].seconds, arms[variant].seconds)
    blocks = len(arms[variant].seconds)
    if not stats.sign_interval_rank(blocks):
        return Row(variant, versus, Verdict.UNSURE, Finding(Cause.FEW_BLOCKS, {"blocks": blocks}), ratio.ratio)
    verdict, reason = stats.verdict(ratio, floor)
    libraries = {}
    precisions = {each.label: each.precision for each in session.candidates}
    for label in _libraries(arms):  # except those of another precision, which do less than this variant
        if label not in short and precisions[label] in ("", precisions[variant]):
            against = stats.estimate(arms[label].seconds, arms[variant].seconds)
            named = {"precision": precisions[label]} if precisions[label] else {}
            libraries[label] = {"ratio": against.ratio, "interval": (against.low, against.high), **named}
    return Row(variant, versus, Verdict(verdict), prose(reason), ratio.ratio, (ratio.low, ratio.high), libraries)


def _too_short(arms: dict[str, Arm], samples: Samples) -> dict[str, str]:
    """Label -> reason, for times below the timer's resolution."""
    floors = {label: samples.plan.paces[label].floor_s for label in arms}
    why = f"below the timer's resolution: less than {FLOOR_TIMES} x the clock's own floor of"
    return {
        label: f"{why} {floor_s * 1e6:.3g} us"
        for label, floor_s in floors.items()
        if arms[label].median_s < FLOOR_TIMES * floor_s
    }


def _libraries(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.split("/")[0] in LIBRARY_KINDS]


def _waits(labels: Iterable[str], samples: Samples) -> list[str]:
    """Notes on arms whose device waited for the host in more than a quarter of the samples."""
    waits = {label: [sample.waited for sample in samples.of(label)] for label in labels}
    often = [(label, f"{sum(each)} of {len(each)}") for label, each in waits.items() if sum(each) > len(each) / 4]
    return [f"{who}: the device waited for the host in {n} samples: the time includes this" for who, n in often]


def _notes(session: Session, arms: dict[str, Arm], samples: Samples, label: str) -> list[str]:
    """Notes that belong beside a time."""
    arm, notes, libraries = arms[label], [], _libraries(arms)
    notes += [f"launch-bound: {arm.bound}"] if arm.bound else []
    notes += _waits([each for each in arms if each in (label, "baseline", *libraries)], samples)
    notes += [f"{each}: {why}" for each, why in _too_short(arms, samples).items() if each in libraries]
    if arm.compile_s > LONG_COMPILE_S:
        notes.append(f"its first calls took {arm.compile_s:.1f} s longer (compiling, tuning)")
    if label in samples.seen and samples.seen[label].outside is None:
        notes.append("the profiler could not see the device: only times show whether all streams are joined")
    cores = [float(np.median([sample.cores for sample in samples.of(each)])) for each in (label, "baseline")]
    if session.job.info["kind"] == "cpu" and max(cores) - min(cores) > MORE_CORES:
        notes.append(f"keeps {cores[0]:.1f} cores busy, the baseline {cores[1]:.1f}")
    dearer = [np.mean(np.concatenate(arms[each].seconds)) / arms[each].median_s for each in (label, "baseline")]
    if dearer[0] > UNEVEN * dearer[1]:
        notes.append(f"some of its calls take much longer: the mean is {dearer[0]:.2f} x the median")
    mine, theirs = (arms[each].allocated_bytes or 0 for each in (label, "baseline"))
    if abs(mine - theirs) > max(LEAST_ALLOCATED, 0.1 * theirs):
        notes.append(f"allocates {_mebibytes(mine)} a call, the baseline {_mebibytes(theirs)}")
    cost, cache_bytes = samples.costs["baseline"], session.job.info.get("cache_bytes") or 0
    is_warm = arm.host_s is None  # the wall clock; the device's clock begins with a cold L2
    if is_warm and of_limit(cost, session.job.limits)[1] == "dram_bytes" and cost["dram_bytes"] <= cache_bytes:
        notes.append("fits in the cache, which stays warm on the wall clock: memory bandwidth is no limit")
    elif arm.of_limit and arm.of_limit > ABOVE_LIMIT:
        notes.append("above the measured limit: something else ran while the limits were measured")
    return notes + [f"{name}: {session.disqualified[name][1]}" for name in _libraries(session.disqualified)]


def _mebibytes(amount: int) -> str:
    return f"{amount / 2**20:,.1f} MiB" if amount >= LEAST_ALLOCATED else "almost nothing"
