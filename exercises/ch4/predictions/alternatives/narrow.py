"""Predict five ratios of chapter 4 as ranges (low, high). Recorded on an H200 in 16 bits.

Yours: replace each None. The programs are described in the exercise's text.
"""

activation = (1.06, 1.1)
order = (0.93, 1.02)
split = (1.9, 2.3)
one_tile = (50.0, 80.0)
halves = (0.7, 1.0)
