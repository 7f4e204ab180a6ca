"""Judge wrong versions that are not judged yet, and keep what was said of them in results.json."""

import signal

if __name__ == "__main__":  # imports take a second or more; Ctrl-C during them ends the program without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from fnmatch import fnmatchcase
from itertools import chain

from common.machine.device import default_device
from common.program import Parser, UsageError, finish, status_of
from mutants import answers, lessons, mutations
from mutants.results import Group, load, save


def groups() -> list[Group]:
    return [*chain(lessons.groups(), answers.groups(), mutations.groups())]


def main(*words: str) -> int:
    parser = Parser("mutants", description=str(__doc__))
    parser.add_argument("of", nargs="*", help="ch3, ch3 softmax (a lesson) or ch3/softmax (an exercise); else all")
    parser.add_argument("--anew", action="store_true", help="also what is judged already")
    args = parser.parse_args(words or None)
    subject, everything, problems = " ".join(args.of) or "*", groups(), list[str]()
    patterns = [subject, f"{subject} *", f"{subject}/*"]
    chosen = [group for group in everything if any(fnmatchcase(group.subject, pattern) for pattern in patterns)]
    if not chosen:
        raise UsageError(f"no wrong versions of {subject}: they stand in tests/mutants/chN.py, or in exercise.toml")
    for group in chosen:
        problems += judge(group, args.anew)
    keys = {group.key(name) for group in everything for name in group.wrong}
    save({key: result for key, result in load().items() if key in keys})
    print("\n".join([*problems, f"not as they have to be: {len(problems)}"]))
    return 1 if problems else 0


def judge(group: Group, anew: bool) -> list[str]:
    """Judges one group, keeps each result in the file as it is then, and returns a line for each problem."""
    results = load()
    names = [*group.wrong] if anew else [*group.stale(results), *group.problems(results)]
    for key, result in group.results(names, default_device()):
        print(f"{key}: {'caught' if result['caught'] else 'PASSED'}: {result['message'][:160]}", flush=True)
        save(load() | {key: result})
    return [f"{group.key(name)}: {problem}" for name, problem in group.problems(load()).items()]


if __name__ == "__main__":
    finish(lambda: status_of("mutants", main))
