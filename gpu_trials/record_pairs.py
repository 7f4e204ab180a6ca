"""Record pairs at sizes: python gpu_trials/record_pairs.py "ch8/training_step default large small/1" "ch8/head_loss default large" ..."""

import sys

if __name__ == "__main__":
    sys.path.insert(0, ".")
    from common.machine.device import default_device
    from common.pairs.pair import ROOT, discover
    from tools.record import record_pair

    for words in map(str.split, sys.argv[1:]):
        chapter, name = words[0].split("/")
        (pair,) = discover(ROOT / chapter, name)
        record_pair(pair, words[1:] or ["default"], default_device())
