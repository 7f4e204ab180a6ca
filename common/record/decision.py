"""The verdict of a comparison, decided here and nowhere else: when it is measured, and when its record is read."""

import numpy as np

from common import stats
from common.record.outcome import Cause, Finding, Outcome, Verdict

Runs = list[list[float]]  # [run][sample] seconds of a candidate alone in its process


def decide(ratio: stats.Estimate, blocks: int, floor: float, versus: Runs, variant: Runs) -> Outcome:
    """What samples taken together allow to conclude, if the runs alone of both do not contradict it.

    `floor`: the noise floor. Fewer than six blocks have no interval. Without runs alone there is no contradiction.
    """
    if not stats.sign_interval_rank(blocks):
        return Outcome(Verdict.UNSURE, Finding(Cause.FEW_BLOCKS, {"blocks": blocks}))
    verdict = Verdict(stats.verdict(ratio, floor))
    if not stats.holds_alone(verdict, ratio.ratio, versus, variant):
        alone = float(np.median(versus[-1]) / np.median(variant[-1]))
        return Outcome(Verdict.UNSURE, Finding(Cause.CONTRADICTED_ALONE, {"together": ratio.ratio, "apart": alone}))
    if verdict != Verdict.UNSURE:
        return Outcome(verdict)
    if floor > stats.MARGIN:
        return Outcome(verdict, Finding(Cause.NOISY_BASELINE, {"floor": floor}))
    return Outcome(verdict, Finding(Cause.CROSSES_BAND, {"band": stats.MARGIN}))


def is_contradicted(outcome: Outcome) -> bool:
    """Whether the runs alone contradict what was concluded together."""
    return outcome.reason is not None and outcome.reason.cause == Cause.CONTRADICTED_ALONE
