"""Four ratios: first ask what each version waits for, then divide. What nothing waits for is worth nothing.

`activation`: the product needs 1.1 TFLOP / 760 TFLOP/s = 1450 us. The matrix between, written once by the one kernel
anyway, is read and written once more by the second: 2 * 128 MiB in 62 us. 1512 / 1450 is 1.04. `split`: twice the bytes
are in flight, but the memory's bandwidth ends before that, at 31 us, and two launches of 5 us follow: at best 47 / 41.
`two_tiles`: 75 MB need 18 us at the full bandwidth: at most 57 times as fast as 1 ms. Starts, ends and launches cost
some us.
`halves`: tensor cores of this GPU have one rate for both types of sums, so at most 1. It loses by its loop, which ends
each step with no product in flight.
"""

activation = (1.0, 1.1)
split = (0.95, 1.15)
two_tiles = (25.0, 57.0)
halves = (0.65, 0.95)
