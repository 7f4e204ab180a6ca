"""What to write where an honest pair is refused: the end of a message (and a table of CONTRIBUTING.md)."""

from common.record.outcome import Cause, Finding

REFERENCE = "write the answer as `reference` in the baseline, in float64"
SECOND = (
    "if both versions are right, `TOLERANCE` in every version says how near is near enough, with the reason; where a "
    "sign or an order is free, return what does not depend on it"
)
PRECISION = "a version whose lesson is lower precision says so with `PRECISION`; `TOLERANCE` does not widen this limit"
RETURN_ARRAYS = "return arrays of numbers, as the baseline does (`torch.tensor(values)` for a list)"
# Of wrong values, and of errors, on a stress draw
OF_DRAW = (
    "if no caller passes such values, leave the draw out with `STRESS` in the version, or declare in the baseline "
    "with `STRUCTURE` what holds of its inputs"
)
OF_OFFSETS = "make a factor 64 bits wide (`.to(tl.int64)`), or leave `offsets beyond 32 bits` out with `STRESS`"
OF_BASELINE = (
    "the reference answer is its `run` on float64 inputs: if that is not the answer, write `reference`; random "
    "numbers are drawn in `inputs`, not in `run`"
)
OF_NARROW = "its `TOLERANCE` is narrower than the type's own, which a sum in another order needs: leave it out"
VALUES = (Cause.WRONG_ELEMENT, Cause.WRONG_SPECIAL, Cause.WRONG_INTEGERS, Cause.WRONG_SHARE, Cause.WRONG_RMS)
# A message ends with this
WAYS_OUT: dict[Cause, str] = {
    Cause.WRONG_ELEMENT: SECOND,
    Cause.WRONG_SPECIAL: "NaN and infinity must be where `reference` has them: a maximum is subtracted before `exp`",
    Cause.WRONG_INTEGERS: (
        "integers may differ only where a rounding of the inputs changes them, indices only between equal values of an "
        "input: return the values beside which the choice does not matter"
    ),
    **dict.fromkeys((Cause.WRONG_SHARE, Cause.WRONG_RMS, Cause.WRONG_DISTANCE), PRECISION),
    Cause.WRONG_COUNT: "return as many arrays as the baseline, in its order",
    Cause.OTHER_DTYPE: "convert the answer in `run`; a lower precision inside is a lesson of its own (`PRECISION`)",
    Cause.OTHER_KIND: RETURN_ARRAYS,
    Cause.OTHER_DEVICE: "copy the answer to the baseline's device in `run`",
    Cause.OTHER_GRADIENTS: "if gradients are no part of the answer, write `NO_GRADIENTS` in the baseline",
    Cause.DROPS_GRADIENTS: "if gradients are no part of the answer, write `NO_GRADIENTS` in the baseline",
    Cause.NOT_PLAIN: RETURN_ARRAYS,
    Cause.PASSES_WRONG: "an answer that hardly depends on them (a flag, a small count) proves nothing: return more",
    Cause.EXPECTS_NAN: "draw inputs of which the answer is finite",
    Cause.ONLY_WEIGHTS: "name what changes from call to call without `w_`",
    Cause.NOT_IN_FLOAT64: f"let the types follow the inputs (`dtype=x.dtype`), or {REFERENCE}",
    Cause.RETURNS_INPUT: "return a copy, or write into an input that is called `out`",
    Cause.LAZY_ANSWER: "make it complete in `run`: `.contiguous()`, `.to_dense()`, `.resolve_conj()`",
    Cause.MEMORY_ORDER: "return `.contiguous()`, or the baseline's order",
    Cause.CHANGED_INPUT: "work on a copy; only inputs called `out*` may be written",
    Cause.RESHAPED_INPUT: "work on a copy",
    Cause.OTHER_INPUTS: "draw the same, with the same calls, in every version",
    Cause.GLOBAL_STATE: "restore it before `run` returns",
    Cause.LEAKS: (
        "open pools, workers and threads in `run`, and join them there (`with`, `close()`, `join()`); one that is kept "
        "from `setup` cannot be measured"
    ),
    Cause.UNTIMELY: "compile, tune and import in `setup`; work on files is out of scope",
    Cause.NOT_JOINED: "let the current stream wait for the others before `run` returns",
    Cause.OUTSIDE_INTERVAL: "let the current stream wait for the others before `run` returns",
    Cause.HUNG: (
        "torch's threads do not survive a fork: call `torch.set_num_threads(1)` first in a forked worker, or start it "
        "with `spawn`"
    ),
}


def way_out(finding: Finding) -> str:
    """What to write, as a clause; empty where nothing is to be added."""
    facts = finding.facts
    if facts.get("draw") and (finding.cause in VALUES or finding.cause not in WAYS_OUT):
        return OF_DRAW
    if facts.get("offsets"):
        return OF_OFFSETS
    if facts.get("narrow"):
        return OF_NARROW
    if facts.get("whose") == "baseline" and finding.cause in VALUES:
        return OF_BASELINE
    return WAYS_OUT.get(finding.cause, "")
