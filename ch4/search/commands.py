"""What tune.py does: a search, or one of the things instead of it; returns the exit status."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gemm

from common.isolation.process import Death
from common.machine.device import default_device, device_named
from common.machine.survey import survey_apart
from common.pairs.contract import OneLine
from common.pairs.pair import ROOT
from common.record.files import check_writable, noting
from common.show.console import make_console
from common.show.plot import save
from common.xray.occupancy import MACHINES, Machine
from search import generations, history, show, sweeps
from search.generations import Bench, Gpu, Proxy, search
from search.history import History
from search.measure import machine_of
from search.model import Model
from search.proposers import SEEDED, Proposer, ProposerError
from search.space import Configuration, Problem, Space, brief

ARCHITECTURE = "sm_90"  # of the proxy, unless another is asked for
SWEPT = 96  # at once in an exhaustive search: all cores compile
Tell = Callable[[str, float], None]


def run(args: argparse.Namespace, tell: Tell) -> int:
    """Raises OneLine, KeyboardInterrupt."""
    try:
        if args.compare:
            found, sweep = map(history.read, args.compare)
            return sweeps.compare(found, sweep, args.device, tell)
        if args.replay:
            return sweeps.replay(history.read(args.replay), args, tell)
        if args.load:
            return load(args, tell)
        return tune(args, tell)
    except Death as death:
        print(f"tune.py: {death}", file=sys.stderr)
        return 1


def problem_of(args: argparse.Namespace) -> Problem:
    m, n, k = args.problem
    return Problem(m, n, k, args.dtype, args.activation)


def bench_of(problem: Problem, machine: Machine, device: str, default: Configuration, seed: int) -> Bench:
    return Gpu(problem, machine, device, default, seed) if device else Proxy(problem, machine)


def place(args: argparse.Namespace) -> tuple[Machine, str, dict[str, Any]]:
    """(machine, device, versions): a GPU; or a machine to be X-rayed for, without device. Raises OneLine, Death."""
    device = "cpu" if args.arch else args.device or default_device()
    if device == "cpu":
        name = args.arch or ARCHITECTURE
        if name not in MACHINES:
            raise OneLine(f"--arch {name}: one of {', '.join(MACHINES)}")
        return MACHINES[name], "", {}
    survey_apart(device, with_limits=False)  # says in one line what is wrong with it
    machine, versions = machine_of(device_named(device))
    return machine, device, versions


def tune(args: argparse.Namespace, tell: Tell) -> int:
    for path in filter(None, (args.export, args.plot)):
        check_writable(path)
    problem = problem_of(args)
    machine, device, versions = place(args)
    console, space = make_console(), Space.of(problem, machine)
    default = space.nearest(gemm.DEFAULT)
    who = "exhaustive" if args.exhaustive else args.proposer
    proposer: Proposer = (
        SEEDED[who](space, args.seed) if who in SEEDED else Model(space, f"{problem} on {machine.name}")
    )
    about = {
        "schema": history.SCHEMA, "searched": "time" if device else "proxy", "problem": asdict(problem),
        "machine": asdict(machine), "versions": versions, "default": default, "proposer": who, "seed": args.seed,
    }  # fmt: skip
    about = json.loads(json.dumps(about))  # as it is read again
    kept = history.opened(args.history or path_of(about), about)
    bench = bench_of(problem, machine, device, default, args.seed)
    where = f"on {machine.name}" if device else f"for {machine.name}: no GPU is timed, the score is a proxy (X-ray)"
    on = f", going on after {len(kept.trials)}" if kept.trials else ""
    first = f"searching {problem} {where}\n{len(space.valid)} configurations, history: {kept.path}{on}"
    console.print(first, markup=False, soft_wrap=True)
    most = len(space.valid) if args.exhaustive else min(len(space.valid), args.evaluations or len(space.valid) // 10)
    problems: list[str] = []
    size = SWEPT if args.exhaustive else generations.GENERATION
    try:
        before = len(kept.trials)
        search(kept, space, proposer, bench, default, most, args.budget, tell, size)
        if isinstance(bench, Gpu) and kept.measured and (len(kept.trials) > before or not kept.final):
            kept.conclude(bench.final(kept, tell))
    except ProposerError as error:
        problems.append(str(error))
    show.print_report(kept, space, console)
    if not kept.measured:
        problems.append("no configuration could be measured")
    with noting(problems):
        if kept.measured:
            if args.export:
                show.export(kept, args.export)
                print(f"written: {args.export}")
            if args.plot:
                save(show.figure(kept), args.plot)
                print(f"written: {args.plot}")
    for line in problems:
        print(f"tune.py: {line}", file=sys.stderr)
    return 1 if problems else 0


def path_of(about: dict[str, Any]) -> Path:
    """Where a history lies unless another place is named."""
    folder = ROOT / "results" / "ch4"
    folder.mkdir(parents=True, exist_ok=True)
    p, machine = about["problem"], about["machine"]["name"].lower().replace(" ", "_")
    shape = f"{p['m']}x{p['n']}x{p['k']}_{p['dtype']}_{p['activation']}"
    return folder / f"tune_{machine}_{about['searched']}_{shape}_{about['proposer']}_{about['seed']}.jsonl"


def load(args: argparse.Namespace, tell: Tell) -> int:
    """Time an exported configuration. Raises OneLine."""
    problem = problem_of(args)
    machine, device, _ = place(args)
    space = Space.of(problem, machine)
    try:
        configuration = gemm.load(args.load)
        found_for = json.loads(args.load.read_text(encoding="utf-8")).get("problem") or asdict(problem)
        elsewhere = "" if found_for == asdict(problem) else f"; it was found for {Problem(**found_for)}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OneLine(f"--load {args.load}: no exported configuration ({error})") from None
    if why := space.problem_with(configuration):
        raise OneLine(f"--load {args.load}: {why}")
    kept = History({"searched": "time" if device else "proxy", "problem": asdict(problem), "machine": asdict(machine)})
    default = space.nearest(gemm.DEFAULT)
    bench = bench_of(problem, machine, device, default, args.seed)
    where = f"on {machine.name}" if device else f"for {machine.name}, by the proxy"
    print(f"{brief(configuration)}\nbeside the default at {problem} {where}{elsewhere}")
    kept.add(*bench.score([default] if configuration == default else [default, configuration], 0, tell))
    show.print_report(kept, space, make_console())
    return 1 if kept.failures else 0
