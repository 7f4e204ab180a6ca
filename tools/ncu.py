"""Nsight Compute: its counters for each kernel that versions launch.

A child process calls each version twice; the second call is profiled. Each of its launches is repeated, with empty
caches, until all counters are read. The clocks are not changed.
"""

import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.pairs.pair import ROOT
from common.pairs.user_error import UserError
from tools.counted_launches import ChosenVersion, call_of
from tools.counter_truth import FIXED, METRICS

DEADLINE_S = 600
CHILD = "import sys; from tools.ncu import launch; launch(*sys.argv[1:])"
OPTIONS = (
    "--profile-from-start", "off", "--cache-control", "all", "--clock-control", "none",
    "--csv", "--page", "raw", "--print-units", "base", "--print-fp",
)  # fmt: skip
Key = tuple[int, str]  # (index of the chosen version, name of the kernel)
Counters = dict[str, float]


class CannotCount(UserError):
    """No GPU, no Nsight Compute, no permission, or an unknown output; str() says which."""


def ncu(*arguments: str) -> str:
    """The output of Nsight Compute. Raises CannotCount."""
    if not (path := shutil.which("ncu")):
        raise CannotCount("Nsight Compute is needed: ncu is not on the PATH")
    try:
        process = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise CannotCount(f"ncu took more than {DEADLINE_S} s") from None
    output = (process.stdout + process.stderr).strip().splitlines()
    errors = [text.removeprefix("==ERROR== ") for text in output if text.startswith("==ERROR==")]
    if process.returncode or errors:
        reason = (errors or output[-1:] or ["it said nothing"])[0]
        raise CannotCount(f"ncu ended with status {process.returncode}: {reason}")
    return process.stdout


def table(text: str) -> list[tuple[str, Counters]]:
    """(Kernel, counters) in the order of launches, from ncu's CSV. Raises CannotCount."""
    lines = csv.DictReader(io.StringIO("\n".join(text for text in text.splitlines() if text.startswith('"'))))
    launches = []
    try:
        for row in lines:
            if row["ID"]:  # the row after the head holds only units
                values = {name: row[name] for name in METRICS if row.get(name) not in (None, "", "n/a")}
                launches.append((row["Kernel Name"], {name: float(values[name].replace(",", "")) for name in values}))
    except (KeyError, ValueError) as error:
        raise CannotCount(f"not a table of Nsight Compute ({type(error).__name__}: {error})") from None
    return launches


def sum_by_kernel(launches: list[Key], profile: Iterable[tuple[str, Counters]]) -> dict[Key, Counters]:
    """The counters of each version's kernels, summed over its launches, without torch's own kernels.

    Raises CannotCount unless the profiled launches are the made ones.
    """
    names = [name for _, name in launches]
    own_launches = [entry for entry in profile if entry[0] in names]
    if [name for name, _ in own_launches] != names:
        raise CannotCount(f"Nsight Compute profiled {len(own_launches)} launches, not the {len(names)} that were made")
    totals: dict[Key, Counters] = {}
    for key, (_, counters) in zip(launches, own_launches, strict=True):
        sums = totals.setdefault(key, {})
        for name, value in counters.items():
            sums[name] = value if name in FIXED else sums.get(name, 0.0) + value
    return totals


def launch(plan: str, out: str) -> None:
    """Run under Nsight Compute: call all planned versions in turn. Writes the launched kernels."""
    import torch

    launches: list[Key] = []
    for number, version in enumerate(ChosenVersion(**version) for version in json.loads(Path(plan).read_text())):
        call = call_of(*version.load_with_inputs("cuda"))
        call()
        torch.cuda.synchronize()
        with _note_launches(number, launches):
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
    Path(out).write_text(json.dumps(launches))


@contextmanager
def _note_launches(number: int, launches: list[Key]) -> Iterator[None]:
    from unittest.mock import patch

    from triton.runtime.jit import JITFunction  # optional: not in macOS

    original_run = JITFunction.run

    def run(self: Any, *args: Any, **options: Any) -> Any:
        launches.append((number, self.__name__))
        return original_run(self, *args, **options)

    with patch.object(JITFunction, "run", run):
        yield


def profile_versions(plan: list[ChosenVersion], metrics: list[str]) -> dict[Key, Counters]:
    """The counters of each kernel of each version. Raises CannotCount."""
    with tempfile.TemporaryDirectory() as folder:
        plan_file, out = Path(folder) / "planned", Path(folder) / "launched"
        plan_file.write_text(json.dumps([asdict(version) for version in plan]))
        printed = ncu(*OPTIONS, "--metrics", ",".join(metrics), sys.executable, "-c", CHILD, str(plan_file), str(out))
        return sum_by_kernel([(number, name) for number, name in json.loads(out.read_text())], table(printed))
