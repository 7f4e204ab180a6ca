"""Predict four ratios from bytes, as ranges (low, high). All arrays are larger than any cache of the GPU.

Yours: replace each None. The four programs are described in the exercise's text.
"""

one_kernel = (0.21, 0.24)
dropout = (1.10, 1.15)
softmax = (1.8, 2.0)
chain = (4.0, 5.0)
