"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise's text.
"""

fits = None  # layer norm, 4096 columns: how many times faster in one pass
between = None  # the same, 8192 columns
beyond = None  # the same, 16,384 columns
backward = None  # backward pass of softmax, 16,384 columns: how many times faster in one pass
spilled = None  # the same, 65,536 columns
half = None  # dropout in float16: how many times faster without the mask
