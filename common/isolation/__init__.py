"""A process of its own for each pair, and an end for all that it started."""
