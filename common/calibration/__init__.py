"""What `python -m common.calibration.calibrate` is made of; the pairs it measures are in `pairs/`."""
