"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise's text.
"""

fits = (1.0, 1.1)
between = (1.2, 1.35)
beyond = (1.6, 1.7)
short = (1.7, 1.9)
spilled = (1.1, 1.2)
half = (1.05, 1.25)
