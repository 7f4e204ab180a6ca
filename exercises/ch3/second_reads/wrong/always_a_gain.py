"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise"s text.
"""

fits = (0.95, 1.25)
between = (1.1, 1.8)
beyond = (1.6, 2.1)
backward = (1.45, 1.8)
spilled = (1.2, 1.8)
half = (1.05, 1.25)
