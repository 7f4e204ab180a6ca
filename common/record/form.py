"""The file of records: what is measured, and what cannot be computed from it. Every figure follows (`recompute.py`).

One file holds the results of a chapter, a class of sizes and a device, from one run or several. Units: `result.py`.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from common.record.outcome import Finding

FORM = 4
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Times = Annotated[list[Seconds], Meta(min_length=1)]
Samples = Annotated[list[Times], Meta(min_length=1)]  # [block][round]


class Strict(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is not in the form is no record; what has its default is not written."""


class Device(Strict, frozen=True):
    """See common.machine.device.describe."""

    kind: Literal["cpu", "cuda"]
    name: str
    capability: list[int] | None
    gpus: int | None = None
    sms: int | None = None
    cores: int | None = None
    threads: int | None = None
    memory_bytes: int | None = None
    cache_bytes: int | None = None
    uuid: str | None = None
    driver: str | None = None
    max_sm_mhz: int | None = None
    max_memory_mhz: int | None = None
    host: str | None = None


class Environment(Strict, frozen=True):
    """The machine and the software of a run. `survey_s`: what looking at the machine and its limits took."""

    device: Device
    versions: dict[str, str]
    date: str
    argv: list[str]
    fast: bool
    interrupted: bool
    platform: str
    survey_s: Amount = 0.0


class Limit(Strict, frozen=True):
    """See common.machine.limits.Limit."""

    measured: Annotated[float, Meta(gt=0)] | None
    datasheet: Annotated[float, Meta(gt=0)] | None
    how: str
    source: str


class Run(Strict, frozen=True):
    environment: Environment
    limits: dict[str, Limit]


class Kernel(Strict, frozen=True):
    """Machine code that ran in a call. `registers`: of a thread; `spills`: bytes of a thread."""

    name: str
    launches: Count = 1
    registers: Count | None = None
    spills: Count | None = None
    warps: Count | None = None
    shared_bytes: Count | None = None
    instructions: dict[str, Count] = {}


class Candidate(Strict, frozen=True):
    """The samples of a version, a library call or the A/A control: see `result.Arm`."""

    seconds: Samples
    compile_s: Amount = 0.0
    host_s: Amount | None = None
    calls: Annotated[int, Meta(ge=1)] = 1
    floor_s: Amount | None = None
    allocated_bytes: Count | None = None
    peak_bytes: Count | None = None
    max_error: Amount | None = None
    rms_error: Amount | None = None
    alone: list[Times] = []
    by_rank: list[list[list[Seconds]]] = []
    sent_bytes: list[Count] = []
    cost: dict[str, float] = {}
    precision: str = ""
    kernels: list[Kernel] = []


class Variant(Strict, frozen=True):
    """What is said of a variant besides its samples. `versus`: the variant that it is also compared with.

    `verdict`, with its `reason`: where there is no speedup. The others follow from the samples.
    """

    label: str
    versus: str = ""
    precision: str = ""
    verdict: Literal["too short", "verified", "skipped", "invalid", "crashed"] | None = None
    reason: Finding | None = None
    notes: list[Finding] = []


class Clocks(Strict, frozen=True):
    """Of a GPU at the end of the samples, still under load."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    throttle_flags: int | None = None


class Group(Strict, frozen=True):
    """The processes of a pair with RANKS."""

    count: Annotated[int, Meta(ge=2)]
    backend: str
    environment: dict[str, Any]


class Result(Strict, frozen=True):
    """A pair at one size: see `result.PairResult`. `run`: the index of its run.

    `orders`: for each block the candidates, and after them `left_out`, by their numbers in the order of its first
    round; in each later round the first becomes the last. A block of other orders has a list for each round.
    `left_out`: what ran beside the candidates and was disqualified.
    """

    run: Count
    chapter: str
    name: str
    size: str
    arguments: dict[str, Any]
    source_hash: str
    variants: list[Variant]
    carried: list[str] = []
    clock: Literal["", "device", "wall"] = ""
    cost: dict[str, float] = {}
    candidates: dict[str, Candidate] = {}
    left_out: list[str] = []
    orders: list[list[int | list[int]]] = []
    seeds: list[int] = []
    voided_rounds: Count = 0
    spent_s: dict[str, float] = {}
    other_load: list[str] = []
    clocks: Clocks | None = None
    group: Group | None = None


class File(Strict, frozen=True):
    form: Literal[4]
    runs: Annotated[list[Run], Meta(min_length=1)]
    results: list[Result]
