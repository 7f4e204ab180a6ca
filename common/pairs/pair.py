"""Find the pairs of a folder, load a file, say why a version cannot run here; the sizes of a pair by name and class.

A pair is `baseline_<name>.py` and `optimized_<name>.py` or `optimized_<name>_<variant>.py`; see CONTRIBUTING.md.
"""

import importlib.util
import itertools
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from common.pairs.contract import (
    LIBRARY_KINDS,
    Version,
    absent_modules,
    read_version,
    require_modules,
    require_names,
    require_ranks,
)
from common.pairs.lessons import Lesson, read_lessons
from common.pairs.syntax import ContractError, require_of, with_helpers
from common.pairs.user_error import suggestions
from common.pairs.version_cache import cached_reader

NOT_INTERPRETED = "written in Gluon, which has no interpreter: without a GPU it is only compiled (--xray)"
TUNED = "optimized/tuned"  # the last rung: right at any shape and alignment
ROOT = Path(__file__).resolve().parents[2]
_serial = itertools.count()


class NoMatch(ContractError):
    """No pair of a folder matches the requested name. `names`: the names of its pairs."""

    def __init__(self, where: str, only: str, names: list[str]) -> None:
        super().__init__(f"no pair of {where} matches {only!r}: {suggestions(only.strip('*'), names, '--list')}")
        self.names = names


def is_of_tuned(size: str) -> bool:
    """Whether a size is the last rung's alone."""
    return "tuned" in size.split("/")[:2]


@dataclass(frozen=True)
class Pair:
    """A baseline and its variants. `sizes`: name -> arguments of `inputs`. `summary`: in a sentence, if it has one."""

    chapter: str
    name: str
    baseline: Version
    variants: tuple[Version, ...]
    sizes: dict[str, dict[str, Any]]
    summary: str = ""

    @property
    def versions(self) -> tuple[Version, ...]:
        return (self.baseline, *self.variants)

    def version(self, label: str) -> Version:
        return next(version for version in self.versions if version.label == label)

    @property
    def by_name(self) -> dict[str, Version]:
        """Its versions by their short labels, and its libraries and yardsticks by the names of their functions."""
        found = {name: version for version in reversed(self.versions) for name in version.functions}
        libraries = {name: one for name, one in found.items() if name.split("_")[0] in LIBRARY_KINDS}
        versions = {short(version.label): version for version in self.versions}
        return versions | {name: replace(version, label=name) for name, version in libraries.items()}

    @property
    def ranks(self) -> int:
        """The fewest processes that it needs; with more than one they form a group of torch.distributed."""
        return int(self.baseline.constants.get("RANKS", 1))

    @property
    def check_sizes(self) -> list[str]:
        return [size for size in self.sizes if size.split("/")[0] == "check"]

    def lessons_left_out(self, size: str) -> set[str]:
        """The versions that need not run at a size: all but `tuned` at `tuned/*` and `check/tuned/*`."""
        return {version.label for version in self.variants if is_of_tuned(size) and version.label != TUNED}

    @property
    def timed_sizes(self) -> list[str]:
        """All sizes except `check` and `count`, whose arrays are small."""
        return [size for size in self.sizes if size != "count" and size not in self.check_sizes]


def chapters() -> dict[int, Path]:
    """Number -> folder of all chapters."""
    folders = {int(path.name[2:]): path for path in ROOT.glob("ch*") if path.is_dir() and path.name[2:].isdigit()}
    return dict(sorted(folders.items()))


def short(label: str) -> str:
    """A version's label as tables have it: `fused` for `optimized/fused`."""
    return label.removeprefix("optimized/")


def discover(folder: Path, only: str = "*") -> list[Pair]:
    """The pairs of a folder whose names match a pattern.

    Raises ContractError if the folder does not exist or has no (matching) pairs, or if a file breaks the contract.
    """
    require_of(folder, not os.path.isfile(folder), "is a file: name its folder")
    require_of(folder, os.path.isdir(folder), "no such folder")  # Path.is_dir raises if the name is too long
    baselines = {path.stem.removeprefix("baseline_"): path for path in sorted(folder.glob("baseline_*.py"))}
    others = {path.stem.removeprefix("optimized_"): path for path in sorted(folder.glob("optimized_*.py"))}
    names = [name for name in [*baselines, *others] if fnmatchcase(name, only)]
    if names or not (baselines or others):
        require_names(folder, names)
    variants: dict[str, dict[str, Path]] = {name: {} for name in baselines}
    for stem, path in others.items():
        if fitting := [name for name in baselines if f"{stem}_".startswith(f"{name}_")]:
            name = max(fitting, key=len)
            suffix = stem.removeprefix(name).removeprefix("_")
            variants[name][f"optimized/{suffix}" if suffix else "optimized"] = path
        elif fnmatchcase(stem, only):
            raise ContractError(
                f"{path}: has no partner: {_copy_advice(path) or f'add baseline_{stem}.py or rename it'}"
            )
    require_of(folder, bool(baselines), "holds no pairs: add baseline_<name>.py and optimized_<name>.py")
    chosen = [name for name in baselines if fnmatchcase(name, only)]
    if not chosen:
        raise NoMatch(folder.name, only, list(baselines))
    of_course, find = list(chapters().values()), cache(importlib.util.find_spec)
    with cached_reader(folder) if folder in of_course else nullcontext(read_version) as read:
        lessons = read_lessons(folder)
        pairs = [_pair(baselines[name], variants[name], lessons.get(name, Lesson()), read) for name in chosen]
    for version in (version for pair in pairs for version in pair.versions):
        require_modules(version, of_course, find)
    return pairs


def _pair(baseline: Path, variants: dict[str, Path], lesson: Lesson, read: Callable[..., Version]) -> Pair:
    name = baseline.stem.removeprefix("baseline_")
    if not variants:
        fix = _copy_advice(baseline) or f"add optimized_{name}.py or optimized_{name}_<variant>.py beside it"
        raise ContractError(f"{baseline}: has no partner: {fix}")
    first = read(baseline, "baseline", lesson.sizes)
    sizes = first.constants["SIZES"]
    others = [read(path, label, sizes) for label, path in variants.items()]
    if first.has_kernel and "reference" not in first.functions and any(version.has_kernel for version in others):
        fix = "add reference(**inputs), a simple and slow oracle"
        raise ContractError(f"{baseline}: both versions are custom kernels: {fix}")
    require_ranks(first, others)
    return Pair(baseline.parent.resolve().name, name, first, _ladder(name, others), sizes, lesson.summary)


def _copy_advice(path: Path) -> str:
    """What else to copy, for a chapter's file that was copied alone; empty for other files."""
    home = next((folder for folder in chapters().values() if (folder / path.name).is_file()), path.parent)
    if home.resolve() == path.parent.resolve():
        return ""
    pair = next(pair for pair in discover(home) if path.name in [version.path.name for version in pair.versions])
    both = {home / path.name, pair.baseline.path}
    helpers = {file.relative_to(home).parts[0] for one in both for file in {*with_helpers(one)} - both}
    variants = [version.path.name for version in pair.variants]
    one_of = f"{'at least one of ' * (len(variants) > 1)}{', '.join(variants)}"
    partner = one_of if path.name == pair.baseline.path.name else pair.baseline.path.name
    missing = [name for name in sorted(helpers) if not (path.parent / name).exists()]
    return f"also copy {' and '.join([*missing, partner])} from {home.name}/"


def _ladder(name: str, variants: list[Version]) -> tuple[Version, ...]:
    """The variants in reading order: a variant comes after the one that its VERSUS names."""
    rungs: dict[str, Version] = {}
    while waiting := [version for version in variants if version.label not in rungs]:
        ready = [version for version in waiting if version.versus is None or version.versus in rungs]
        if not ready:
            problem = f"VERSUS = {waiting[0].constants['VERSUS']!r} names no variant of {name} before it"
            earlier = ", ".join(repr(label.removeprefix("optimized").removeprefix("/")) for label in rungs)
            fix = f"write the suffix of an earlier variant ({earlier or 'none'})"
            raise ContractError(f"{waiting[0].path}: {problem}: {fix}")
        rungs |= {version.label: version for version in ready}
    return tuple(rungs.values())


def skip_reason(version: Version, device: dict[str, Any], gpus: int) -> str:
    """The reason why a version cannot run on a device (see common.machine.device.describe); empty if it can."""
    if missing := absent_modules(version):
        return f"needs the package {', '.join(missing)}"
    least = version.constants.get("REQUIRES", {}).get("gpus", 1)
    if version.needs_cuda and 0 < gpus < least:  # before the kind: with too few GPUs the ranks of a pair are on the CPU
        return f"needs {least} GPUs, this machine has {gpus}"
    if version.needs_cuda and device["kind"] != "cuda":
        return NOT_INTERPRETED if version.is_gluon else "needs an NVIDIA GPU"
    if device["kind"] == "cuda" and (needed := version.capability_needed(tuple(device["capability"]))):
        return f"{needed}, this GPU has {'.'.join(map(str, device['capability']))}"
    return ""


def load(path: Path) -> ModuleType:
    """Import a file as a fresh module. Its folder is importable during the import, and its helper modules are fresh,
    too.

    Helper packages are kept: torch's operators are unique in a process, and torch.compile looks theirs up by name.
    """
    from common.pairs.interpreter import speed_up_interpreter  # --list needs none of its compiling

    path = path.resolve()
    name = f"_{path.parent.name}_{path.stem}_{next(_serial)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module  # Triton and pickle look up a function's module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        speed_up_interpreter()
    finally:
        sys.path.remove(str(path.parent))
        for helper in set(sys.modules) - before - {name}:
            if Path(getattr(sys.modules[helper], "__file__", None) or "").parent == path.parent:
                _rename(sys.modules.pop(helper), f"{name}_{helper}")
    return module


def _rename(module: ModuleType, name: str) -> None:
    """Under a name of its own a helper stays importable: torch.compile imports the module of each function it meets."""
    module.__name__ = name
    sys.modules[name] = module


def class_of(size: str) -> str:
    """The class of a size: `large` of `large/8192x8192`. `cpu` belongs to `default`, which it replaces on a CPU."""
    name = size.split("/")[0]
    return "default" if name == "cpu" else name


def sizes_of(pair: Pair, wanted: str, on_cpu: bool) -> list[str]:
    """A pair's sizes, in its own order, for one name or several (`default,large`)."""
    chosen = {size for name in wanted.split(",") for size in _sizes_named(pair.timed_sizes, name, on_cpu)}
    return [size for size in pair.timed_sizes if size in chosen]


def _sizes_named(timed: list[str], name: str, on_cpu: bool) -> list[str]:
    """`small` stands for `small/*` too, `all` for every size; on a CPU `default` may mean `cpu`."""
    elsewhere = "cpu" if not on_cpu else "default" if "cpu" in timed else ""
    if name == "all":
        return [size for size in timed if size != elsewhere]
    if name == elsewhere == "default":
        return ["cpu"]
    return [size for size in timed if size == name or size.startswith(f"{name}/")]


def pairs_without(pairs: list[Pair], size: str) -> list[str]:
    """The names of pairs without any of the requested sizes (`large`; `default,large`)."""
    wanted = {*size.split(",")}

    def has(pair: Pair) -> bool:
        return any(wanted & {size, size.split("/")[0]} for size in pair.timed_sizes)

    return [pair.name for pair in pairs if "all" not in wanted and not has(pair)]
