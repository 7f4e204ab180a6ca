"""Choose a variant for a width and a GPU: where is a row when it is read again, and what fits into registers?

Yours: replace each None. The machines and the variants are described in the exercise's text.
"""

big_1024 = None  # "L1", "L2" or "memory": where the second read of `many programs` finds the row on `big`, 1024 columns
big_8192 = None  # the same, 8192 columns
big_16384 = None  # the same, 16,384 columns
small_8192 = None  # the same on `small`, 8192 columns
gain = None  # on `big`, 16,384 columns: bytes that `many programs` moves over those of `one pass`
for_big_16384 = None  # "one pass", "few programs" or "many programs"
for_big_65536 = None  # the same
for_small_65536 = None  # the same
for_wide_131072 = None  # the same
