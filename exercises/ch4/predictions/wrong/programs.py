"""Predict five ratios of chapter 4 as ranges (low, high). Recorded on an H200 in 16 bits.

Yours: replace each None. The programs are described in the exercise's text.
"""

activation = (1.02, 1.13)
order = (0.9, 1.1)
split = (3.0, 4.5)
one_tile = (40.0, 100.0)
halves = (0.65, 0.95)
