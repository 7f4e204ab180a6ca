"""Reading and writing of all files: one check, atomic writes, errors in one line."""

import errno
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import msgspec

from common.pairs.pair import ROOT
from common.pairs.user_error import UserError

RECORDED = ROOT / "recorded"  # committed results: one folder per device
RecordedFile = tuple[Path, Any]  # a recorded file and its content
Problems = dict[Path, str]  # bad files, each with one line
KINDS = {  # a key that files of only one kind have -> its Format.what
    "architecture": "counts", "levels": "a machine's datasheet", "known": "a calibration", "solutions": "solutions",
    "kernels": "a comparison with a GPU's counters", "fits": "a record of ch6/collectives.py", "rows": "predictions",
}  # fmt: skip
CONVERTER = "4521bc34"  # the last revision with tools/convert_records.py, which reads one form before today's
MEASURE_OR_CONVERT = f"measure again, or `git checkout {CONVERTER}; python -m tools.convert_records FILE`"
MAX_MESSAGE = 160  # characters of what is wrong with a file
UNWRITABLE = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a disk", stat.S_IFSOCK: "a socket"}  # take no text


class RecordError(UserError):
    """A file has the wrong content or cannot be read or written."""


@contextmanager
def file_errors(path: Path | str, operation: str = "written") -> Iterator[None]:
    """Turn the system's error about reading or writing a file into a RecordError."""
    try:
        yield
    except OSError as error:
        of_pipe = "nobody reads it: start its reader first" if error.errno == errno.ENXIO else ""
        raise RecordError(f"{path}: cannot be {operation} ({of_pipe or error.strerror or error})") from None


@dataclass(frozen=True)
class Format:
    """A kind of JSON file: its name, its version (0: it has none), the type of its data, and its content.

    `form`: what msgspec reads: a Struct or dataclass; Any for what `content` checks. `content` may raise RecordError
    without the path, or any error caused by a missing value. `way`: what to do about a file of an older version.
    """

    what: str
    version: int
    form: Any
    content: Callable[[Any], Any] = lambda data: data
    way: str = "measure again"

    def load(self, path: Path | str) -> Any:
        """The content of a file. Raises RecordError."""
        with file_errors(path, "read"):
            text = Path(path).read_bytes()
        return self.parse(path, text)

    def parse(self, path: Path | str, text: bytes) -> Any:
        """The content of a file that has this text. Raises RecordError."""
        try:
            return self.content(self._parse(text))
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from None
        except (TypeError, LookupError, ValueError, AttributeError, ArithmeticError) as error:
            raise RecordError(f"{path}: not {self.what} ({type(error).__name__}: {error})") from None

    def _parse(self, text: bytes) -> Any:
        try:
            data = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise RecordError(f"not JSON ({error})") from None
        name = "form" if isinstance(data, dict) and "form" in data else "schema"
        version = data.get(name) if isinstance(data, dict) else None
        keys = {*data, *data.get("environment", ())} if isinstance(data, dict) else set()
        if kinds := {KINDS[key] for key in keys & KINDS.keys()} - {self.what}:
            raise RecordError(f"holds {kinds.pop()}, not {self.what}")
        if self.version and type(version) is int and version != self.version:  # True is no version
            age, way = ("a newer", "") if version > self.version else ("an older", f": {self.way}")
            reads = f"{name} {str(version)[:20]}; this one reads {self.version}"
            raise RecordError(f"written by {age} version of the course ({reads}){way}")
        try:
            return msgspec.convert(data, self.form)
        except msgspec.ValidationError as error:
            raise RecordError(f"not {self.what} ({str(error)[:MAX_MESSAGE]})") from None

    def contents(self, name: str, folder: Path | None = None, problems: Problems | None = None) -> list[RecordedFile]:
        """The content of every recorded/<device>/<name> (a pattern).

        A bad file is left out and noted in `problems`; without `problems` it raises RecordError.
        """
        contents = []
        for path in sorted((folder or RECORDED).glob(f"*/{name}")):
            try:
                contents.append((path, self.load(path)))
            except RecordError as error:
                if problems is None:
                    raise
                problems[path] = str(error)
        return contents

    def load_all(self, name: str, folder: Path | None = None, problems: Problems | None = None) -> list[RecordedFile]:
        """The same, newest first."""
        return newest_first(self.contents(name, folder, problems))


def newest_first(contents: Sequence[RecordedFile]) -> list[RecordedFile]:
    return sorted(contents, key=lambda item: (str(item[1].environment["date"]), item[0].name), reverse=True)


def on_one_gpu(contents: Sequence[RecordedFile]) -> list[RecordedFile]:
    """Of files from several devices, newest first, those of one GPU: the one with the most classes of sizes recorded.

    So a second GPU of which less is recorded does not take the first one's place. Of equal ones the newest counts.
    """
    on_gpus = [item for item in contents if item[1].environment["device"]["kind"] == "cuda"]
    folder = max((path.parent for path, _ in on_gpus), key=count_classes, default=None)
    return [item for item in on_gpus if item[0].parent == folder]


def count_classes(folder: Path) -> int:
    """How many classes of sizes are recorded of a device, in all chapters."""
    return len({path.name.split(".")[0] for path in folder.glob("ch[0-9]*.json")})


def descriptor_of(path: Path) -> int | None:
    """The open descriptor whose file this is: /dev/stdout, where stdout or stderr goes, /dev/fd/9. None of others."""
    for number in (1, 2, *map(int, re.findall(r"^/dev/fd/(\d+)$", str(path)))):
        with suppress(OSError):  # it is closed, or there is no such file
            if os.path.samestat(os.fstat(number), path.stat()):
                return number
    return None


def is_replaceable(path: Path) -> bool:
    """Whether a write puts a new file in place of this one, or of none; else it goes into a device, a pipe or stdout.

    Raises RecordError for what takes no text, and for a read-only file: its folder would let us, its owner would not.
    """
    with file_errors(path):
        if not path.exists() or descriptor_of(path) is not None:
            return not path.exists()
        mode = path.stat().st_mode
        if kind := UNWRITABLE.get(stat.S_IFMT(mode)) or "read-only" * (not os.access(path, os.W_OK)):
            raise RecordError(f"{path}: cannot be written (it is {kind})")
        return stat.S_ISREG(mode)


def check_writable(path: Path, makes_folder: bool = False) -> None:
    """Raises RecordError if a file cannot be written there. `makes_folder`: its folder need not exist yet.

    A pipe is not opened before its time: its reader would take the closing for the end.
    """
    with file_errors(path):
        if (makes_folder and path.is_dir()) or is_replaceable(path):
            parents = Path(os.path.realpath(path)).parents
            with tempfile.TemporaryFile(dir=next(folder for folder in parents if folder.exists() or not makes_folder)):
                pass


def make_folder(folder: Path) -> None:
    """Raises RecordError, which names the file that stands where a folder has to be."""
    with file_errors(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            there = next(path for path in (folder, *folder.parents) if os.path.lexists(path) and not path.is_dir())
            raise RecordError(f"{there}: is no folder, and has to be one: move it away") from None


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write atomically: a reader sees the old file or the complete new one. Raises RecordError.

    Links are followed, a file keeps its mode and owner, and what is no regular file is written into.
    """
    content = BytesIO()
    with file_errors(path):
        write(content)
        if not is_replaceable(path):
            _write_into(path, content.getvalue())
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask
        try:
            with os.fdopen(handle, "wb") as file:
                if target.exists():
                    old = target.stat()
                    with suppress(PermissionError):  # only root can give a file away
                        os.chown(part, old.st_uid, old.st_gid)
                    os.chmod(part, stat.S_IMODE(old.st_mode))
                file.write(content.getvalue())
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)


def _write_into(path: Path, content: bytes) -> None:
    """Into a device, a pipe or an open descriptor, after what is there. A pipe that nobody reads is not waited for."""
    print(end="", flush=True)  # what was printed before stands before
    number = descriptor_of(path)  # a second one shares its offset: the file opened anew would begin at 0
    handle = os.dup(number) if number else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a text as `write_file` does. Raises RecordError."""
    write_file(path, lambda file: file.write(text.encode(errors="backslashreplace")))


def write_json(path: Path, content: Any) -> None:
    """Write a dataclass as JSON, as `Format` reads it. Raises RecordError."""
    write_text(path, json.dumps(asdict(content), indent=1, allow_nan=False) + "\n")


def utc_now() -> str:
    """The date and time of a record: `2026-03-01T12:00:00+00:00`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def note_errors(problems: list[str]) -> Iterator[None]:
    """Note a file that cannot be written in `problems`, so that the run's result is not lost."""
    try:
        yield
    except RecordError as error:
        problems.append(str(error))


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Inside, no other process or thread is: for a file of the folder that is read, changed and written."""
    try:
        import fcntl
    except ImportError:  # Windows: nobody records there from two processes
        yield
        return
    with file_errors(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed, also by the process's end
        yield
    finally:
        os.close(handle)


def file_of_device(environment: dict[str, Any], name: str, folder: Path | None = None) -> Path:
    """The path of a file in a device's folder, which is created. Raises RecordError."""
    device = "".join(c if c.isalnum() else "_" for c in environment["device"]["name"].lower()).strip("_")
    path = (folder or RECORDED) / device / name
    make_folder(path.parent)
    return path
