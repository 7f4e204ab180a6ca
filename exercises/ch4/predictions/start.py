"""Predict five ratios of chapter 4 as ranges (low, high). Recorded on an H200 in 16 bits.

Yours: replace each None. The programs are described in the exercise's text.
"""

activation = None  # product and activation in one kernel: how many times faster
order = None  # products in grouped tile order: how many times faster
split = None  # k shared by 4 programs: how many times faster
one_tile = None  # one tile, k shared by 256 programs: how many times faster
halves = None  # sums in float16: how many times faster
