"""Measure one pair in its own process, top to bottom: each stage is a function of what the one before has left."""

import importlib
import secrets

from common.checks import guards
from common.engine.check import check
from common.engine.conclude import pair_result
from common.engine.job import Job
from common.engine.plan import prepare
from common.engine.ranks import ONE_RANK, Ranks
from common.engine.sampling import Samples, sample
from common.engine.stage import Bench, Progress, Stage
from common.engine.untimed_checks import check_untimed
from common.isolation.pipe import Report
from common.machine.device import use_device
from common.record.result import CONTROL, PairResult


def measure_pair(job: Job, report: Report, ranks: Ranks = ONE_RANK) -> PairResult:
    """Do everything that the job asks. `report(stage, fraction)` reports progress. Raises what `inputs` raises."""
    bench = load_candidates(job, report, ranks)  # versions, libraries, the baseline again as A/A control
    bench = check(bench)  # whose answers are right at the check sizes
    bench, samples = keep_timed(bench), Samples()
    if is_comparison(bench):
        seed = ranks.first(secrets.randbits(64))  # an earlier run's saved answers are then of other inputs
        bench, preparation = prepare(bench, seed)  # the clock, the work, the numbers of blocks, rounds and calls
        if preparation:
            bench, samples = sample(bench, preparation)  # blocks of rounds; their answers are judged
            bench, samples = check_untimed(bench, preparation, samples)  # what samples do not show
    return pair_result(bench, samples)


def load_candidates(job: Job, report: Report, ranks: Ranks = ONE_RANK) -> Bench:
    """The pair's candidates; none if the baseline cannot be loaded."""
    report("load", 0.0)
    use_device(job.device, ranks.count)
    bench = Bench(job, Progress(report, job.reports_turns), ranks)
    with bench.progress.spending("load"), Stage(bench) as stage:
        if any("cupy" in version.imports for version in job.pair.versions if version.label in job.labels):
            importlib.import_module("cupy")  # now: its random numbers can be seeded only once it is imported
        stage.import_versions()
        use_device(job.device, ranks.count)  # also CuPy
        guards.listen_to_triton()
    return stage.end()


def keep_timed(bench: Bench) -> Bench:
    """With the candidates that the job asks to time."""
    libraries = [candidate.label for candidate in bench.candidates if candidate.is_library]
    return bench.only([*bench.job.timed, CONTROL, *libraries])


def is_comparison(bench: Bench) -> bool:
    """Whether there is a baseline and something to compare with it."""
    right_labels = {*bench.job.timed} - bench.outcomes.keys()
    return "baseline" in right_labels and len(right_labels) > 1
