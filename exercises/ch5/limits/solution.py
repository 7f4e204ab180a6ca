"""Six Clifford layers, six limits.

Compute three times for each program: bytes over the bandwidth, kernels times 4 us, FLOP over the roof. The longest is
what it waits for, if it is near the measured time. A: 47 u are 3.01 GB, 0.75 ms; its kernels take 0.48 ms. B: the same
kernels with a u of 0.25 MB: 0.003 ms for the bytes, and still 0.48 ms for the kernels. C: 3 u take 0.048 ms, so there
is nothing to win. D: 44 products of matrices, 2 * 4096 * 512 * 512 FLOP each, 1.89 ms. E and F have the bytes of C, and
longer times: E asks L2 for 8 times the sectors, F has no registers for its 384 numbers a thread and writes some away.
"""

A = "bytes"
a_bytes_ms = 47 * 64e6 / 4000e9 * 1e3  # milliseconds for the bytes that A moves
B = "launches"
C = "nothing"
D = "arithmetic"
d_ms = 44 * 2 * 4096 * 512 * 512 / 50e12 * 1e3  # milliseconds for D's FLOP
E = "sectors"
F = "registers"
f_registers = 3 * 8 * 2048 // (4 * 32)  # numbers of x, y and the answer that a thread of F has to hold
