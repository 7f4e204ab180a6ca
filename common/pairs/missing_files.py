"""What a pair needs beside it and does not find: modules that are missing, versions under a wrong name."""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from common.pairs.contract import Version
from common.pairs.syntax import ContractError, imported_modules, nearest, require_of, with_helpers

OPTIONAL = {"cupy", "triton", *sys.stdlib_module_names}  # what a machine may lack: a pair that needs it is skipped
KINDS = ("baseline", "optimized")


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
