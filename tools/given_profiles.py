"""Record the profiles that exercises give to their readers.

A solution of the kind `diagnose` may have the functions `inputs` and `run` of a program. Its profile is kept beside it
as profile.json.gz. The answers and the messages in exercise.toml then have to follow from the new profile: a test
compares their figures.
"""

import ast
import hashlib
import sys
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

from common.isolation import worker
from common.learn.exercise import PROFILE, Exercise, exercises, find
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.source import dump_cached
from common.pairs.user_error import UserError
from common.profiling.recorder import record_versions
from common.record import profile_file
from common.record.files import utc_now
from common.record.profile_file import About, Profile
from common.show.timeline_text import profile_text

PROGRAM = "program"  # what the version is called: its file's name would tell nothing more


def program_hash(exercise: Exercise) -> str:
    """Of the functions and classes in the solution: what was profiled, without answers and docstrings."""
    nodes = ast.parse(exercise.solution.read_bytes()).body
    text = "\n".join(dump_cached(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record(exercise: Exercise, device: str) -> Profile:
    """Raises UserError: the solution has no program that is profiled, or the program fails."""
    if exercise.kind != "diagnose" or "def run(" not in exercise.solution.read_text(encoding="utf-8"):
        given = ", ".join(each.id for each in exercises() if each.profile)
        raise UserError(f"{exercise.id} gives no profile to its readers: these do: {given}")
    info, _ = survey_apart(device, with_limits=False)
    environment = {"device": dict(info), "versions": versions(), "platform": sys.platform, "date": utc_now()}
    name, code = exercise.folder.name, program_hash(exercise)
    about = About(exercise.chapter, name, PROGRAM, info["kind"], {}, code, environment, 1.0, 1.0)
    version: Any = SimpleNamespace(path=exercise.solution, label=PROGRAM)
    found = worker.call(record_versions, [version], {}, about, device, deadline_s=120.0)[PROGRAM]
    if isinstance(found, str):
        raise UserError(f"{exercise.id}: {found}")
    return found


def run(args: Namespace) -> int:
    """Record. Returns the exit status. Raises UserError."""
    for exercise in map(find, args.id):
        profile = record(exercise, args.device or default_device())
        profile_file.save(profile, exercise.folder / PROFILE)
        print(profile_text(profile, None))
    return 0
