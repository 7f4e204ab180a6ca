"""Read and write records; refuse a record whose figures contradict its samples."""

from pathlib import Path
from typing import Any

import numpy as np

from common.record.figures import contradiction
from common.record.files import Format, RecordError, write_text
from common.record.result import SCHEMA, Record, from_dict, to_json


def read(data: dict[str, Any]) -> Record:
    """The record, after its figures have been computed again from its samples. Raises RecordError."""
    record = from_dict(data)
    with np.errstate(over="raise", divide="raise", invalid="raise"):  # an error names the problem
        wrong = contradiction(record)
    if wrong:
        raise RecordError(f"a record whose figures do not follow from its samples ({wrong})")
    return record


SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
FORMAT = Format("a benchmark record", SCHEMA, read, SCHEMA_FILE)
load_record = FORMAT.load


def save_record(record: Record, path: Path | str, replaces: bool = True) -> bool:
    """Write a record into an existing folder; False if it may not replace an existing file. Raises RecordError."""
    return write_text(Path(path), to_json(record) + "\n", replaces)
