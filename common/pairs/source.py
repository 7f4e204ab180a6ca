"""The hash of the code that decides what is measured: a record names its pair's hash."""

import ast
import hashlib
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

from common.pairs.contract import FUNCTIONS, KERNEL_MAKERS, Version, is_inherited
from common.pairs.pair import Pair
from common.pairs.syntax import assigned_names, parse, with_helpers

UNHASHED = {
    "SIZES",
    "VERSUS",
    "STRESS",
    "NO_GRADIENTS",
    "STRUCTURE",
    "RANKS",
}  # a result stores arguments and ranks; the others change no measurement
DOCUMENTED = ast.Module | ast.FunctionDef | ast.ClassDef


def source_hash(pair: Pair) -> str:
    """The hash of all versions and their helpers, without docstrings, comments, layout and UNHASHED constants."""
    trees = {path: tree for version in pair.versions for path, tree in with_helpers(version.path).items()}
    folder = pair.baseline.path.parent
    text = "\n".join(f"{path.relative_to(folder).as_posix()} {_dump_cached(trees[path])}" for path in sorted(trees))
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


_dump_cached = cache(_dump)


def is_copy(version: Version, baseline: Version) -> bool:
    """Whether a version's file has the baseline's code, but for what it leaves to the baseline."""
    own, whole = parse(version.path), ast.parse(baseline.path.read_bytes())
    written = {name for node in own.body for name in _defined_names(node)}
    return _dump_cached(own) == _dump(without(whole, lambda name: is_inherited(name) and name not in written))


def has_no_launch(version: Version, baseline: Version) -> bool:
    """Whether a pair has kernels and this version launches none of its own: it calls a library."""
    return (baseline.has_kernel or version.has_kernel) and not _launches(version.path)


def _launches(path: Path) -> bool:
    """Whether a file uses one of its kernels outside of them, or imports a helper that has kernels."""
    module, *helpers = with_helpers(path).values()
    kernels = [node for node in module.body if any(map(_makes_kernel, getattr(node, "decorator_list", [])))]
    made = [node for node in module.body if isinstance(node, ast.Assign) and _makes_kernel(node.value)]
    names = {kernel.name for kernel in kernels if isinstance(kernel, ast.FunctionDef)}
    names |= {name for node in made for name in assigned_names(node)}
    others = [node for node in module.body if node not in [*kernels, *made]]
    used = {getattr(part, "id", "") for node in others for part in ast.walk(node)}
    makers = [part for tree in helpers for part in ast.walk(tree) if getattr(part, "attr", "") in KERNEL_MAKERS]
    return bool(names & used or makers) or any(map(_makes_kernel, others))


def timed_code(path: Path, names: Iterable[str], kernels: bool = True) -> dict[tuple[str, str], list[Any]]:
    """(File, name) -> definitions: these functions of a version, and all that they reach in its file and its helpers.

    Functions are bytecode without names of local variables. Names are followed wherever they stand, also in strings.
    What a file executes for its effect is reached with the file. `kernels`: also kernels, constants and imports.
    """
    trees, wanted, files, size = with_helpers(path), {"", *names}, {path}, 0
    module_of = {file: file.relative_to(path.parent).with_suffix("").parts[0] for file in trees}
    found: list[tuple[Path, str, ast.stmt]] = []
    while size != len(wanted) + len(files):
        size = len(wanted) + len(files)
        found = [(file, *item) for file in sorted(files) for item in definitions(trees[file]) if item[0] in wanted]
        wanted.update(*(_reached(node) for _, _, node in found))
        files |= {file for file, module in module_of.items() if module in wanted}
    code: dict[tuple[str, str], list[Any]] = {}
    for file, name, node in found:
        is_host = isinstance(node, ast.FunctionDef) and not any(map(_makes_kernel, node.decorator_list))
        if is_host or kernels:  # the version's own file may have another name
            where = "" if file == path else file.relative_to(path.parent).as_posix()
            code.setdefault((where, name), []).append(_function(node) if is_host else _dump_cached(node))
    return code


@cache
def definitions(tree: ast.Module) -> list[tuple[str, ast.stmt]]:
    """(Name, statement) for all that a module defines or imports; the name of what it executes for its effect is ""."""
    found: list[tuple[str, ast.stmt]] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            found += [(alias.asname or alias.name.split(".")[0], ast.Import([alias])) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            one = partial(ast.ImportFrom, node.module)
            found += [((alias.asname or alias.name).strip("*"), one([alias], node.level)) for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            registers = node.decorator_list and not any(map(_makes_kernel, node.decorator_list))
            found.append(("" if registers else node.name, node))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # no docstring
            found += [(name, node) for name in assigned_names(node) or [""]]
    return found


@cache
def _reached(node: ast.AST) -> frozenset[str]:
    """All names in a statement: of variables, attributes, imports and their modules, and strings that are names."""
    names = set[str]()
    for each in ast.walk(node):
        said = [getattr(each, key, None) for key in ("id", "attr", "name", "module", "value")]
        names |= {name for text in said if isinstance(text, str) for name in text.split(".") if name.isidentifier()}
    return frozenset(names)


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


def _makes_kernel(decorator: ast.AST) -> bool:
    return any(getattr(node, "attr", "") in KERNEL_MAKERS for node in ast.walk(decorator))


@cache
def _function(node: ast.stmt) -> Any:
    module = ast.parse(ast.unparse(node))  # its layout is in the bytecode, too
    return _bytecode(compile(module, "", "exec", optimize=2))


def _bytecode(code: CodeType) -> Any:
    """What code does, without the names of its local variables; parameters are passed by name."""
    constants = [_bytecode(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_code, code.co_exceptiontable, code.co_names, takes, constants
