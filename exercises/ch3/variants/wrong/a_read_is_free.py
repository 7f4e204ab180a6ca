"""Choose a variant for a width and a GPU: where is a row when it is read again, and what fits into registers?

Yours: replace each None. The machines and the variants are described in the exercise"s text.
"""

big_1024 = "L1"
big_8192 = "L2"
big_16384 = "memory"
small_8192 = "memory"
gain = 1
for_big_16384 = "one pass"
for_big_65536 = "few programs"
for_small_65536 = "many programs"
for_wide_131072 = "few programs"
