"""What is committed under recorded/<device>/: of each chapter, and each class of sizes, the record of one run.

`<chapter>.json` holds the default sizes, `<chapter>_<class>.json` those of a class: `ch3_large.json` has `large/*`. A
class is measured in one run, on one state of the machine; two classes may have other dates, software and limits.
"""

from dataclasses import replace
from pathlib import Path

from common.pair import ROOT
from common.result import Record, file_of_device, load_record, save_record

FOLDER = ROOT / "recorded"
CLASSES = ("default", "small", "medium", "large", "long", "batch")  # in this order; others behind them


def class_of(size: str) -> str:
    """`large` of `large/8192x8192`. What a CPU takes for the default size belongs to the default."""
    name = size.split("/")[0]
    return "default" if name == "cpu" else name


def recorded(chapter: str, of_class: str = "default", folder: Path | None = None) -> list[tuple[Path, Record]]:
    """A chapter's records in a class of sizes, of all devices, newest first. Raises RecordError."""
    found = [(path, load_record(path)) for path in (folder or FOLDER).glob(f"*/{_name(chapter, of_class)}")]
    return sorted(found, key=lambda item: item[1].environment["date"], reverse=True)


def recorded_classes(chapter: str, folder: Path | None = None) -> list[str]:
    """In which classes of sizes something is recorded of a chapter, in their order."""
    stems = {path.stem for suffix in ("", "_*") for path in (folder or FOLDER).glob(f"*/{chapter}{suffix}.json")}
    found = [stem.removeprefix(chapter).removeprefix("_") or "default" for stem in stems]
    return sorted(found, key=lambda name: (CLASSES.index(name) if name in CLASSES else len(CLASSES), name))


def recorded_sizes(chapter: str, folder: Path | None = None) -> list[tuple[Path, Record]]:
    """Of the GPU that was recorded last: a record for each class of sizes, in their order. Raises RecordError.

    They are several runs: what is said of two of them together must name both origins.
    """
    found = [item for name in recorded_classes(chapter, folder) for item in recorded(chapter, name, folder)]
    on_gpus = [item for item in found if item[1].environment["device"]["kind"] == "cuda"]
    last = max(on_gpus, key=lambda item: item[1].environment["date"], default=None)
    return [item for item in on_gpus if last and item[0].parent == last[0].parent]


def keep_record(record: Record, folder: Path | None = None) -> list[Path]:
    """Save a chapter's record, a file for each class of its sizes; returns them. Raises RecordError."""
    chapter, paths = record.pairs[0].chapter, []
    for of_class in dict.fromkeys(class_of(pair.size) for pair in record.pairs):
        path = file_of_device(record.environment, _name(chapter, of_class), folder or FOLDER)
        save_record(replace(record, pairs=[pair for pair in record.pairs if class_of(pair.size) == of_class]), path)
        paths.append(path)
    return paths


def _name(chapter: str, of_class: str) -> str:
    return f"{chapter}.json" if of_class == "default" else f"{chapter}_{of_class}.json"
