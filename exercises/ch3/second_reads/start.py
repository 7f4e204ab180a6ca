"""Predict six ratios of this chapter as ranges (low, high): what does a second read of a row cost?

Yours: replace each None. The programs are described in the exercise's text.
"""

fits = None  # layer norm, 4096 columns of float32: how many times faster in one pass
between = None  # RMS norm, 16,384 columns of float16
beyond = None  # backward pass of softmax, 16,384 columns of float16
short = None  # layer norm, 768 columns of float16
spilled = None  # softmax, 65,536 columns of float16
half = None  # dropout in bfloat16: how many times faster without the mask
