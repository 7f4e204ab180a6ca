"""The hash of the code that decides what is measured: a record names its pair's hash."""

import ast
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from common.pairs.contract import FUNCTIONS, KERNEL_MAKERS, Version, is_inherited
from common.pairs.pair import Pair
from common.pairs.syntax import assigned_names, parse, with_helpers

# a result stores arguments and ranks; the others change no measurement
UNHASHED = {"SIZES", "VERSUS", "STRESS", "NO_GRADIENTS", "NARROW_WEIGHTS", "STRUCTURE", "RANKS"}
DOCUMENTED = ast.Module | ast.FunctionDef | ast.ClassDef


def source_hash(pair: Pair) -> str:
    """The hash of all versions and their helpers, without docstrings, comments, layout and UNHASHED constants."""
    trees = {path: tree for version in pair.versions for path, tree in with_helpers(version.path).items()}
    folder = pair.baseline.path.parent
    text = "\n".join(f"{path.relative_to(folder).as_posix()} {dump_cached(trees[path])}" for path in sorted(trees))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _dump(node: Any) -> str:
    """A syntax tree as text that is equal in every version of Python (the text of ast.dump is not)."""
    if isinstance(node, list):
        return "[" + ",".join(_dump(item) for item in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(key, value) for key, value in ast.iter_fields(node) if value not in (None, [])]
    if isinstance(node, ast.Module):
        fields = [("body", [statement for statement in node.body if UNHASHED.isdisjoint(assigned_names(statement))])]
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields = [(key, value[1:] if key == "body" else value) for key, value in fields]
    return type(node).__name__ + "(" + ",".join(f"{key}={_dump(value)}" for key, value in fields) + ")"


dump_cached = cache(_dump)


def is_copy(version: Version, baseline: Version) -> bool:
    """Whether a version's file has the baseline's code, but for what it leaves to the baseline."""
    own, whole = parse(version.path), ast.parse(baseline.path.read_bytes())
    written = {name for node in own.body for name in _defined_names(node)}
    return dump_cached(own) == _dump(without(whole, lambda name: is_inherited(name) and name not in written))


def has_no_launch(version: Version, baseline: Version) -> bool:
    """Whether a pair has kernels and this version launches none of its own: it calls a library."""
    return (baseline.has_kernel or version.has_kernel) and not _launches(version.path)


def _launches(path: Path) -> bool:
    """Whether a file uses one of its kernels outside of them, or imports a helper that has kernels."""
    module, *helpers = with_helpers(path).values()
    kernels = [node for node in module.body if any(map(makes_kernel, getattr(node, "decorator_list", [])))]
    made = [node for node in module.body if isinstance(node, ast.Assign) and makes_kernel(node.value)]
    names = {kernel.name for kernel in kernels if isinstance(kernel, ast.FunctionDef)}
    names |= {name for node in made for name in assigned_names(node)}
    others = [node for node in module.body if node not in [*kernels, *made]]
    used = {getattr(part, "id", "") for node in others for part in ast.walk(node)}
    makers = [part for tree in helpers for part in ast.walk(tree) if getattr(part, "attr", "") in KERNEL_MAKERS]
    return bool(names & used or makers) or any(map(makes_kernel, others))


def omitted_statements(body: list[ast.stmt], is_dropped: Callable[[str], bool]) -> dict[ast.stmt, list[str]]:
    """Of a module, the statements that define such a name, and what only these use -> the lines instead.

    These are none, or an import of the other names; the statement itself then has only those.
    """
    found = {node: list[str]() for node in body if any(map(is_dropped, _defined_names(node)))}
    size = -1
    while size != len(found):
        size, kept = len(found), [node for node in body if node not in found]
        unused = used_names(found) - used_names(kept) - set(FUNCTIONS)
        found |= {node: [] for node in kept if _defined_names(node) and unused.issuperset(_defined_names(node))}
    for node in [node for node in kept if isinstance(node, ast.Import | ast.ImportFrom)]:
        if not unused.isdisjoint(_defined_names(node)):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) not in unused]
            found[node] = [ast.unparse(node)]
    return found


def without(tree: ast.Module, is_dropped: Callable[[str], bool]) -> ast.Module:
    """A module without the statements that define such a name, and without what only these use."""
    dropped = omitted_statements(tree.body, is_dropped)
    return ast.Module([node for node in tree.body if dropped.get(node, [""])], [])


def _defined_names(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines, imports or assigns."""
    names = [getattr(node, "name", ""), *(alias.asname or alias.name for alias in getattr(node, "names", []))]
    return [name for name in [*names, *assigned_names(node)] if name]


def used_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of variables in these statements."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def makes_kernel(decorator: ast.AST) -> bool:
    return any(getattr(node, "attr", "") in KERNEL_MAKERS for node in ast.walk(decorator))
