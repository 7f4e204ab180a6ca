"""Predict four ratios from bytes, as ranges (low, high). All arrays are larger than any cache of the GPU.

Yours: replace each None. The four programs are described in the exercise's text.
"""

one_kernel = (0.19, 0.26)
dropout = (1.03, 1.08)
softmax = (1.5, 2.1)
chain = (3.5, 5.5)
