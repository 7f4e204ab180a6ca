"""Five ratios: first ask what each version waits for, then divide. What nothing waits for is worth nothing.

`activation`: the product needs 137 GFLOP / 760 TFLOP/s = 181 us, and the matrix between, written once by the one kernel
anyway, is read and written once more by the second: 2 * 32 MiB in 16 us. 197 / 181 is 1.09. `order`: 2.2 GB need 0.5 ms
of the time of the old version, and 1.3 GB need 0.3 ms. The program waits for neither: about 1. `split`: four times
the bytes are in flight, but the memory's bandwidth ends before that: at most 73 / 31 = 2.4. `one_tile`: 42 MB need 10
us at the full bandwidth: at most 100 times as fast as 1 ms. Starts, ends and the second kernel cost some us.
`halves`: tensor cores of this GPU have one rate for both types of sums, so at most 1. A kernel may lose by it.
"""

activation = (1.02, 1.13)
order = (0.9, 1.1)
split = (1.7, 2.7)
one_tile = (40.0, 100.0)
halves = (0.65, 0.95)
