"""The contract of one file of a pair, checked on its syntax tree without an import. CONTRIBUTING.md explains it."""

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from common.pairs.lessons import FILE as LESSONS
from common.pairs.lessons import with_sweeps
from common.pairs.syntax import (
    ContractError,
    assigned_names,
    imported_modules,
    imported_names,
    nearest,
    nodes,
    parse,
    require_of,
    with_helpers,
)

LIBRARY_KINDS = ("library", "yardstick")  # functions of a version that are also timed
FUNCTIONS = ("inputs", "run", "setup", "reference", "library", "cost")
CONSTANTS = ("SIZES", "CLOCK", "DEVICE", "REQUIRES", "PRECISION", "TOLERANCE", "VERSUS", "LIBRARY_DIFFERS", "SPILLS",
             "STRESS", "STRUCTURE", "RANKS", "NO_GRADIENTS", "NARROW_WEIGHTS", "LIBRARY_NEEDS")  # fmt: skip
REASONS = {  # constants that hold one
    "NO_GRADIENTS": "gradients are no part of the answer",
    "NARROW_WEIGHTS": "weights cannot all be in float64 at once",
}
PLACE = {"rank", "ranks"}  # parameters of `inputs` in a pair with RANKS: this process, and how many there are
DRAWS = (  # of common.checks.stress, named without torch; a STRESS leaves some of them out
    "arrays with gaps", "arrays with wide gaps", "values around 100", "values around 10,000", "values around 0.001",
    "values near -100", "zeros", "a constant", "halves of opposite sign", "-0.0 and denormals", "-inf", "NaN",
    "arrays of one sign", "the largest integers", "the smallest integers", "arrays with gaps in rows",
    "arrays with gaps in middle axes", "transposed arrays", "expanded arrays", "offsets beyond 32 bits",
)  # fmt: skip
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
SIZE_NAMES = {"check": "check", "cheque": "check", "cpu": "cpu", "count": "count", "default": "default",
              "tuned": "tuned"}  # fmt: skip  # read: meant
CLOSE = 0.82  # difflib's ratio from which a name is a misspelt one: sizes and helpers may have names of their own
KERNEL_MAKERS = ("RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel", "jit")
GLUON = "triton.experimental.gluon"
Require = Callable[[bool, str], None]  # (condition, the problem to report if it does not hold)
_names = cache(lambda tree: {getattr(node, "attr", None) or getattr(node, "id", "") for node in nodes(tree)})
OPTIONAL = {"cupy", "triton", *sys.stdlib_module_names}  # what a machine may lack: a pair that needs it is skipped
KINDS = ("baseline", "optimized")


@dataclass(frozen=True)
class Version:
    """One file of a pair, as read from its syntax tree."""

    path: Path
    label: str  # baseline, optimized, optimized/<variant>
    summary: str  # first line of the docstring
    functions: dict[str, tuple[str, ...]]  # name -> parameters
    constants: dict[str, Any]  # the contract's constants
    imports: frozenset[str]  # top-level modules, also those of its chapter's helpers; without those of LIBRARY_NEEDS
    has_kernel: bool  # in its own file or in its chapter's helpers
    is_gluon: bool  # it or a helper uses Gluon, which runs on a GPU only

    @property
    def versus(self) -> str | None:
        """The label of the earlier variant that this one is also compared with."""
        suffix = self.constants.get("VERSUS")
        return None if suffix is None else f"optimized/{suffix}".rstrip("/")

    @property
    def needs_cuda(self) -> bool:
        return self.is_gluon or self.constants.get("DEVICE") == "cuda"

    def capability_needed(self, capability: tuple[int, int]) -> str:
        """What it needs, in words, if a GPU of this compute capability cannot run it; else empty."""
        wanted = self.constants.get("REQUIRES", {})
        least, is_exact = wanted.get("capability", (0, 0)), wanted.get("exact", False)
        fits = capability == least if is_exact else capability >= least
        return "" if fits else f"needs compute capability {self.capability_said}"

    @property
    def capability_said(self) -> str:
        """The compute capability that it asks for, in words."""
        wanted = self.constants.get("REQUIRES", {})
        return f"{'.'.join(map(str, wanted['capability']))}{' and no other' * ('exact' in wanted)}"


def is_inherited(name: str) -> bool:
    """Whether a variant that has no function or constant of this name has its baseline's."""
    return (
        name in ("SIZES", "reference", "cost", "LIBRARY_DIFFERS", "LIBRARY_NEEDS")
        or name.split("_")[0] in LIBRARY_KINDS
    )


def read_version(path: Path, label: str, sizes: Any = None) -> Version:
    """Read a file. `sizes`: of a variant, all of its baseline; of a baseline, those in lessons.toml.

    Raises ContractError.
    """
    tree = parse(path)
    require = partial(require_of, path)
    functions = {node.name: _parameters(node.args) for node in tree.body if isinstance(node, ast.FunctionDef)}
    assignments = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    assigned = {name: node for node in assignments for name in assigned_names(node)}
    _check_names(require, [*functions, *assigned])
    constants = {name: _literal(path, name, node) for name, node in assigned.items() if name in CONSTANTS}
    trees = with_helpers(path).values()
    imports = frozenset(name for part in trees for name in imported_modules(part))
    doc = ast.get_docstring(tree) or ""
    require(bool(doc), "has no docstring: its first line says what it does, how, and the consequence in units")
    _require_function(require, tree, functions, "inputs", "add inputs(<sizes>, device)")
    _require_function(require, tree, functions, "run", "add run(**inputs), the timed work")
    require("device" in functions["inputs"], '`inputs` takes no `device`: add device="cuda" as its last parameter')
    if label != "baseline":
        of_file = constants.setdefault("SIZES", sizes)
        require(sizes is None or of_file == sizes, "SIZES stand in the baseline only: remove them here")
    _check_sizes(require, constants.get("SIZES"), functions["inputs"])
    if label == "baseline" and sizes:
        constants["SIZES"] = with_sweeps(path, constants["SIZES"], sizes)
        _check_sizes(partial(_require_lesson, path), constants["SIZES"], functions["inputs"])
    _check_constants(require, constants)
    needs = constants.get("LIBRARY_NEEDS", {})
    names_known = isinstance(needs, dict) and needs.keys() <= functions.keys() and {*needs.values()} <= imports
    require(names_known, 'LIBRARY_NEEDS must be {"library_<label>": package}, of a function and an import of this file')
    require(label != "baseline" or "STRESS" not in constants, "has STRESS: move it to the variant that it is for")
    for name in ("NO_GRADIENTS", "NARROW_WEIGHTS", "STRUCTURE"):
        require(label == "baseline" or name not in constants, f"has {name}: move it to the baseline")
    own_prefix = f"optimized_{path.stem.partition('_')[2].removesuffix(label.partition('/')[2]).rstrip('_')}_"
    wrong = {
        name for name in imports if re.fullmatch(r"common|ch\d+|baseline_.*", name) or f"{name}_".startswith(own_prefix)
    }
    fix = "a pair may import libraries, its chapter's helpers and optimized versions of other pairs"
    require(not wrong, f"imports {_name_list(wrong)}: {fix}")
    parameters = {name: tuple(defaults) for name, defaults in functions.items()}
    makes = any(not _names(part).isdisjoint(KERNEL_MAKERS) for part in trees)
    is_gluon = any(name.startswith(GLUON) for part in trees for name in imported_names(part))
    imports -= {*needs.values()}
    return Version(path, label, doc.splitlines()[0], parameters, constants, imports, makes, is_gluon)


def _parameters(args: ast.arguments) -> dict[str, bool]:
    """Parameter -> whether it has a default, in their order."""
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults + args.kw_defaults
    named = zip([*positional, *args.kwonlyargs], defaults, strict=True)
    return {arg.arg: default is not None for arg, default in named}


def _literal(path: Path, name: str, node: ast.Assign | ast.AnnAssign) -> Any:
    try:
        return ast.literal_eval(node.value or ast.Constant(None))
    except (ValueError, TypeError):
        raise ContractError(f"{path}:{node.lineno}: {name} must be a literal: it is read without importing") from None


def _check_names(require: Require, names: list[str]) -> None:
    """Names close to a known one are refused: a misspelt name would have no effect."""
    for name in names:
        public = FUNCTIONS if name.islower() else CONSTANTS
        if name not in public and not name.startswith(("library_", "yardstick_", "_")):
            meant = nearest(name, public, CLOSE)
            require(not meant or meant in names, f"defines `{name}`: did you mean `{meant}`?")


def _require_function(require: Require, tree: ast.Module, functions: Iterable[str], name: str, fix: str) -> None:
    """Says how else the file defines this name, or which of its functions has nearly this name."""
    aliases = [alias for node in tree.body for alias in getattr(node, "names", [])]  # of imports
    otherwise = {getattr(node, "asname", None) or getattr(node, "name", "") for node in [*tree.body, *aliases]}
    if name in otherwise.union(*map(assigned_names, tree.body)):
        fix = "write it in this file as a plain `def`"
    elif near := nearest(name, tuple(functions)):
        fix = f"rename `{near}`, or {fix}"
    require(name in functions, f"has no function `{name}`: {fix}")


def _require_lesson(baseline: Path, condition: bool, problem: str) -> None:
    require_of(baseline.with_name(LESSONS), condition, f"{baseline.stem.removeprefix('baseline_')}: {problem}")


def _check_sizes(require: Require, sizes: Any, parameters: dict[str, bool]) -> None:
    """SIZES maps names to arguments of `inputs`, which must include every parameter without a default."""
    require(isinstance(sizes, dict) and bool(sizes), 'needs a dict SIZES = {"check": {...}, "default": {...}}')
    accepted = parameters.keys() - {"device"} - (PLACE if parameters.keys() >= PLACE else set())
    needed = {name for name in accepted if not parameters[name]}
    for size, arguments in sizes.items():
        require(isinstance(size, str), f"SIZES has a name that is not a string: {size!r}")
        require(isinstance(arguments, dict), f"SIZES[{size!r}] must be a dict of arguments of `inputs`")
        first = size.split("/")[0]
        meant = SIZE_NAMES.get(nearest(first.lower(), tuple(SIZE_NAMES), CLOSE), first)
        require(first == meant, f"SIZES has {size!r}: did you mean {size.replace(first, meant, 1)!r}?")
        unknown, missing = set(arguments) - accepted, needed - set(arguments)
        require(not unknown, f"SIZES[{size!r}] names {_name_list(unknown)}, which `inputs` does not take as a size")
        require(not missing, f"SIZES[{size!r}] lacks {_name_list(missing)}, which `inputs` needs")
    has_check = any(size.split("/")[0] == "check" for size in sizes)
    require(has_check, 'SIZES has no "check": add a small, odd size for correctness')
    require("default" in sizes, 'SIZES has no "default": add the size that is timed')
    parts = any(size.startswith("count/") for size in sizes)
    require(not parts, 'SIZES has parts of "count": it is a single size, at which `--count` counts memory traffic')


def _check_constants(require: Require, constants: dict[str, Any]) -> None:
    require(constants.get("CLOCK", "wall") in ("device", "wall"), 'CLOCK must be "device" or "wall"')
    require(constants.get("DEVICE", "cuda") == "cuda", 'DEVICE must be "cuda" (leave it out for any device)')
    require(constants.get("PRECISION", "fp32") in PRECISIONS, f"PRECISION must be one of {', '.join(PRECISIONS)}")
    for name, what in REASONS.items():
        reason = constants.get(name, "why")
        require(isinstance(reason, str) and bool(reason), f"{name} must say why {what}")
    stress = constants.get("STRESS", {})
    reasons_given = isinstance(stress, dict) and all(isinstance(why, str) and why for why in stress.values())
    require(
        reasons_given and set(stress) <= set(DRAWS),
        f"STRESS must be {{draw: why it is left out}}, of {', '.join(DRAWS)}",
    )
    structure = constants.get("STRUCTURE", {})
    reasons_given = isinstance(structure, dict) and all(isinstance(what, str) and what for what in structure.values())
    require(reasons_given, 'STRUCTURE must be {input: its structure}, as in {"keys": "sorted"}')
    wanted = constants.get("REQUIRES", {})
    keys_known = isinstance(wanted, dict) and set(wanted) <= {"capability", "exact", "gpus"}
    require(keys_known, 'REQUIRES must be a dict with only "capability", "exact" and "gpus"')
    capability = wanted.get("capability", (0, 0))
    two = isinstance(capability, tuple) and [type(part) for part in capability] == [int, int]
    require(two, 'REQUIRES["capability"] must be two integers, as in (9, 0)')
    exact = wanted.get("exact", True) is True and ("exact" not in wanted or "capability" in wanted)
    require(exact, 'REQUIRES["exact"] must be True, beside a "capability"')
    require(type(wanted.get("gpus", 1)) is int, 'REQUIRES["gpus"] must be an integer')
    ranks = constants.get("RANKS", 2)
    require(type(ranks) is int and ranks >= 2, "RANKS must be an integer, at least 2: the fewest processes it needs")
    tolerance = constants.get("TOLERANCE", (0.0, 0.0))
    two = isinstance(tolerance, tuple) and [type(part) in (int, float) for part in tolerance] == [True, True]
    fits = two and all(0 <= part <= sys.float_info.max for part in tolerance)
    require(fits, "TOLERANCE must be (rtol, atol), both finite and at least 0")


def require_ranks(first: Version, others: list[Version]) -> None:
    """Raises ContractError unless a baseline with RANKS has all that its processes need, and no other version RANKS."""
    is_many = "RANKS" in first.constants
    for version in (first, *others):
        takes = set(version.functions["inputs"]) >= PLACE
        fix = "add rank, ranks before device" if is_many else "add RANKS to the baseline, or rename rank and ranks"
        require_of(version.path, takes == is_many, f"RANKS and the parameters of `inputs` do not fit: {fix}")
        require_of(version.path, version is first or "RANKS" not in version.constants, "has RANKS: remove it here")
    fix = "add one, which computes the answers of all ranks in one process"
    require_of(first.path, not is_many or "reference" in first.functions, f"has RANKS and no `reference`: {fix}")


def _name_list(names: set[Any]) -> str:
    return ", ".join(sorted(map(str, names)))


def require_names(folder: Path, names: Iterable[str]) -> None:
    """Raises ContractError for a file whose name is nearly that of a version: `optimised_x.py`, `x_optimized.py`.

    `names`: of the folder's pairs. Other files may be named as they like. Without any pair every such file is refused.
    """
    prefixes = [f"{name}_" for name in names]
    for path in sorted(folder.iterdir()):
        stem, _, ending = path.name.lower().replace("-", "_").rpartition(".")
        first, last = stem.partition("_"), stem.rpartition("_")
        for kind, rest in ((first[0], first[2]), (last[2], last[0])):
            if ending == "py" and rest and (meant := nearest(kind, KINDS, 0.8)):
                is_ours = not prefixes or any(f"{rest}_".startswith(n) or n.startswith(f"{rest}_") for n in prefixes)
                right = f"{meant}_{rest}.py"
                fix = f"is not read as a version: rename it to {right}, or remove it"
                require_of(path, path.name == right or not is_ours, fix)


def absent_modules(version: Version, find: Callable[[str], Any] | None = None) -> list[str]:
    """The modules that it imports and that are neither in its folder nor installed. `find`: a cache of find_spec."""
    folder = version.path.parent
    names = [name for name in sorted(version.imports) if not (find or importlib.util.find_spec)(name)]
    return [name for name in names if not (folder / f"{name}.py").exists() and not (folder / name).is_dir()]


def require_modules(version: Version, chapters: Iterable[Path], find: Callable[[str], Any]) -> None:
    """Raises ContractError for a helper that was not copied from a chapter, and for a module that is nowhere."""
    for name in absent_modules(version, find):
        if homes := [folder for folder in chapters if (folder / f"{name}.py").exists() or (folder / name).is_dir()]:
            sources = [folder for folder in homes if (folder / version.path.name).exists()] or homes
            file = name if (sources[0] / name).is_dir() else f"{name}.py"
            fix = f"copy it from {' or '.join(f'{folder.name}/' for folder in sources)}"
            raise ContractError(f"{version.path}: needs {file} beside it: {fix}")
        path = next(path for path, tree in with_helpers(version.path).items() if name in imported_modules(tree))
        problem = f"imports {name}: there is no {name}.py in this folder, and no package of that name is installed"
        require_of(path, name in OPTIONAL, f"{problem}: add the file or correct the name")
