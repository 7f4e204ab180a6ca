"""A cache of a chapter's versions: a file is read anew if it, or a helper that it imports, has changed.

It is nothing but a gain of time: a file for each chapter in the checkout's `.cache/`, which git ignores. (Python's own
`__pycache__` is often forbidden where the course runs in a container.) Its form is that of Python's own cache: in JSON
the tuples of a version's constants would become lists. Only valid versions are kept, so every error is found anew.
"""

import hashlib
import marshal
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common.pairs.contract import Version, read_version

TICK_NS = 2_000_000_000  # of the coarsest clock of a file system: within it a file may change twice, and look the same


@contextmanager
def cached(folder: Path) -> Iterator[Callable[..., Version]]:
    """Yields a `read_version` for the files of this folder that remembers what earlier processes read."""
    path = folder.parent / ".cache" / f"{folder.name}.versions"
    known = _load(path)
    fresh: dict[str, tuple[Any, ...]] = {}

    def read(file: Path, label: str, inherited: Any = None) -> Version:
        decisive, start = (label, repr(inherited)), time.time_ns()
        before, *fields = known.get(file.name, (None, "", {}, {}, frozenset(), False, False))
        if before == (decisive, _stamps(file, fields[3])):
            return Version(file, label, *fields)
        version = read_version(file, label, inherited)
        stamps = _stamps(file, version.imports)
        if stamps and all(max(times) < start - TICK_NS for _, _, *times in stamps):
            fields = [value for name, value in vars(version).items() if name not in ("path", "label")]
            fresh[file.name] = ((decisive, stamps), *fields)
        return version

    try:
        yield read
    finally:
        if fresh:
            _save(known | fresh, path)


def _stamps(file: Path, imports: Iterable[str]) -> list[tuple[str, int, int, int]]:
    """Each file that `with_helpers` reads, with its size and times; empty if one of them vanishes meanwhile."""
    files = [str(file)]
    for stem in (os.path.join(file.parent, name) for name in sorted(imports)):
        if os.path.exists(f"{stem}.py"):
            files.append(f"{stem}.py")
        elif os.path.isdir(stem):
            files += map(str, sorted(Path(stem).rglob("*.py")))
    with suppress(OSError):
        stats = [os.stat(path) for path in files]
        return [(path, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in zip(files, stats, strict=True)]
    return []


def _load(path: Path) -> dict[str, Any]:
    with suppress(OSError):
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest == _digest(content):  # else it is damaged, or of other code
            return dict(marshal.loads(content))
    return {}


def _save(versions: dict[str, Any], path: Path) -> None:
    content = marshal.dumps(versions)
    part = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a full disk, or a checkout that cannot be written to
        path.parent.mkdir(exist_ok=True)
        try:
            part.write_bytes(_digest(content) + b"\n" + content)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    """Of the content, and of what decides how files are read: the code of this package, and Python's version."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(sys.version.encode() + code + content).hexdigest().encode()
