"""Predict four ratios from bytes, as ranges (low, high). All arrays are larger than any cache of the GPU.

Yours: replace each None. The four programs are described in the exercise's text.
"""

one_kernel = None  # the time of the one kernel, as a part of the time of the four steps
dropout = None  # how many times faster without the mask
softmax = None  # how many times faster in one pass
chain = None  # how many times faster in one kernel
