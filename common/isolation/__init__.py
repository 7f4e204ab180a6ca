"""A separate process for each pair, which ends with all that it started."""
