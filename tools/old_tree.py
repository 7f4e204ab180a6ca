"""A chapter of an old revision, with the names of today, for tools/carry_records.py: a TOML file has the new names.

    [files]
    "ch4/rows" = "ch4/alignment"                 a module of a chapter
    [functions]
    multiple = "assume_multiple"                 what such a module defines, wherever the chapter imports it
    [labels."ch4/matmul"]
    "optimized/grouped" = "optimized/ordered"    a version of a pair, with its file
    [pairs."ch5/fcgp_2d"]
    name = "fcgp"                                a pair; if its `inputs` takes more now, these arguments are added
    arguments = { dimensions = 2 }

Nothing but names changes in the old files, and each becomes one that was free: they do what they did.
"""

import ast
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from common.pairs.contract import Version
from common.pairs.pair import ROOT, Pair
from common.pairs.source import source_hash
from common.pairs.syntax import helper_files
from common.pairs.user_error import UserError
from tools.timed_code import definitions

IDENTIFIERS = ("id", "arg", "name")  # fields of the nodes of a syntax tree


@dataclass(frozen=True)
class RenameMap:
    """Old name -> new name."""

    files: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    pairs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def modules(self, chapter: str) -> dict[str, str]:
        """The modules of a chapter, with its renamed versions."""
        pairs = self.labels.items()
        versions = {_file(pair, old): _file(pair, new) for pair, labels in pairs for old, new in labels.items()}
        files = {Path(old): Path(new) for old, new in (self.files | versions).items()}
        return {old.name: new.name for old, new in files.items() if old.parent.name == chapter}


def _file(pair: str, label: str) -> str:
    return f"{pair.replace('/', '/optimized_')}{label.removeprefix('optimized').replace('/', '_')}"


def read_map(path: str) -> RenameMap:
    """Raises UserError if that is no map."""
    try:
        return RenameMap(**tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: no map of names ({error})") from None


def extract_revision(revision: str, folder: Path) -> None:
    """Write the repository's files at a revision into a folder. Raises UserError."""
    process = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if process.returncode:
        raise UserError(f"{revision}: {process.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(process.stdout)) as archive:
        archive.extractall(folder, filter="data")


def old_pairs(folder: Path, names: RenameMap) -> dict[str, tuple[Pair, str]]:
    """The pairs of an old chapter, each with its hash, whose files then get the names of today.

    Raises UserError if a name is missing or in use.
    """
    hashes = {name: source_hash(pair) for name, pair in _pairs(folder).items()}
    _rename_chapter(folder, names)
    return {name: (pair, hashes[name]) for name, pair in _pairs(folder).items() if name in hashes}


def _pairs(folder: Path) -> dict[str, Pair]:
    """By name, of nothing but their files: `discover` would ask today's contract of them."""
    labels = {path.stem.removeprefix("baseline_"): {"baseline": path} for path in folder.glob("baseline_*.py")}
    for path in sorted(folder.glob("optimized_*.py")):
        stem = path.stem.removeprefix("optimized_")
        name = max((name for name in labels if f"{stem}_".startswith(f"{name}_")), key=len)
        labels[name][f"optimized{stem.removeprefix(name).replace('_', '/', 1)}"] = path
    pairs = {}
    for name, paths in labels.items():
        versions = [Version(path, label, "", {}, {}, frozenset(), False, False) for label, path in paths.items()]
        pairs[name] = Pair(folder.name, name, versions[0], tuple(versions[1:]), {})
    return pairs


def _rename_chapter(folder: Path, names: RenameMap) -> None:
    """Give an old chapter its new names. Raises UserError if a file is missing, or if a new name was in use."""
    modules = names.modules(folder.name)
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        old_dump, used = ast.dump(tree), _identifiers(tree)
        bound, imported = _rename_imports(tree, folder, modules, names.functions)
        if in_use := used.intersection(new for old, new in bound.items() if new != old):
            raise UserError(f"{folder.name}/{path.name}: {', '.join(in_use)} is in use: nothing can get this name")
        _rename_uses(tree, bound, imported, names.functions)
        if ast.dump(tree) != old_dump:
            path.write_text(ast.unparse(tree), encoding="utf-8")
    for old, new in modules.items():
        source, target = folder / f"{old}.py", folder / f"{new}.py"
        if not source.exists() or target.exists():
            raise UserError(f"{folder.name}/{old} = {folder.name}/{new}: {'in use' if source.exists() else 'no file'}")
        source.rename(target)


def _identifiers(tree: ast.Module) -> set[str]:
    return {getattr(node, key, None) or "" for node in ast.walk(tree) for key in (*IDENTIFIERS, "asname")}


def _rename_imports(
    tree: ast.Module, folder: Path, modules: dict[str, str], functions: dict[str, str]
) -> tuple[dict[str, str], set[str]]:
    """Rename what a file imports from its chapter. Returns old and new names in this file, and the modules' names."""
    local_names = {name for name, node in definitions(tree) if not isinstance(node, ast.Import | ast.ImportFrom)}
    bound, imported = {name: functions[name] for name in local_names & functions.keys()}, set[str]()
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]:
        table = functions if isinstance(node, ast.ImportFrom) else modules
        for alias in node.names:
            module = alias.name if isinstance(node, ast.Import) else node.module or "."
            if getattr(node, "level", 0) or helper_files(folder / "_", module.split(".")[0]):
                bound |= {} if alias.asname else {alias.name: table.get(alias.name, alias.name)}
                imported |= {alias.asname or alias.name} if table is modules else set()
                alias.name = table.get(alias.name, alias.name)
        if isinstance(node, ast.ImportFrom) and not node.level:
            node.module = modules.get(str(node.module), node.module)
    return bound, imported


def _rename_uses(tree: ast.Module, bound: dict[str, str], imported: set[str], functions: dict[str, str]) -> None:
    for node in [node for node in ast.walk(tree) if not isinstance(node, ast.keyword | ast.alias)]:
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in imported:
            node.attr = functions.get(node.attr, node.attr)
        for key in IDENTIFIERS:
            if (name := getattr(node, key, None)) in bound:
                setattr(node, key, bound[name])
