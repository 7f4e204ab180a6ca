"""Judge the mutants that can run here, and keep what was said of them in results.json."""

import json
import sys
from fnmatch import fnmatchcase

from common.machine.device import default_device
from common.program import UsageError, finish, status_of
from common.record.files import write_text
from mutants import REJECTED, RESULTS, hash_of, judge, mutants, results


def main(chapter: str = "*", pair: str = "*") -> int:
    found, passed, device = results(), 0, default_device()
    if not any(fnmatchcase(of, chapter) and fnmatchcase(name, pair) for of, name in mutants()):
        raise UsageError(f"there is no wrong version of {chapter} {pair}")
    for (of, name), wrong in mutants().items():
        if not (fnmatchcase(of, chapter) and fnmatchcase(name, pair)):
            continue
        for what, said in judge(of, name, wrong, device).items():
            (mutant,) = [each for each in wrong if each.what == what]
            key = f"{of} {name}: {what}"
            print(f"{key}: {said['verdict']}: {said['reason']}", flush=True)
            if said["verdict"] != "skipped":
                found[key] = {"hash": hash_of(of, name, mutant), "on": device.split(":")[0], **said}
                passed += said["verdict"] not in REJECTED and not mutant.passes
        write_text(RESULTS, json.dumps(found, indent=1, sort_keys=True) + "\n")
    known = {f"{of} {name}: {mutant.what}" for (of, name), wrong in mutants().items() for mutant in wrong}
    write_text(RESULTS, json.dumps({key: found[key] for key in sorted(known & found.keys())}, indent=1) + "\n")
    print(f"{passed} passed that are wrong")
    return 1 if passed else 0


if __name__ == "__main__":
    finish(lambda: status_of("mutants", lambda: main(*sys.argv[1:3])))
