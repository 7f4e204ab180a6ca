"""Compile configurations, on any machine: what the compiler found beside what was predicted, and a proxy for time.

The proxy is a roofline with three roofs for one tile's loop, all computed from what was compiled:

    L2      every block of a and b comes from it once a step: FLOP per byte grow with the tile's sides
    DRAM    programs that run at once share rows and columns: FLOP per byte grow with a square group (GROUP_M)
    latency of a copy, over the stages that are under way while one is multiplied

and once the time to fill the pipeline and to issue every instruction; times the shares of useful work in the last
wave, at the edges, and among the instructions (spills are none).
It knows nothing of bank conflicts, of clocks under load or of the order of instructions: a proxy, to learn the loop by.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from common.isolation import forkserver
from common.pairs.user_error import UserError
from common.xray.capture import launches
from common.xray.compilers import CompileError
from common.xray.occupancy import PARTS, SYSTEM_SHARED_BYTES, Machine
from common.xray.sass import Anatomy, anatomy
from search.history import MEASURED, NO_COMPILE, NO_ROOM, Trial
from search.space import ITEM_BYTES, Configuration, Problem, name_of, predict

GEMM = Path(__file__).resolve().parents[1] / "gemm.py"
# Rounded, of an H100: what an SM multiplies a cycle; its share of L2's and of DRAM's bytes a cycle; an L2 hit's latency
FLOPS_A_CYCLE, L2_BYTES_A_CYCLE, DRAM_BYTES_A_CYCLE, LATENCY_CYCLES = 4096, 32, 14, 600
Tell = Callable[[str, float], None]
Bar = Callable[[], AbstractContextManager[Tell]]  # shown while it is entered: nothing else is printed meanwhile


def examine(problem: Problem, configuration: Configuration, machine: Machine, generation: int = 0) -> Trial:
    """Compile one configuration and score its machine code by the proxy; a trial, or the reason why there is none."""
    predicted = asdict(predict(configuration, machine))
    trial = partial(Trial, configuration, generation, predicted=predicted)
    try:
        (launch,) = launches(GEMM, {**asdict(problem), "configuration": configuration}, machine)
        kernel = anatomy(launch, machine)
    except CompileError as error:
        return trial(outcome=NO_COMPILE, reason=str(error))
    found = {
        "registers": kernel.registers, "shared_bytes": kernel.shared_bytes, "spills": kernel.spills,
        "warps_on_an_sm": kernel.occupancy.warps, "tensor_instructions": sum(kernel.tensor.values()),
        "instructions": kernel.instructions,
    }  # fmt: skip
    there = machine.shared_bytes - SYSTEM_SHARED_BYTES
    if kernel.shared_bytes > there or not kernel.occupancy.blocks:
        reason = f"{kernel.shared_bytes:,} bytes of shared memory a block, {there:,} are there"
        return trial(outcome=NO_ROOM, reason=reason, found=found)
    score = proxy(problem, configuration, machine, kernel)
    return trial(outcome=MEASURED, score=score, low=score, high=score, found={**found, "proxy": score})


def proxy(problem: Problem, configuration: Configuration, machine: Machine, kernel: Anatomy) -> float:
    """The share of the tensor cores' peak that a compiled configuration should reach, from 0 to 1."""
    c = configuration
    down, across = math.ceil(problem.m / c["BLOCK_M"]), math.ceil(problem.n / c["BLOCK_N"])
    tiles, room = down * across, machine.sms * kernel.occupancy.blocks
    wave = min(room, tiles)  # programs that run at once
    rows = min(c["GROUP_M"], down, wave)
    columns = min(across, wave / rows)
    resident = math.ceil(wave / machine.sms)  # of an SM, whose rates they share
    multiply = resident * 2 * c["BLOCK_M"] * c["BLOCK_N"] * c["BLOCK_K"] / FLOPS_A_CYCLE  # cycles of a step in k
    row_bytes, column_bytes = (c[side] * c["BLOCK_K"] * ITEM_BYTES for side in ("BLOCK_M", "BLOCK_N"))
    others = (
        resident * (row_bytes + column_bytes) / L2_BYTES_A_CYCLE,
        resident * (rows * row_bytes + columns * column_bytes) / (rows * columns) / DRAM_BYTES_A_CYCLE,
        LATENCY_CYCLES / (c["STAGES"] - 1),
    )
    step = sum(cycles**4 for cycles in (multiply, *others)) ** 0.25  # the longest, and a little for those near it
    last_wave = tiles / room / math.ceil(tiles / room)
    at_edges = problem.m * problem.n / (tiles * c["BLOCK_M"] * c["BLOCK_N"])
    steps = math.ceil(problem.k / c["BLOCK_K"]) + c["STAGES"] - 1  # the pipeline fills before it multiplies
    once = resident * kernel.instructions * c["WARPS"] / PARTS  # cycles to issue all instructions once
    busy = problem.k / c["BLOCK_K"] * multiply / (steps * step + once)
    return busy * last_wave * at_edges * (1 - kernel.spills / kernel.instructions)


def examined(
    problem: Problem, configurations: list[Configuration], machine: Machine, generation: int, tell: Tell
) -> list[Trial]:
    """A trial for each configuration, compiled on all cores. If a compiler dies, one configuration is blamed for it."""
    done: dict[str, Trial] = {}
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    forkserver.start({})
    while left := [each for each in configurations if name_of(each) not in done]:
        with ProcessPoolExecutor(workers, mp_context=forkserver.context) as pool:
            try:
                for future in as_completed([pool.submit(examine, problem, each, machine, generation) for each in left]):
                    done[future.result().name] = future.result()
                    tell("compiling", len(done) / len(configurations))
            except BrokenProcessPool:
                if workers == 1:  # it takes them in order, and has died of the first that is not done
                    first = next(each for each in left if name_of(each) not in done)
                    done[name_of(first)] = Trial(first, generation, NO_COMPILE, "the compiler died")
                workers = 1
            except UserError:
                pool.shutdown(cancel_futures=True)
                raise
    return [done[name_of(each)] for each in configurations]
