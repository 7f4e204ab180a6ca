"""A file of a pair as its syntax tree, with those of its chapter's helpers; nothing is imported."""

import ast
from functools import cache
from pathlib import Path

from common.pairs.one_line import OneLine

DEEPEST = 100  # expressions and statements in one another: within what Python lets a walk call itself
_parsed = cache(ast.parse)  # once for each text: a chapter's package is part of each of its versions


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes, level by level, walked once: that is what --list spends its time on. Raises RecursionError."""
    levels: list[list[ast.AST]] = [[tree]]
    while levels[-1]:
        levels.append([child for node in levels[-1] for child in ast.iter_child_nodes(node)])
        if len(levels) > DEEPEST + 2:  # the module's own, and an empty one
            raise RecursionError
    return tuple(node for level in levels for node in level)


class ContractError(OneLine):
    """A file that breaks the contract: file, what is wrong, the fix."""


def parse(path: Path) -> ast.Module:
    """A file's syntax tree. Raises ContractError: unreadable, or a syntax error."""
    require_of(path, path.name.isprintable(), "has a name that cannot be printed: rename it")
    require_of(path, path.is_file() or not path.exists(), "cannot be read: it is no regular file")  # a pipe waits
    try:
        tree = _parsed(path.read_bytes(), str(path))
        nodes(tree)
        return tree
    except (RecursionError, MemoryError):  # MemoryError is the parser's
        raise ContractError(f"{path}: nests more than {DEEPEST} expressions in one another: cut them up") from None
    except OSError as error:
        raise ContractError(f"{path}: cannot be read ({error.strerror})") from None
    except (SyntaxError, ValueError) as error:
        line, problem = getattr(error, "lineno", None) or 0, getattr(error, "msg", error)
        raise ContractError(f"{path}:{line}: syntax error: {problem}") from None


def require_of(path: Path, condition: bool, problem: str) -> None:
    """Raises ContractError: the file, and what is wrong with it, unless the condition holds."""
    if not condition:
        raise ContractError(f"{path}: {problem}")


def assigned_names(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def imported_modules(tree: ast.Module) -> frozenset[str]:
    names = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return frozenset(name.split(".")[0] for name in names)


def with_helpers(path: Path) -> dict[Path, ast.Module]:
    """The syntax trees of a version, and of its chapter's modules and packages (whole) that it imports, and they."""
    found, todo = dict[Path, ast.Module](), [path]
    while todo:
        if (file := todo.pop()) not in found:
            found[file] = parse(file)
            for name in imported_modules(found[file]):
                module = path.with_name(f"{name}.py")
                todo += [module] if module.exists() else path.with_name(name).rglob("*.py")
    return found
