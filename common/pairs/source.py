"""The hash of the code that decides what is measured: a record names its pair's hash."""

import ast
import hashlib
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from common.pairs.contract import KERNEL_MAKERS, Version
from common.pairs.pair import Pair
from common.pairs.syntax import assigned_names, parse, with_helpers

UNHASHED = {
    "SIZES",
    "VERSUS",
    "STRESS",
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
    """Whether a version's file has the baseline's code."""
    return _dump_cached(parse(version.path)) == _dump_cached(parse(baseline.path))


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


def host_code(path: Path) -> list[Any]:
    """The Python code of a version and its helpers without kernels, as bytecode (without names of local variables)."""
    functions = []
    for file, tree in sorted(with_helpers(path).items()):
        module = ast.parse(ast.unparse(tree))
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and not any(map(_makes_kernel, node.decorator_list)):
                functions += [
                    (file.name, node.name, _bytecode(compile(ast.Module([node], []), "", "exec", optimize=2)))
                ]
    return functions


def _makes_kernel(decorator: ast.AST) -> bool:
    return any(getattr(node, "attr", "") in KERNEL_MAKERS for node in ast.walk(decorator))


def _bytecode(code: CodeType) -> Any:
    constants = [_bytecode(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return code.co_code, code.co_names, constants
