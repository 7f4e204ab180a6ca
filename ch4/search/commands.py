"""What tune.py does: a search, or what is asked for instead of one; returns the exit status."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gemm

from common.isolation.worker import ChildFailed
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.pair import ROOT
from common.pairs.user_error import UserError
from common.record.files import check_writable, note_errors
from common.show.console import make_console, print_wrapped
from common.show.plot import save
from common.xray.occupancy import MACHINES
from search import history, show, sweeps
from search.examine import Bar
from search.generations import GENERATION, Gpu, Proxy, search
from search.measure import machine_of
from search.model import Model
from search.proposers import SEEDED, Proposer, ProposerError
from search.space import Configuration, Problem, Space, brief

ARCHITECTURE = "sm_90"  # of the proxy, unless another is asked for
SWEPT = 24  # at once in an exhaustive search: all cores compile, and of a round all answers are in memory


def run(args: argparse.Namespace, bar: Bar) -> int:
    """Raises UserError, KeyboardInterrupt."""
    try:
        if args.compare:
            found, sweep = map(history.read, args.compare)
            return sweeps.compare(found, sweep, args.device, bar)
        if args.replay:
            return sweeps.replay(history.read(args.replay), args, bar)
        if args.load:
            return load(args, bar)
        return tune(args, bar)
    except ChildFailed as death:
        print(f"tune.py: {death}", file=sys.stderr)
        return 1


def setting(args: argparse.Namespace) -> tuple[Gpu | Proxy, Space, Configuration]:
    """(bench, space, default) on a GPU, or for a machine whose code is only compiled. Raises UserError, ChildFailed."""
    problem = Problem(*args.problem, args.dtype, args.activation)
    device = "cpu" if args.arch else args.device or default_device()
    if device == "cpu":
        if (name := args.arch or ARCHITECTURE) not in MACHINES:
            raise UserError(f"--arch {name}: one of {', '.join(MACHINES)}")
        space = Space.of(problem, MACHINES[name])
        return Proxy(problem, MACHINES[name]), space, space.nearest(gemm.DEFAULT)
    survey_apart(device)  # says in one line what is wrong with it
    machine = machine_of(device)
    space = Space.of(problem, machine)
    default = space.nearest(gemm.DEFAULT)
    return Gpu(problem, machine, device, default, args.seed), space, default


def about_of(bench: Gpu | Proxy, default: Configuration, who: str, seed: int) -> dict[str, Any]:
    """The first line of a history."""
    found = versions() if isinstance(bench, Gpu) else {}
    about = {
        "schema": history.SCHEMA, "searched": "time" if isinstance(bench, Gpu) else "proxy",
        "problem": asdict(bench.problem), "machine": asdict(bench.machine),
        "versions": {name: found[name] for name in ("torch", "triton") if name in found},
        "default": default, "proposer": who, "seed": seed,
    }  # fmt: skip
    return dict(json.loads(json.dumps(about)))


def tune(args: argparse.Namespace, bar: Bar) -> int:
    for path in filter(None, (args.export, args.plot)):
        check_writable(path)
    bench, space, default = setting(args)
    name, problem, valid = bench.machine.name, bench.problem, len(space.valid)
    who = "exhaustive" if args.exhaustive else args.proposer
    proposer: Proposer = SEEDED[who](space, args.seed) if who in SEEDED else Model(space, f"{problem} on {name}")
    about = about_of(bench, default, who, args.seed)
    kept = history.opened(args.history or path_of(about), about)
    where = f"on {name}" if isinstance(bench, Gpu) else f"for {name}: no GPU is timed, the score is a proxy (X-ray)"
    on = f", going on after {len(kept.trials)}" if kept.trials else ""
    console = make_console()
    print_wrapped(f"searching {problem} {where}", console)
    print_wrapped(f"{valid} configurations, history: {kept.path}{on}", console)
    most = valid if args.exhaustive else min(valid, args.evaluations or valid // 10)
    size = SWEPT if args.exhaustive else GENERATION
    problems: list[str] = []
    before = len(kept.trials)
    try:
        with note_errors(problems):
            with bar() as tell:
                search(kept, space, proposer, bench, default, most, args.budget, tell, size)
            if isinstance(bench, Gpu) and kept.measured and (len(kept.trials) > before or not kept.final):
                with bar() as tell:
                    kept.conclude(bench.final(kept, tell))
    except ProposerError as error:
        problems.append(str(error))
    show.print_report(kept, space, console)
    if kept.measured:
        write(kept, args, problems)
    else:
        problems.append("no configuration could be measured")
    for line in problems:
        print(f"tune.py: {line}", file=sys.stderr)
    return 1 if problems else 0


def write(kept: history.History, args: argparse.Namespace, problems: list[str]) -> None:
    """Write the files that were asked for besides the report."""
    with note_errors(problems):
        if args.export:
            show.export(kept, args.export)
            print(f"written: {args.export}")
        if args.plot:
            save(show.figure(kept), args.plot)
            print(f"written: {args.plot}")


def path_of(about: dict[str, Any]) -> Path:
    """The path of a history, if no other is given."""
    folder = ROOT / "results" / "ch4"
    folder.mkdir(parents=True, exist_ok=True)
    p, machine = about["problem"], about["machine"]["name"].lower().replace(" ", "_")
    shape = f"{p['m']}x{p['n']}x{p['k']}_{p['dtype']}_{p['activation']}"
    return folder / f"tune_{machine}_{about['searched']}_{shape}_{about['proposer']}_{about['seed']}.jsonl"


def load(args: argparse.Namespace, bar: Bar) -> int:
    """Time an exported configuration. Raises UserError."""
    bench, space, default = setting(args)
    problem, where = bench.problem, f"{'on' if isinstance(bench, Gpu) else 'by the proxy for'} {bench.machine.name}"
    try:
        configuration = gemm.load(args.load)
        found_for = json.loads(args.load.read_text(encoding="utf-8")).get("problem") or asdict(problem)
        elsewhere = "" if found_for == asdict(problem) else f"; it was found for {Problem(**found_for)}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--load {args.load}: no exported configuration ({error})") from None
    if why := space.problem_with(configuration):
        raise UserError(f"--load {args.load}: {why}")
    kept = history.History(about_of(bench, default, "", args.seed))
    console = make_console()
    print_wrapped(brief(configuration), console)
    print_wrapped(f"beside the default at {problem} {where}{elsewhere}", console)
    with bar() as tell:
        kept.add(*bench.score([default] if configuration == default else [default, configuration], 0, tell))
    show.print_report(kept, space, console)
    return 1 if kept.failures else 0
