"""Reading and writing of all files: one check, atomic writes, errors in one line."""

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT

RECORDED = ROOT / "recorded"  # committed results: one folder per device
Problems = dict[Path, str]  # bad files, each with one line


class RecordError(OneLine):
    """A file has the wrong content or cannot be read or written."""


@contextmanager
def _told(path: Path | str, done: str = "written") -> Iterator[None]:
    """Turn the system's error about reading or writing a file into a RecordError."""
    try:
        yield
    except OSError as error:
        raise RecordError(f"{path}: cannot be {done} ({error.strerror or error})") from None


def _parsed(content: bytes) -> Any:
    """Parse JSON whose numbers are finite. Raises RecordError."""
    try:
        return json.loads(content.decode(), parse_int=_int, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON ({error})") from None


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise RecordError(f"contains {text:.20}, which is not a finite float64")
    return value


def _int(text: str) -> int:
    _finite(text)
    return int(text)


@cache
def _validator(form: Path) -> Callable[[Any], Any]:
    """Raises JsonSchemaValueException where data are not of a form, a JSON Schema of draft 7."""
    import fastjsonschema

    return cast(Callable[[Any], Any], fastjsonschema.compile(json.loads(form.read_text("utf-8")), use_default=False))


@dataclass(frozen=True)
class Format:
    """A kind of JSON file: its name, its version (0: it has none), and how its data are read.

    `read` may raise RecordError without the path, or any error caused by a missing value or a wrong type. `older`
    converts data of the previous version. `form`: a JSON Schema's file.
    """

    what: str
    version: int
    read: Callable[[dict[str, Any]], Any]
    older: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    form: Path | None = None

    def load(self, path: Path | str) -> Any:
        """The content of a file. Raises RecordError."""
        with _told(path, "read"):
            content = Path(path).read_bytes()
        try:
            return self.read(self._checked(_parsed(content)))
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from None
        except (TypeError, KeyError, ValueError, AttributeError, ArithmeticError) as error:
            raise RecordError(f"{path}: not {self.what} ({type(error).__name__}: {error})") from None

    def _checked(self, data: Any) -> Any:
        version = data.get("schema") if isinstance(data, dict) else None
        if self.older and version == self.version - 1:
            data = self.older(data)
        elif self.version and type(version) is int and version != self.version:  # True is no version
            age = "a newer" if version > self.version else "an older"
            reads = f"schema {version}; this one reads {self.version}"
            raise RecordError(f"written by {age} version of the course ({reads})")
        if self.form is None:
            return data
        import fastjsonschema  # only for files from outside

        try:
            _validator(self.form)(data)
        except fastjsonschema.JsonSchemaValueException as error:
            raise RecordError(f"not {self.what} ({error.message[:120]})") from None
        return data

    def recorded(
        self, name: str, folder: Path | None = None, problems: Problems | None = None
    ) -> list[tuple[Path, Any]]:
        """The content of every recorded/<device>/<name> (a pattern), newest first.

        A bad file is left out and noted in `problems`; without `problems` it raises RecordError.
        """
        found = []
        for path in (folder or RECORDED).glob(f"*/{name}"):
            try:
                found.append((path, self.load(path)))
            except RecordError as error:
                if problems is None:
                    raise
                problems[path] = str(error)
        return sorted(found, key=lambda item: (str(item[1].environment["date"]), item[0].name), reverse=True)


def on_one_gpu(found: Sequence[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """Of files from several devices, newest first, those of one GPU: the one with the most classes of sizes recorded.

    So a second GPU of which less is recorded does not take the first one's place. Of equal ones the newest counts.
    """
    on_gpus = [item for item in found if item[1].environment["device"]["kind"] == "cuda"]
    chosen = max((path.parent for path, _ in on_gpus), key=classes, default=None)
    return [item for item in on_gpus if item[0].parent == chosen]


def classes(folder: Path) -> int:
    """How many classes of sizes are recorded of a device, in all chapters."""
    return len({path.name.split(".")[0] for path in folder.glob("ch[0-9]*.json")})


def check_writable(path: Path, makes_folder: bool = False) -> None:
    """Raises RecordError if a file cannot be written there. `makes_folder`: its folder need not exist yet."""
    with _told(path):
        if path.exists() and not path.is_file() and not (makes_folder and path.is_dir()):  # must not replace /dev/null
            raise RecordError(f"{path}: cannot be written (it is {'a folder' if path.is_dir() else 'no regular file'})")
        folder = next(parent for parent in path.parents if parent.exists() or not makes_folder)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_file(path: Path, write: Callable[[IO[bytes]], object], replaces: bool = True) -> bool:
    """Write atomically: a reader sees the old file or the complete new one. Raises RecordError.

    Returns whether it was written: with `replaces` false, an existing file of this name is kept.
    """
    with _told(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # mkstemp makes the file private
            if replaces:
                os.replace(name, path)
            else:
                os.link(name, path)  # a second name for a complete file: this fails if the name exists
        except FileExistsError:
            return False
        finally:
            Path(name).unlink(missing_ok=True)
    return True


def write_text(path: Path, text: str, replaces: bool = True) -> bool:
    """Write a text as `write_file` does. Raises RecordError."""
    return write_file(path, lambda file: file.write(text.encode(errors="backslashreplace")), replaces)


def write_json(path: Path, content: Any) -> None:
    """Write a dataclass as JSON, as `Format` reads it. Raises RecordError."""
    write_text(path, json.dumps(asdict(content), indent=1, allow_nan=False) + "\n")


@contextmanager
def noting(problems: list[str]) -> Iterator[None]:
    """Note a file that cannot be written in `problems`, so that the run's result is not lost."""
    try:
        yield
    except RecordError as error:
        problems.append(str(error))


def file_of_device(environment: dict[str, Any], name: str, folder: Path | None = None) -> Path:
    """The path of a file in a device's folder, which is created. Raises RecordError."""
    device = "".join(c if c.isalnum() else "_" for c in environment["device"]["name"].lower()).strip("_")
    path = (folder or RECORDED) / device / name
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path
