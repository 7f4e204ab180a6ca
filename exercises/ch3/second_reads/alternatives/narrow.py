"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise"s text.
"""

fits = (1.0, 1.1)
between = (1.2, 1.5)
beyond = (1.8, 2.0)
backward = (1.6, 1.7)
spilled = (0.4, 0.9)
half = (1.05, 1.25)
