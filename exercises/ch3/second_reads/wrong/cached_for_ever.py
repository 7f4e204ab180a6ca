"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise's text.
"""

fits = (0.95, 1.25)
between = (1.1, 1.45)
beyond = (1.0, 1.3)
short = (1.5, 2.0)
spilled = (1.0, 1.3)
half = (1.05, 1.25)
