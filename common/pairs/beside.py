"""What a pair needs beside it, and does not find."""

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from common.pairs.contract import Version
from common.pairs.syntax import ContractError, imported_modules, require_of, with_helpers

OPTIONAL = {"cupy", "triton", *sys.stdlib_module_names}  # what a machine may lack: a pair that needs it is skipped


def absent(version: Version) -> list[str]:
    """The modules that it imports and that are neither in its folder nor installed."""
    beside = {path.stem for path in version.path.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    return [name for name in sorted(version.imports - beside) if not importlib.util.find_spec(name)]


def require_modules(version: Version, chapters: Iterable[Path]) -> None:
    """Raises ContractError for a helper that was not copied from a chapter, and for a module that is nowhere."""
    for name in absent(version):
        if homes := [folder for folder in chapters if (folder / f"{name}.py").exists() or (folder / name).is_dir()]:
            own = [folder for folder in homes if (folder / version.path.name).exists()] or homes
            file = name if (own[0] / name).is_dir() else f"{name}.py"
            fix = f"copy it from {' or '.join(f'{folder.name}/' for folder in own)}"
            raise ContractError(f"{version.path}: needs {file} beside it: {fix}")
        path = next(path for path, tree in with_helpers(version.path).items() if name in imported_modules(tree))
        problem = f"imports {name}: there is no {name}.py in this folder, and no package of that name is installed"
        require_of(path, name in OPTIONAL, f"{problem}: add the file or correct the name")
