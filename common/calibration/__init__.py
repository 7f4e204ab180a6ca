"""What `python -m common.calibrate` is made of; the pairs it measures are in `pairs/`."""
