"""Predict a second GPU before it is measured.

Each row at a default size that is recorded on the first GPU, and not stale, gets a predicted ratio. It comes from the
recorded times, the traffic counts of recorded/counts.json, and both datasheets:

- A version's least time is predicted from its counts with the first GPU's measured rates (`common.traffic.least_time`),
  then again with each rate times the quotient of the two datasheets. A version that was not counted has the amounts
  that its pair declares (`cost`). The L2, launches and the host are in no datasheet: they stay as they are.
- The part of the recorded time that the first least time explains changes to the second. The rest is latency,
  instructions and waiting: it stays. A least time above the recorded time explains all of it.

The prediction is written into the second machine's folder, recorded/<device>/predicted.json, and only while nothing of
that machine is recorded. Once it is measured, `make readme` writes the comparison beside it.
"""

import subprocess
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from common.cli import counts
from common.cli.prediction_rates import measured_sheets, rates_of_sheet
from common.machine.device import datasheet
from common.pairs.pair import ROOT, chapters, discover
from common.pairs.user_error import UserError
from common.record import files, store
from common.record.result import PairResult
from common.show.second_gpu_page import FILE, FORMAT, SCHEMA, PredictedRows, Row
from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Rates, predict_time

WHAT = ("seconds", "by", "explained")  # of PredictedTime; in Row of both arms


@dataclass(frozen=True)
class PredictedTime:
    """A version on the second machine: its time, the part that is most of its least time, and `Row.explained`."""

    seconds: float
    by: str
    explained: float


def scale_rates(rates: Rates, old: dict[str, float], new: dict[str, float], name: str) -> Rates:
    """A GPU's measured rates, each times the quotient of the datasheets where both have it."""
    by = {key: new[key] / old[key] for key in old.keys() & new.keys()}
    per_key = {key: rate * by.get(key, 1.0) for key, rate in rates.per_key.items()}
    return replace(rates, name=name, memory=rates.memory * by.get("dram_bytes", 1.0), per_key=per_key)


def declared_traffic(cost: dict[str, float]) -> Traffic:
    """What a pair says that it must move and compute, as the traffic of one kernel."""
    flops = {key: amount for key, amount in cost.items() if key.endswith("_flops")}
    copied = {key: amount for key, amount in cost.items() if key in ("h2d_bytes", "d2h_bytes")}
    moved = sum(amount for key, amount in cost.items() if key.startswith("dram"))
    return Traffic((Kernel("declared", distinct_bytes=moved, flops=flops),), copied)


def predicted_time(recorded_s: float, traffic: Traffic, first: Rates, second: Rates, is_wall: bool) -> PredictedTime:
    """A version's time on the second machine."""
    least, there = predict_time(traffic, first, is_wall), predict_time(traffic, second, is_wall)
    if not least or not there or not least.seconds:
        return PredictedTime(recorded_s, "", 0.0)
    factor = there.seconds / least.seconds
    predicted_s = recorded_s + min(least.seconds, recorded_s) * (factor - 1)
    return PredictedTime(predicted_s, there.by, least.seconds / recorded_s)


def rows(folder: Path, first: Rates, second: Rates) -> Iterator[Row]:
    """The predictions of all rows that a machine's folder has of pairs as they are now."""
    traffic = {
        (pair.source_hash, version.label): version.traffic
        for pair in counts.load_counts()
        if pair.size == "default"
        for version in pair.versions
        if version.traffic
    }
    for path in chapters().values():
        is_current = store.current_filter(discover(path))
        for record in [record for file, record in store.chapter_records(path.name) if file.parent == folder]:
            for pair in filter(is_current, record.pairs):
                if pair.size == "default":
                    yield from _rows(pair, traffic, first, second)


def _rows(pair: PairResult, traffic: dict[tuple[str, str], Traffic], first: Rates, second: Rates) -> Iterator[Row]:
    times = {}
    for label, arm in pair.arms.items():
        work = traffic.get((pair.source_hash, label)) or declared_traffic(pair.cost)
        times[label] = predicted_time(arm.median_s, work, first, second, pair.clock == "wall")
    for row in pair.rows:
        if row.ratio is not None:
            recorded = pair.arms[row.versus].median_s / pair.arms[row.variant].median_s
            row_times = {"variant": times[row.variant], "versus": times[row.versus]}
            ratio = row.ratio * row_times["versus"].seconds / row_times["variant"].seconds / recorded
            of_both = [{name: getattr(time, what) for name, time in row_times.items()} for what in WHAT]
            yield Row(
                pair.chapter, pair.name, row.variant, row.versus, pair.source_hash, pair.clock,
                row.ratio, ratio, *of_both,
            )  # fmt: skip


def commit() -> str:
    """The commit that the working tree stands on; empty outside of a repository."""
    process = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def predict(name: str) -> Path:
    """Write the prediction for a GPU, by its exact name. Raises UserError."""
    new, _ = datasheet(name)
    if not new:
        raise UserError(f"{name}: no datasheet of this name in common/machine/datasheets.json")
    predicted = predicted_rows(name, new)
    path = files.file_of_device(predicted.environment, FILE)
    if path.exists():
        raise UserError(f"{path.relative_to(files.RECORDED.parent)} exists: remove it to predict anew")
    if names := sorted(file.name for file in path.parent.iterdir()):
        raise UserError(f"{path.parent.name} is already measured ({', '.join(names[:3])}): that is no prediction")
    files.write_json(path, predicted)
    return path


def predicted_rows(name: str, new: dict[str, float]) -> PredictedRows:
    """The prediction from the GPU of which most is recorded. `new`: the datasheet's peaks. Raises UserError."""
    for path, sheet in files.on_one_gpu(measured_sheets({})):
        old, first = datasheet(sheet.environment["device"]["name"])[0], rates_of_sheet(sheet, path.parent)
        if old and first and (predictions := list(rows(path.parent, first, scale_rates(first, old, new, name)))):
            date = files.utc_now()
            environment = {"device": {"name": name}, "machine": first.name, "date": date, "commit": commit()}
            return PredictedRows(SCHEMA, environment, predictions)
    raise UserError("nothing is recorded, as it is now, of a GPU with a datasheet: there is nothing to predict from")


def run(args: Namespace) -> int:
    """Predict. Raises UserError."""
    path = predict(args.name)
    print(f"{len(FORMAT.load(path).rows)} rows predicted: {path.relative_to(ROOT)}")
    return 0
