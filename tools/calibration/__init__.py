"""The parts of `python -m tools calibrate`; its pairs are in `pairs/`."""

RUNS = 200  # on a quiet machine: enough to tell 95 % from 90 %
