"""The words of verdicts and causes, and their colours: what a record holds as data becomes text here, and only here."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from common.record.outcome import Cause, Finding, Verdict, Where


class Word(NamedTuple):
    """A verdict for readers: its word, its colour on a console, its colour in a figure."""

    word: str
    style: str = ""
    ink: str = ""


VERDICTS = {  # in the order of a tally
    Verdict.FASTER: Word("faster", "green", "#009E73"),
    Verdict.SAME: Word("same", "", "#56B4E9"),
    Verdict.SLOWER: Word("slower", "red", "#D55E00"),
    Verdict.UNSURE: Word("unsure", "yellow", "#999999"),
    Verdict.TOO_SHORT: Word("too short"),
    Verdict.VERIFIED: Word("verified"),
    Verdict.SKIPPED: Word("skipped"),
    Verdict.INVALID: Word("invalid", "bold red"),
    Verdict.CRASHED: Word("crashed", "bold red"),
}
TEXTS = (  # causes whose one fact says all
    Cause.OUT_OF_BOUNDS, Cause.BREAKS_CONTRACT, Cause.NEEDS, Cause.NO_MEMORY, Cause.RAISED, Cause.HUNG, Cause.KILLED,
    Cause.ENDED,
)  # fmt: skip
# A cause in words: what it is, then after | what its facts say of this case. A table's remark names cases by the first.
WORDS: dict[Cause, str] = {
    Cause.WRONG_ELEMENT: "element |{index} of {of} is {got:.6g}, expected {expected:.6g}",
    Cause.WRONG_SPECIAL: "NaN or inf differ from the oracle's near element |{index} of {of}",
    Cause.WRONG_INTEGERS: "|{wrong} of {of} values differ",
    Cause.WRONG_SHARE: (
        "|{share:.0%} of {of} values are wrong by more than half of themselves, the baseline's {baseline:.0%}"
    ),
    Cause.WRONG_RMS: (
        "relative RMS error |{error:.2g} in chunk {chunk} of {chunks}, accepted {accepted:.2g}: not "
        "{precision}, or partly wrong"
    ),
    Cause.WRONG_DISTANCE: "relative RMS distance |{distance:.2g}, accepted {accepted:.2g}: not {precision}",
    Cause.WRONG_COUNT: "returns |{count} value(s), expected {expected}",
    Cause.WRONG_SHAPE: "shape |{shape}, expected {expected}",
    Cause.WRONG_SHAPES: "shapes |{shapes}, the baseline's {expected}",
    Cause.WRONG_DTYPE: "dtype |{dtype}, expected {expected}",
    Cause.OTHER_DTYPE: "dtype |{dtype}, the baseline's is {expected}",
    Cause.OTHER_KIND: "returns |{kind}, the baseline {expected}",
    Cause.OTHER_DEVICE: "on |{device}, the baseline's is on {expected}",
    Cause.OTHER_GRADIENTS: "leaves gradients in |{names}, the baseline in {expected}",
    Cause.NOT_PLAIN: "returns |{kind}, not a plain tensor or array of numbers",
    Cause.PASSES_WRONG: (
        "an answer |{what} would pass: draw inputs at random, without a fixed seed, so that the answer depends on them"
    ),
    Cause.EXPECTS_NAN: "nearly all that is expected{of} is NaN or infinite",
    Cause.ONLY_WEIGHTS: "all its inputs are weights (w_*) or constants: `setup` could compute the answer",
    Cause.BAD_REFERENCE: "its reference |{text}",
    Cause.NOT_IN_FLOAT64: "its `run` is the reference and does not take float64 inputs: |{text}",
    Cause.RETURNS_INPUT: "returns memory of its input |`{name}`",
    Cause.DROPS_GRADIENTS: "its answer carries no gradients, the baseline's does",
    Cause.LAZY_ANSWER: "returns |{kind}, the baseline a complete one",
    Cause.MEMORY_ORDER: "its answer lies in memory by |{order}, the baseline's {expected}: its reader has to copy it",
    Cause.CHANGED_INPUT: "changed its input |`{name}`",
    Cause.RESHAPED_INPUT: "changed its input: it |{how}",
    Cause.INPUT_CHANGED_BY: "the input |`{name}` was changed by {who}",
    Cause.OTHER_INPUTS: "its inputs differ from the baseline's: |{how}",
    Cause.GLOBAL_STATE: "changes global state: |{what}",
    Cause.LEAKS: "leaks |{what}",
    Cause.UNTIMELY: "every warm call |{what} inside the timed region",
    Cause.OUTSIDE_INTERVAL: "device work outside the timed interval: |{kernel} {how}",
    Cause.BAD_COST: "|{file}: cost {problem}",
    Cause.OTHER_WORK: "its cost is |{cost}, the baseline's {expected}: the work must be the same",
    Cause.SENDS_TOO_LITTLE: "sends |{sent:,} bytes to others, the work needs at least {least:,.0f}",
    Cause.BELOW_DATASHEET: (
        "|{us:.1f} us is below the physical limit: {amount} take {least_us:.1f} us at the datasheet's peak"
    ),
    Cause.BELOW_LIMIT: (
        "less than 1 / {factor} of the time at the measured limit: |{amount} take {least_us:.1f} us, no "
        "cache explains it"
    ),
    Cause.NOT_JOINED: "its device works on for |{us:.0f} us after the clock stopped: a stream is not joined",
    Cause.TOO_SHORT: "below the timer's resolution: |less than {factor} x the clock's own floor of {floor_us:.3g} us",
    Cause.FEW_BLOCKS: "only |{blocks} blocks: an interval needs six",
    Cause.CROSSES_BAND: "the interval crosses the {band:.0%} band: |more blocks or a quieter machine would settle it",
    Cause.NOISY_BASELINE: "the baseline differs from itself by {floor:.1%}: |measure on a quieter machine",
    Cause.CONTRADICTED_ALONE: "beside the others |{together:.3g}x, alone {apart:.3g}x",
    Cause.ALL_VOIDED: "not timed: |all {rounds} rounds were voided for thermal or hardware slowdown",
    Cause.INTERPRETED: "verified at the check sizes, kernels in Triton's interpreter; timing needs a GPU",
    Cause.GLOO_ONLY: "verified with gloo on {ranks} processes; timing needs {ranks} GPUs",
    **dict.fromkeys(TEXTS, "|{text}"),
    Cause.IS_A_COPY: "is a copy of the baseline",
    Cause.NO_KERNEL: "launches no kernel of its own: |it calls a library",
    Cause.HOST_BOUND: "launch-bound: |the host needs {host_us:.0f} us to issue {device_us:.0f} us of device work",
    Cause.DEVICE_WAITED: "the device waited for the host |in {waits} of {samples} samples: the time includes this",
    Cause.COMPILED_LONG: "its first calls took |{seconds:.1f} s longer (compiling, tuning)",
    Cause.NOT_PROFILED: "the profiler could not see the device: |only times show whether all streams are joined",
    Cause.CORES_BUSY: "keeps |{cores:.1f} cores busy, the baseline {baseline:.1f}",
    Cause.CORES_BUSY_BETWEEN: "keeps |{cores:.1f} cores busy between calls",
    Cause.UNEVEN: "some of its calls take much longer: |the mean is {times:.2f} x the median",
    Cause.ALLOCATES: "allocates |{bytes} a call, the baseline {baseline}",
    Cause.FITS_IN_CACHE: "fits in the cache, which stays warm on the wall clock: |memory bandwidth is no limit",
    Cause.MEDIANS_DISAGREE: "its time changes between rounds: |by the two medians it is {times}x",
    Cause.ABOVE_LIMIT: "above the measured limit: |something else ran while the limits were measured",
}
LEAST_BYTES = 1 << 16  # less memory is "almost nothing"


def word(verdict: str) -> str:
    """A verdict in the reader's words."""
    return VERDICTS[Verdict(verdict)].word


def parts(finding: Finding) -> tuple[str, str]:
    """(What it is, what its facts say of this case), to be joined as they are. Either may be empty."""
    facts = _Facts({key: _fact_text(key, value) for key, value in finding.facts.items()})
    what, _, case = (part.format_map(facts) for part in WORDS[finding.cause].partition("|"))
    prefix = _prefix(finding.facts)
    return (prefix, what + case) if prefix else (what, case)


def text(finding: Finding | None) -> str:
    """A finding as one line; empty for none."""
    return "".join(parts(finding)) if finding else ""


def _fact_text(key: str, value: Any) -> Any:
    """A fact as words have it: amounts of memory with their unit."""
    if key in ("bytes", "baseline") and isinstance(value, int) and not isinstance(value, bool):
        return f"{value / 2**20:,.1f} MiB" if value >= LEAST_BYTES else "almost nothing"
    return value if isinstance(value, int | float) else _Text(value)


class _Facts(dict[str, Any]):
    """Facts of a finding, where a record of another origin may lack one."""

    def __missing__(self, key: str) -> str:
        return _Text("" if key == "of" else "?")


class _Text(str):
    """A fact that is text, though its cause usually has a number there: `nan`."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        return str(self)


def _prefix(facts: Mapping[str, Any]) -> str:
    """Whose answer or call it was, on which rank, and where an answer was found wrong."""
    whose = f"{facts['whose']}: ".replace("baseline: ", "the baseline: ") if "whose" in facts else ""
    alone = "alone: " if facts.get("alone") else ""
    rank = f"rank {facts['rank']}: " if "rank" in facts else ""
    path = f"{facts['path']}: " if facts.get("path") else ""
    gradient = "gradient of " if facts.get("gradient") else ""
    proves = f"the check at {facts['check']} proves nothing: " if "check" in facts else ""
    return f"{whose}{alone}{rank}{_place_text(facts)}{proves}{gradient}{path}"


def _place_text(facts: Mapping[str, Any]) -> str:
    on_draw = f" on {facts['draw']}" if facts.get("draw") else ""
    if facts.get("where") not in [place.value for place in Where]:
        return f"{on_draw[1:]}: " if on_draw else ""
    place = Where(facts["where"])
    places = {
        Where.SIZE: f" at size {facts.get('size')}",
        Where.TIMED: " at the timed size",
        Where.LESS: f" at {facts.get('size')}",
        Where.AGAIN: " when called again",
        Where.ROUND: " in a timed round, against the baseline's",
        Where.ALONE: "",
    }
    filled = ", with NaN in uninitialized memory" if facts.get("filled") else ""
    return f"wrong answer{places[place]}{on_draw}{filled}: "
