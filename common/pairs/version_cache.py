"""A cache of a chapter's versions: a file is read anew if it, or a helper that it imports, has changed.

It is nothing but a gain of time: a file for each chapter in the checkout's `.cache/`, which git ignores. (Python's own
`__pycache__` is often forbidden where the course runs in a container.) Its form is that of Python's own cache: in JSON
the tuples of a version's constants would become lists. Only valid versions are kept, so every error is found anew.
"""

import hashlib
import marshal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common.pairs.contract import Version, read_version
from common.pairs.syntax import helper_files

TICK_NS = 2_000_000_000  # of the coarsest clock of a file system: within it a file may change twice, and look the same


@contextmanager
def cached_reader(folder: Path) -> Iterator[Callable[..., Version]]:
    """Yields a `read_version` for the files of this folder that remembers what earlier processes read."""
    path = folder.parent / ".cache" / f"{folder.name}.versions"
    stored, fresh = _load(path), dict[str, Any]()

    def read(file: Path, label: str, inherited: Any = None) -> Version:
        start, given, (key, facts) = time.time_ns(), [label, repr(inherited)], stored.get(file.name, ([], {}))
        if facts and key == [*given, *_stamps(file, facts["imports"])]:
            return Version(file, **facts)
        version = read_version(file, label, inherited)
        stamps = _stamps(file, version.imports)
        if max(max(times) for _, _, *times in stamps) < start - TICK_NS:
            facts = {name: value for name, value in vars(version).items() if name != "path"}
            fresh[file.name] = [*given, *stamps], facts
        return version

    try:
        yield read
    finally:
        if fresh:
            with suppress(OSError):  # a full disk, or a checkout that cannot be written to
                path.parent.mkdir(exist_ok=True)
                content = marshal.dumps(stored | fresh)
                path.write_bytes(_digest(content) + content)  # cut off, or mixed with another's, it fits no digest


def _stamps(file: Path, imports: frozenset[str]) -> list[tuple[str, int, int, int]]:
    """Each file that `with_helpers` reads for a version, with its size and times."""
    files = [file, *(helper for name in sorted(imports) for helper in helper_files(file, name))]
    stats = [(str(path), path.stat()) for path in files if path.exists()]
    return [(path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for path, stat in stats]


def _load(path: Path) -> dict[str, Any]:
    with suppress(OSError):
        if (kept := path.read_bytes()).startswith(_digest(content := kept[hashlib.sha256().digest_size :])):
            return dict(marshal.loads(content))
    return {}  # none, damaged, or of other code


def _digest(content: bytes) -> bytes:
    """Of the content, and of what decides how files are read: the code of this package, and Python's version."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(sys.version.encode() + code + content).digest()
