"""What `python -m common.calibration` is made of; the pairs it measures are in `pairs/`."""
