"""Syntax trees of a pair's file and of its chapter's helpers; nothing is imported."""

import ast
import difflib
from functools import cache
from pathlib import Path

from common.pairs.user_error import UserError

DEEPEST = 100  # nested expressions and statements: a depth that Python's recursion allows
_parsed = cache(ast.parse)  # cached by text: the helpers of a chapter belong to each of its versions


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes, level by level, computed once (--list spends most of its time here). Raises RecursionError."""
    levels: list[list[ast.AST]] = [[tree]]
    while levels[-1]:
        values = [value for node in levels[-1] for value in vars(node).values()]  # faster than ast.iter_child_nodes
        values += [item for value in values if value.__class__ is list for item in value]
        levels.append([value for value in values if isinstance(value, ast.AST)])
        if len(levels) > DEEPEST + 2:  # the module itself, and an empty last level
            raise RecursionError
    return tuple(node for level in levels for node in level)


class ContractError(UserError):
    """A file that breaks the contract; the message names the file, the problem and the fix."""


def parse(path: Path) -> ast.Module:
    """A file's syntax tree. Raises ContractError if it is unreadable or has a syntax error."""
    require_of(path, path.name.isprintable(), "has a name with unprintable characters: rename it")
    require_of(path, path.is_file() or not path.exists(), "cannot be read: it is not a regular file")  # a pipe waits
    try:
        tree = _parsed(path.read_bytes(), str(path))
        nodes(tree)
        return tree
    except (RecursionError, MemoryError):  # the parser raises MemoryError
        raise ContractError(f"{path}: nests more than {DEEPEST} expressions: split them") from None
    except OSError as error:
        raise ContractError(f"{path}: cannot be read ({error.strerror})") from None
    except (SyntaxError, ValueError) as error:
        line, problem = getattr(error, "lineno", None) or 0, getattr(error, "msg", error)
        raise ContractError(f"{path}:{line}: syntax error: {problem}") from None


@cache
def nearest(name: str, names: tuple[str, ...], cutoff: float = 0.6) -> str:
    """The one of these names that this name may be misspelt from; empty if none is as near. cutoff: of difflib."""
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), "")


def require_of(path: Path, condition: bool, problem: str) -> None:
    """Raises ContractError with the file and the problem unless the condition holds."""
    if not condition:
        raise ContractError(f"{path}: {problem}")


def assigned_names(node: ast.stmt) -> list[str]:
    """The names that a statement of a module assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def imported_names(tree: ast.Module) -> frozenset[str]:
    """What it imports, with dots: `from a.b import c` is a.b.c."""
    names = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return frozenset(names)


def imported_modules(tree: ast.Module) -> frozenset[str]:
    """The top-level modules and packages that it imports."""
    return frozenset(name.split(".")[0] for name in imported_names(tree))


def helper_files(version: Path, name: str) -> list[Path]:
    """The files of the module or package of this name in a version's chapter; none if it is another's."""
    module = version.with_name(f"{name}.py")
    return [module] if module.exists() else sorted(version.with_name(name).rglob("*.py"))


def with_helpers(path: Path) -> dict[Path, ast.Module]:
    """The syntax trees of a version and, recursively, of the chapter's modules and packages that it imports."""
    trees, todo = dict[Path, ast.Module](), [path]
    while todo:
        if (file := todo.pop()) not in trees:
            trees[file] = parse(file)
            for name in imported_modules(trees[file]):
                todo += helper_files(path, name)
    return trees
