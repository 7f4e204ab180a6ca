"""Records read and written: what an older version of the course wrote, too, and none whose figures contradict it."""

from pathlib import Path
from typing import Any

import numpy as np

from common.record.figures import contradiction
from common.record.files import Format, RecordError, write_text
from common.record.result import CONTROL, SCHEMA, Record, from_dict, to_json


def read(data: dict[str, Any]) -> Record:
    """The record, whose figures are computed again from its samples. Raises RecordError."""
    record = from_dict(data)
    with np.errstate(over="raise", divide="raise", invalid="raise"):  # which says what is wrong, in place of a warning
        wrong = contradiction(record)
    if wrong:
        raise RecordError(f"a record whose figures do not follow from its samples ({wrong})")
    return record


def from_schema_2(data: dict[str, Any]) -> dict[str, Any]:
    """In the words of 3: `repeat` is `control`; `checked` is `too short` or `verified`."""

    def named(label: str) -> str:
        return CONTROL if label == "repeat" else label

    pairs = []
    for pair in data["pairs"]:
        arms = {named(label): arm for label, arm in pair["arms"].items()}
        orders = [[list(map(named, order)) for order in block] for block in pair["orders"]]
        rows = [{**row, "verdict": _verdict(row)} for row in pair["rows"]]
        pairs.append({**pair, "arms": arms, "orders": orders, "rows": rows})
    return {**data, "schema": SCHEMA, "pairs": pairs}


def _verdict(row: dict[str, Any]) -> str:
    """`checked` meant both."""
    if row["verdict"] != "checked":
        return str(row["verdict"])
    return "too short" if row["reason"].startswith("too short") else "verified"


SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
FORMAT = Format("a benchmark record", SCHEMA, read, from_schema_2, SCHEMA_FILE)
load_record = FORMAT.load


def save_record(record: Record, path: Path | str, replaces: bool = True) -> bool:
    """Write a record into a folder that exists; False if there is one that it may not replace. Raises RecordError."""
    return write_text(Path(path), to_json(record) + "\n", replaces)
