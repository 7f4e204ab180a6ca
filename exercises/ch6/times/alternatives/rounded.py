"""Predict seven figures of collectives on 8 GPUs from their latency and their bandwidth.

Yours: replace each None. The machine is described in the exercise's text.
"""

big_ms = 4.4
big_algbw = 227
many_us = 4060.0
flat_us = 77.0
even_mb = 4.6
halves = 1.0
claim = "all_reduce"
