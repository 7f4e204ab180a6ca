"""This device: what it is, its limits, its clocks, and who else uses it."""
