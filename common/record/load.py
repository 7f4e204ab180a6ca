"""Read and write records, also those of the previous schema; refuse a record whose figures contradict its samples."""

from pathlib import Path
from typing import Any

import numpy as np

from common.record.figures import contradiction
from common.record.files import Format, RecordError, write_text
from common.record.result import CONTROL, SCHEMA, Record, from_dict, to_json


def read(data: dict[str, Any]) -> Record:
    """The record, after its figures have been computed again from its samples. Raises RecordError."""
    record = from_dict(data)
    with np.errstate(over="raise", divide="raise", invalid="raise"):  # an error names the problem
        wrong = contradiction(record)
    if wrong:
        raise RecordError(f"a record whose figures do not follow from its samples ({wrong})")
    return record


def from_schema_2(data: dict[str, Any]) -> dict[str, Any]:
    """Convert schema 2 to 3: `repeat` becomes `control`; `checked` becomes `too short` or `verified`."""

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
    """The verdict in schema 3."""
    if row["verdict"] != "checked":
        return str(row["verdict"])
    return "too short" if row["reason"].startswith("too short") else "verified"


SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
FORMAT = Format("a benchmark record", SCHEMA, read, from_schema_2, SCHEMA_FILE)
load_record = FORMAT.load


def save_record(record: Record, path: Path | str, replaces: bool = True) -> bool:
    """Write a record into an existing folder; False if it may not replace an existing file. Raises RecordError."""
    return write_text(Path(path), to_json(record) + "\n", replaces)
