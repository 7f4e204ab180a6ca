"""What tune.py does: a search, or what is asked for instead of one; returns the exit status."""

import argparse
import sys
from pathlib import Path

import gemm
import msgspec

from common.isolation.worker import ChildFailed
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.pair import ROOT
from common.pairs.user_error import UserError
from common.record.files import check_writable, file_errors, make_folder, note_errors
from common.show.console import make_console, print_wrapped
from common.xray.occupancy import MACHINES
from search import history, show, sweeps
from search.examine import Bar
from search.generations import GENERATION, Bench, search
from search.history import About
from search.measure import machine_of
from search.model import Model
from search.proposers import SEEDED, Proposer, ProposerError
from search.space import Problem, Space, brief

ARCHITECTURE = "sm_90"  # of the proxy, unless another is asked for
SWEPT = 24  # at once in an exhaustive search: all cores compile, and of a round all answers are in memory


def run(args: argparse.Namespace, bar: Bar) -> int:
    """Raises UserError, KeyboardInterrupt."""
    try:
        if args.compare:
            return sweeps.compare(*map(history.read, args.compare), args.device, bar)
        if args.replay:
            return sweeps.replay(history.read(args.replay), args, bar)
        return load(args, bar) if args.load else tune(args, bar)
    except ChildFailed as death:
        print(f"tune.py: {death}", file=sys.stderr)
        return 1


def setting(args: argparse.Namespace) -> tuple[Bench, Space]:
    """On a GPU, or for a machine whose code is only compiled. Raises UserError, ChildFailed."""
    problem = Problem(*args.problem, args.dtype, args.activation)
    device = "cpu" if args.arch else args.device or default_device()
    if device == "cpu":
        device, machine = "", MACHINES[args.arch or ARCHITECTURE]
    else:
        survey_apart(device)  # says in one line what is wrong with it
        machine = machine_of(device)
    space = Space.of(problem, machine)
    return Bench(problem, machine, space.nearest(gemm.DEFAULT), device, args.seed), space


def about_of(bench: Bench, who: str) -> About:
    """The first line of a history."""
    known = versions() if bench.device else {}
    used = {name: known[name] for name in ("torch", "triton") if name in known}
    searched = "time" if bench.device else "proxy"
    return About(searched, bench.problem, bench.machine, bench.default, who, bench.seed, used)


def tune(args: argparse.Namespace, bar: Bar) -> int:
    for path in filter(None, (args.export, args.plot)):
        check_writable(path)
    bench, space = setting(args)
    name, problem, valid = bench.machine.name, bench.problem, len(space.valid)
    who = "exhaustive" if args.exhaustive else args.proposer
    proposer: Proposer = SEEDED[who](space, args.seed) if who in SEEDED else Model(space, f"{problem} on {name}")
    about = about_of(bench, who)
    kept = history.opened(args.history or path_of(about), about)
    before, console, problems = len(kept.trials), make_console(), list[str]()
    where = f"on {name}" if bench.device else f"for {name}: no GPU is timed, the score is a proxy (X-ray)"
    print_wrapped(f"searching {problem} {where}", console)
    on = f", going on after {before}" if before else ""
    print_wrapped(f"{valid} configurations, history: {kept.path}{on}", console)
    most = valid if args.exhaustive else min(valid, args.evaluations or valid // 10)
    size = SWEPT if args.exhaustive else GENERATION
    try:
        with note_errors(problems):
            with bar() as tell:
                search(kept, space, proposer, bench.score, bench.default, most, args.budget, tell, size)
            if bench.device and kept.measured and (len(kept.trials) > before or not kept.final):
                with bar() as tell:
                    kept.add(*bench.final(kept, tell))
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
        for path, make in ((args.export, show.export), (args.plot, show.plot)):
            if path:
                make(kept, path)
                print(f"written: {path}")


def path_of(about: About) -> Path:
    """The path of a history, if no other is given."""
    folder = ROOT / "results" / "ch4"
    make_folder(folder)
    p, machine = about.problem, about.machine.name.lower().replace(" ", "_")
    shape = f"{p.m}x{p.n}x{p.k}_{p.dtype}_{p.activation}"
    return folder / f"tune_{machine}_{about.searched}_{shape}_{about.proposer}_{about.seed}.jsonl"


def load(args: argparse.Namespace, bar: Bar) -> int:
    """Time an exported configuration. Raises UserError."""
    bench, space = setting(args)
    with file_errors(args.load, "read"):
        text = args.load.read_bytes()
    try:
        best = msgspec.json.decode(text, type=show.Best)
    except msgspec.MsgspecError as error:
        raise UserError(f"--load {args.load}: no exported configuration ({error})") from None
    if why := space.problem_with(best.configuration):
        raise UserError(f"--load {args.load}: {why}")
    kept, console = history.History(about_of(bench, "")), make_console()
    where = f"{'on' if bench.device else 'by the proxy for'} {bench.machine.name}"
    elsewhere = "" if best.problem in (None, bench.problem) else f"; it was found for {best.problem}"
    print_wrapped(brief(best.configuration), console)
    print_wrapped(f"beside the default at {bench.problem} {where}{elsewhere}", console)
    both = [bench.default] + [best.configuration] * (best.configuration != bench.default)
    with bar() as tell:
        kept.add(*bench.score(both, 0, tell))
    show.print_report(kept, space, console)
    return 1 if kept.failures else 0
