"""Measure configurations on a GPU as the engine measures a pair: the default is the baseline, each other one a version.

So every block has fresh inputs, every round runs them all in random order with the default again (the A/A control) and
torch, each with a cold L2, and no time counts of what does not answer as float64 does. A configuration that kills its
process, or hangs in it, costs itself alone: the others are measured without it.
"""

import shutil
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from msgspec.structs import replace

from common import stats
from common.engine import measure as engine
from common.engine.job import TURN, Job
from common.isolation import worker
from common.machine.survey import survey_apart
from common.pairs.contract import read_version
from common.pairs.pair import Pair
from common.record.outcome import FAILED, Verdict
from common.record.result import CONTROL, Arm, PairResult, Row
from common.show.words import text
from common.xray.occupancy import WARP, Machine
from search.examine import GEMM, Tell
from search.history import NO_ROOM, Trial
from search.space import Configuration, Problem, name_of

CANDIDATE = Path(__file__).with_name("candidate.py")
BLOCKS, FINAL_BLOCKS = 6, 24  # six are the fewest that give a 95 % interval
DEFAULT, TORCH = "baseline", "library"  # what the engine calls that which is timed beside them
ONE_PROBLEM = {"offsets beyond 32 bits": "a search is for one problem, whose matrices are smaller"}


@dataclass(frozen=True)
class Measured:
    """died: name -> why its process ended. rows: name -> the engine's conclusion. arms: with DEFAULT and CONTROL."""

    died: dict[str, str]
    rows: dict[str, Row] = field(default_factory=dict)
    arms: dict[str, Arm] = field(default_factory=dict)

    @property
    def control(self) -> stats.Estimate:
        """Time of the default / time of the default again."""
        return stats.estimate(self.arms[DEFAULT].seconds, self.arms[CONTROL].seconds)

    def judged(self, trial: Trial) -> Trial:
        """A trial that was compiled, with its time, or the reason why it has none."""
        row = self.rows.get(trial.name)
        if row and row.ratio and row.interval:
            low, high = row.interval
            return replace(trial, score=row.ratio, low=low, high=high, seconds=self.arms[trial.name].median_s)
        if not row and trial.name not in self.died:
            return trial
        outcome, reason = (_outcome(row), text(row.reason)) if row else ("crashed", self.died[trial.name])
        return replace(trial, outcome=outcome, reason=reason, score=0.0, low=0.0, high=0.0)


def measured(
    problem: Problem, configurations: list[Configuration], default: Configuration, device: str, seed: int, tell: Tell,
    blocks: int = BLOCKS,
) -> Measured:  # fmt: skip
    """Measure all of them, also if a process dies. Raises ChildFailed where no configuration is the cause."""
    left, died = {name_of(each): each for each in configurations}, dict[str, str]()
    info, limits = survey_apart(device)
    variables = {"TRITON_INTERPRET": "1"} if info["kind"] == "cpu" else {}
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        pair = pair_of(Path(folder), problem, left, default)
        while left:
            labels, turn = [DEFAULT, *left], [""]
            job = Job(pair, "default", device, info, limits, labels, labels, blocks, seed, reports_turns=True)
            hear = partial(_hear, turn, tell)
            try:
                result = worker.call(engine.measure_pair, job, environment=variables, on_progress=hear)
                return Measured(died, believed(result), result.arms)
            except worker.ChildFailed as death:
                if turn[0] not in left:
                    raise
                died[turn[0]] = str(death)
                del left[turn[0]]
    return Measured(died)


def _hear(turn: list[str], tell: Tell, what: str, fraction: float) -> None:
    if fraction == TURN:
        turn[0] = what
    else:
        tell(what, fraction)


def pair_of(folder: Path, problem: Problem, named: dict[str, Configuration], default: Configuration) -> Pair:
    """Configurations as the versions of a pair, whose files are written to `folder`."""
    sizes = {"check": asdict(problem), "default": asdict(problem)}
    shutil.copy(GEMM, folder)
    versions = []
    for i, (label, each) in enumerate({DEFAULT: default, **named}.items()):
        path = folder / f"{i}.py"
        left_out = f"STRESS = {ONE_PROBLEM}\n" if versions else ""
        source = f"{CANDIDATE.read_text()}\nCONFIGURATION = {each}\nSIZES = {sizes}\n{left_out}"
        path.write_text(source, encoding="utf-8")
        versions.append(read_version(path, label))
    return Pair("ch4", "gemm", versions[0], tuple(versions[1:]), sizes)


def believed(result: PairResult) -> dict[str, Row]:
    """Name -> row. Raises ChildFailed where the default fails, or nothing could be timed."""
    for row in result.rows:
        is_default = row.reason and row.reason.facts.get("whose") == "baseline"
        if is_default or not (result.arms or row.verdict in FAILED):
            raise worker.ChildFailed(text(row.reason).replace("the baseline", "the default configuration"))
    return {row.variant: row for row in result.rows}


def _outcome(row: Row) -> str:
    if row.verdict == Verdict.CRASHED:
        kind = row.reason.facts.get("kind") if row.reason else ""
        return NO_ROOM if kind == "OutOfResources" else "does not run"
    return "wrong" if row.verdict == Verdict.INVALID else row.verdict


def machine_of(device: str) -> Machine:
    """A GPU as its compiler and the arithmetic see it. Raises ChildFailed."""
    machine: Machine = worker.call(_machine, device)
    return machine


def _machine(device: str, say: Tell) -> Machine:
    here = torch.cuda.get_device_properties(device)
    warps, name = here.max_threads_per_multi_processor // WARP, f"sm_{here.major}{here.minor}"
    sms, shared_bytes = here.multi_processor_count, here.shared_memory_per_multiprocessor
    return Machine(name, here.name, sms, here.L2_cache_size, warps, 32, shared_bytes)
