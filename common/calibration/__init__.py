"""The parts of `python -m common.calibration`; its pairs are in `pairs/`."""
