"""Predict four ratios of chapter 4 as ranges (low, high). Recorded on an H200 in 16 bits.

Yours: replace each None. The programs are described in the exercise's text.
"""

activation = None  # product of 8192^3 and activation in one kernel: how many times faster
split = None  # k shared by 2 programs: how many times faster
two_tiles = None  # two tiles, k of each shared by 132 programs: how many times faster
halves = None  # sums in float16: how many times faster
