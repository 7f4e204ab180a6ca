"""The contract of one file of a pair, checked by reading its syntax tree: nothing is imported. CONTRIBUTING.md has it in words."""

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FUNCTIONS = ("inputs", "run", "setup", "reference", "library", "cost")
CONSTANTS = ("SIZES", "CLOCK", "DEVICE", "REQUIRES", "PRECISION", "TOLERANCE", "VERSUS", "LIBRARY_DIFFERS")
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8")
KERNEL_MAKERS = ("RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel", "jit")


class OneLine(Exception):
    """Bad input of any kind; str() is the one line that its user reads."""


class ContractError(OneLine):
    """A file that breaks the contract: file, what is wrong, the fix."""


@dataclass(frozen=True)
class Half:
    """One file of a pair, as read from its syntax tree."""

    path: Path
    label: str  # baseline, optimized, optimized/<variant>
    summary: str  # first line of the docstring
    functions: dict[str, tuple[str, ...]]  # name -> parameters
    constants: dict[str, Any]  # the contract's constants
    imports: frozenset[str]  # top-level modules, its chapter's helpers' too
    has_kernel: bool

    @property
    def needs_cuda(self) -> bool:
        return self.constants.get("DEVICE") == "cuda"


def read_half(path: Path, label: str) -> Half:
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise ContractError(
            f"{path}:{getattr(error, 'lineno', None) or 0}: syntax error: {getattr(error, 'msg', error)}"
        ) from None
    functions = {
        node.name: tuple(arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    constants = dict(_constants(path, tree))
    _check_names(path, [*functions, *_assigned(tree)])
    imports = frozenset(_all_imports(path, tree))
    _check_half(path, ast.get_docstring(tree), functions, constants, imports)
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    summary = (ast.get_docstring(tree) or "").splitlines()[0]
    return Half(path, label, summary, functions, constants, imports, not names.isdisjoint(KERNEL_MAKERS))


def _assigned(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _constants(path: Path, tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (target.id for target in targets if isinstance(target, ast.Name) and target.id in CONSTANTS):
                try:
                    yield name, ast.literal_eval(node.value) if node.value else None
                except ValueError:
                    raise ContractError(
                        f"{path}:{node.lineno}: {name} must be a literal: it is read without importing the file"
                    ) from None


def _check_names(path: Path, names: list[str]) -> None:
    """A misspelt name would be ignored in silence."""
    for name in names:
        public = FUNCTIONS if name.islower() else CONSTANTS
        if name in public or name.startswith(("library_", "_")):
            continue
        for meant in difflib.get_close_matches(name, public, n=1, cutoff=0.8):
            if meant not in names:
                raise ContractError(f"{path}: defines `{name}`: did you mean `{meant}`?")


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _all_imports(path: Path, tree: ast.Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """What a file imports, and what the helpers beside it import."""
    for name in set(imported_modules(tree)) - seen:
        yield name
        helper = path.with_name(f"{name}.py")
        if helper.exists():
            yield from _all_imports(helper, ast.parse(helper.read_bytes()), seen | {name})


def _check_half(path: Path, doc: str | None, functions: dict, constants: dict, imports: frozenset[str]) -> None:
    def require(condition: bool, problem: str) -> None:
        if not condition:
            raise ContractError(f"{path}: {problem}")

    require(bool(doc), "has no docstring: its first line says what it does, how, and the consequence in units")
    for name in ("inputs", "run"):
        require(
            name in functions,
            f"has no function `{name}`: add {name}({'<sizes>, device' if name == 'inputs' else '**inputs'})",
        )
    require("device" in functions["inputs"], '`inputs` takes no `device`: add device="cuda" as its last parameter')
    sizes = constants.get("SIZES")
    require(isinstance(sizes, dict) and bool(sizes), 'has no SIZES: add SIZES = {"check": {...}, "default": {...}}')
    assert isinstance(sizes, dict)  # for the type checker
    for size, arguments in sizes.items():
        require(isinstance(arguments, dict), f"SIZES[{size!r}] must be a dict of arguments of `inputs`")
        unknown = set(arguments) - set(functions["inputs"])
        require(not unknown, f"SIZES[{size!r}] names {', '.join(sorted(unknown))}, which `inputs` does not take")
    require(
        any(size.split("/")[0] == "check" for size in sizes),
        'SIZES has no "check": add a small and odd one for correctness',
    )
    require("default" in sizes, 'SIZES has no "default": add the one that is timed')
    require(constants.get("CLOCK", "wall") in ("device", "wall"), 'CLOCK must be "device" or "wall"')
    require(constants.get("DEVICE", "cuda") == "cuda", 'DEVICE must be "cuda" (leave it out for any device)')
    require(set(constants.get("REQUIRES", {})) <= {"capability", "gpus"}, 'REQUIRES takes "capability" and "gpus" only')
    require(constants.get("PRECISION", "fp32") in PRECISIONS, f"PRECISION must be one of {', '.join(PRECISIONS)}")
    tolerance = constants.get("TOLERANCE", (0, 0))
    require(isinstance(tolerance, tuple) and len(tolerance) == 2, "TOLERANCE must be (rtol, atol)")
    forbidden = {
        name
        for name in imports
        if name == "common" or name.startswith(("baseline_", "optimized_")) or (name[:2] == "ch" and name[2:].isdigit())
    }
    require(
        not forbidden,
        f"imports {', '.join(sorted(forbidden))}: a pair reads alone: libraries and its own chapter's helpers only",
    )
