"""This device: description, limits, clocks, and other processes that use it."""
