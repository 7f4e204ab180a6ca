"""Verify configurations and time them on a GPU, in a process of their own: a kernel that kills it costs one of them.

Every block has fresh inputs; every round runs all configurations, the default and the default again, in random order,
each with a cold L2. What is compared is the ratio to the default within a block, so that a clock that falls as the GPU
warms up is nobody's advantage, and what the default is from itself (A/A) is what a difference must exceed.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from common.isolation import process
from common.record import stats
from common.xray.occupancy import WARP, Machine
from search.examine import GEMM
from search.space import Configuration, Problem, name_of

BLOCKS, ROUNDS = 6, 3  # of a generation: six blocks are the fewest that give a 95 % interval
FINAL_BLOCKS, FINAL_ROUNDS = 24, 5
DEFAULT, REPEAT, TORCH = "default", "repeat", "torch"
WARM_S = 0.01  # a call that takes longer needs no other before it
Seconds = dict[str, list[list[float]]]  # arm -> blocks -> rounds
Say = Callable[[str, float], None]


@dataclass(frozen=True)
class Measured:
    """bad: name -> (outcome, reason). seconds: of all others, of DEFAULT, REPEAT and, in the end, TORCH."""

    disqualified: dict[str, tuple[str, str]]
    seconds: Seconds

    def ratio(self, name: str, of: str = DEFAULT) -> stats.Estimate:
        """Time of `of` / time of `name`."""
        return stats.estimate(self.seconds[of], self.seconds[name])


def measured(
    problem: Problem, configurations: list[Configuration], default: Configuration, device: str, seed: int, tell: Say,
    final: bool = False,
) -> Measured:  # fmt: skip
    """All of them, whatever becomes of the process; raises Death if it is not one of theirs that kills it."""
    left, bad = {name_of(each): each for each in configurations}, dict[str, tuple[str, str]]()
    while True:
        said = [""]

        def listen(what: str, fraction: float, said: list[str] = said) -> None:
            said[0] = what
            tell("verifying and timing", fraction)

        try:
            result: Measured = process.call(_measure, problem, left, default, device, seed, final, on_progress=listen)
            return Measured({**bad, **result.bad}, result.seconds)
        except process.Death as death:
            if said[0] not in left:
                raise
            bad[said[0]] = ("died", str(death))
            del left[said[0]]


def machine_of(device: str) -> tuple[Machine, dict[str, Any]]:
    """A GPU as its compiler and the arithmetic see it, and what a history says of it. Raises Death."""
    found: tuple[Machine, dict[str, Any]] = process.call(_machine, device)
    return found


def _machine(device: str, say: Say) -> tuple[Machine, dict[str, Any]]:
    import torch

    from common.machine.device import versions

    here = torch.cuda.get_device_properties(device)
    warps = here.max_threads_per_multi_processor // WARP
    machine = Machine(
        f"sm_{here.major}{here.minor}", here.name, here.multi_processor_count, here.L2_cache_size, warps, 32,
        here.shared_memory_per_multiprocessor,
    )  # fmt: skip
    return machine, {name: versions().get(name, "") for name in ("torch", "triton")}


def _measure(
    problem: Problem, configurations: dict[str, Configuration], default: Configuration, device: str, seed: int,
    final: bool, say: Say,
) -> Measured:  # fmt: skip
    import torch

    from common.machine.clock import make_clock
    from common.machine.device import use_device
    from common.pairs.pair import load

    use_device(device)
    gemm = load(GEMM)
    torch.manual_seed(seed)
    arms = {**configurations, DEFAULT: default, REPEAT: default}
    bad = _verify(gemm, problem, {DEFAULT: default, **configurations}, device, say)
    say("", 0.5)  # what fails between two candidates is none's fault
    if DEFAULT in bad:
        raise RuntimeError(f"the default configuration: {' '.join(bad[DEFAULT])}")
    runs = {name: partial(gemm.launch, configuration=each) for name, each in arms.items() if name not in bad}
    if final:
        runs[TORCH] = partial(_torch, gemm)
    rng = random.Random(seed)
    seconds, late = _time(gemm, problem, runs, make_clock("device", device), device, rng, final, say)
    return Measured({**bad, **late}, {name: blocks for name, blocks in seconds.items() if name not in late})


def _torch(gemm: Any, a: Any, b: Any, c: Any, activation: str) -> None:
    """What one would call instead: two operations, or one."""
    import torch

    torch.matmul(a, b, out=c)
    if activation != "none":
        getattr(torch.nn.functional, activation)(c, inplace=True)


def _verify(
    gemm: Any, problem: Problem, configurations: dict[str, Configuration], device: str, say: Say
) -> dict[str, tuple[str, str]]:
    """Who gives no answer, or a wrong one, and why. Judged as a version is: against float64, beside torch's error."""
    import torch
    from triton.runtime.errors import OutOfResources

    from common.checks.comparison import compare
    from common.isolation.process import one_line
    from common.machine.clock import synchronize

    given = gemm.inputs(**asdict(problem), configuration=None, device=device)
    a, b = given["a"], given["b"]
    model, truth = torch.empty(problem.m, problem.n, dtype=a.dtype, device=device), a.double() @ b.double()
    _torch(gemm, a, b, model, problem.activation)
    if problem.activation != "none":
        truth = getattr(torch.nn.functional, problem.activation)(truth)
    bad = {}
    for number, (name, configuration) in enumerate(configurations.items()):
        say(name, number / len(configurations) / 2)
        c = torch.full_like(model, float("nan"))
        try:
            gemm.launch(a, b, c, configuration, problem.activation)
            synchronize(device)
        except OutOfResources as error:
            bad[name] = ("out of resources", one_line(error))
        except Exception as error:  # noqa: BLE001 (whatever Triton's passes raise is this configuration's outcome)
            synchronize(device)  # raises where the device is broken, and with it this process
            bad[name] = ("does not run", one_line(error))
        else:
            if problem_with := compare(c, truth, model):
                bad[name] = ("wrong", problem_with)
    return bad


def _time(
    gemm: Any, problem: Problem, runs: Mapping[str, Callable[..., None]], clock: Any, device: str, rng: random.Random,
    final: bool, say: Say,
) -> tuple[Seconds, dict[str, tuple[str, str]]]:  # fmt: skip
    """The samples; and whose last timed answer was wrong, and how."""
    import torch

    from common.checks.comparison import near
    from common.machine.clock import host_seconds

    blocks, rounds = (FINAL_BLOCKS, FINAL_ROUNDS) if final else (BLOCKS, ROUNDS)
    seconds: Seconds = {name: [] for name in runs}
    host_s: dict[str, float] = {}
    wrong: dict[str, tuple[str, str]] = {}
    for block in range(blocks):
        say("", 0.5 + block / blocks / 2)
        given = gemm.inputs(**asdict(problem), configuration=None, device=device)
        c, model = (torch.empty(problem.m, problem.n, dtype=given["a"].dtype, device=device) for _ in range(2))
        _torch(gemm, given["a"], given["b"], model, problem.activation)
        calls = {name: partial(run, given["a"], given["b"], c, activation=problem.activation)
                 for name, run in runs.items()}  # fmt: skip
        for name in runs:
            seconds[name].append([])
        for number in range(rounds):
            last = (block, number) == (blocks - 1, rounds - 1)
            for name in rng.sample(list(runs), len(runs)):
                say(name, 0.5 + block / blocks / 2)
                if name not in host_s:
                    host_s[name] = host_seconds(calls[name], device)
                if not seconds[name][-1] or seconds[name][-1][-1] < WARM_S:
                    calls[name]()
                c.fill_(float("nan"))
                seconds[name][-1].append(clock.sample([calls[name]], host_s[name]).seconds)
                if last and (why := near(c, model)):
                    wrong[name] = ("wrong", f"in a timed round: {why}")
    return seconds, wrong
