"""A chapter's lessons.toml: each of its pairs in a sentence, in reading order, and the sizes for sweeps.

    [softmax]
    summary = "Three passes over a row, or one."
    "runs on" = "CUDA"                            a further column of the README's table

    [softmax.sizes]
    "small/4096x256" = { columns = 256 }
    "small/4096x1024" = "SIZES"                   its arguments stand in the baseline; here is its place in the order

A baseline keeps the sizes that its lesson is about. A folder without this file has all sizes in its baselines.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.pairs.syntax import ContractError, require_of

FILE = "lessons.toml"
IN_BASELINE = "SIZES"


@dataclass(frozen=True)
class Lesson:
    """What a folder's lessons.toml has of a pair. `columns`: heading -> cell of the README's table."""

    summary: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)


def read_lessons(folder: Path) -> dict[str, Lesson]:
    """Pair -> its lesson, in reading order; none without the file. Raises ContractError."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"{path}: {error}") from None
    return {name: _lesson(path, name, table) for name, table in tables.items()}


def _lesson(path: Path, name: str, table: Any) -> Lesson:
    require_of(path, isinstance(table, dict), f"{name} must be a table: [{name}]")
    sizes = table.get("sizes", {})
    require_of(path, isinstance(sizes, dict), f"{name}.sizes must be a table: [{name}.sizes]")
    texts = {key: value for key, value in table.items() if key != "sizes"}
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    require_of(path, "summary" in texts, f"{name} has no summary: add one sentence")
    require_of(path, not wrong, f"{name} has {', '.join(wrong)}: only `sizes` may be no text")
    columns = {key: " ".join(value.split()) for key, value in texts.items()}
    return Lesson(columns.pop("summary"), sizes, columns)


def with_sweeps(baseline: Path, sizes: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """All sizes of a pair: those of its baseline's SIZES, and the `further` ones of lessons.toml in their order.

    Raises ContractError if a size stands in both, or is said to stand in a baseline that lacks it.
    """
    path, of_pair = baseline.with_name(FILE), baseline.stem.removeprefix("baseline_")
    for size, arguments in further.items():
        where = f"{of_pair}.sizes[{size!r}]"
        is_marked = arguments == IN_BASELINE
        fix = f"write its arguments, or add it to SIZES of {baseline.name}" if is_marked else f'write "{IN_BASELINE}"'
        problem = "no size of the baseline" if is_marked else "a size of the baseline, too"
        require_of(path, is_marked == (size in sizes), f"{where} is {problem}: {fix}")
    first = {size: arguments for size, arguments in sizes.items() if size not in further}
    return first | {size: sizes.get(size, arguments) for size, arguments in further.items()}
