"""Record pairs: python gpu_trials/record_pairs.py "ch8/training_step large small/1, ch7/decode default" from the root.

The sizes of a pair are measured in one run (it is checked once), its rows are printed with their reasons, and what is
right is kept. Ctrl-C (timeout -s INT) keeps what there is.
"""

import sys
import time
from dataclasses import replace


def main():
    from common.engine import runner
    from common.machine.device import default_device
    from common.pairs.pair import ROOT, discover
    from common.record import store
    from common.record.outcome import FAILED
    from common.show import words

    runner.sizes_of = lambda pair, wanted, on_cpu: [s for s in pair.timed_sizes if s in wanted.split(",")]  # exact names
    for name, *sizes in map(str.split, " ".join(sys.argv[1:]).split(",")):
        chapter, pair_name = name.split("/")
        (pair,) = discover(ROOT / chapter, pair_name)
        begin = time.time()
        record = runner.run_pairs([pair], ",".join(sizes or ["default"]), default_device())
        for result in record.pairs:
            for row in result.rows:
                reason = words.text(row.reason) if row.reason else ""
                print("  ", result.size, row.variant, words.word(row.verdict), reason, flush=True)
            print("   seconds", {k: round(v, 1) for k, v in result.spent_s.items()})
        kept = [r for r in record.pairs if r.arms and not any(row.verdict in FAILED for row in r.rows)]
        if kept:
            store.keep_record(replace(record, pairs=kept))
        print(f"### {name} {sizes}: {time.time() - begin:.1f} s", flush=True)
        if record.environment["interrupted"]:
            return


if __name__ == "__main__":
    sys.path.insert(0, ".")
    main()
