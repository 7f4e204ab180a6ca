"""Predict four ratios of chapter 4 as ranges (low, high). Recorded on an H200 in 16 bits.

Yours: replace each None. The programs are described in the exercise's text.
"""

activation = (1.03, 1.08)
split = (1.0, 1.1)
two_tiles = (30.0, 50.0)
halves = (0.7, 1.0)
