"""The code of a version that is timed, as data that is equal where only names of local variables differ."""

import ast
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

from common.pairs.source import dump_cached, makes_kernel
from common.pairs.syntax import assigned_names, with_helpers


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
        is_host = isinstance(node, ast.FunctionDef) and not any(map(makes_kernel, node.decorator_list))
        if is_host or kernels:  # the version's own file may have another name
            where = "" if file == path else file.relative_to(path.parent).as_posix()
            code.setdefault((where, name), []).append(_function(node) if is_host else dump_cached(node))
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
            registers = node.decorator_list and not any(map(makes_kernel, node.decorator_list))
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


@cache
def _function(node: ast.stmt) -> Any:
    module = ast.parse(ast.unparse(node))  # its layout is in the bytecode, too
    return _bytecode(compile(module, "", "exec", optimize=2))


def _bytecode(code: CodeType) -> Any:
    """What code does, without the names of its local variables; parameters are passed by name."""
    constants = [_bytecode(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_code, code.co_exceptiontable, code.co_names, takes, constants
