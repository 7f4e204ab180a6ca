"""Six programs, six symptoms.

A and D have as few warps as each other. What counts is the product of warps, lanes, bytes of a load and loads in a
row: 1536 bytes are too few, 24,576 are enough. B and F both change an order. B wastes sectors in memory; F uses them
all, and then waits for a bank of its own SM, which no count of sectors shows. C and E leave memory nearly idle. C
waits for 16 addresses in L2. E computes everything twice, since each warp goes through both branches. Of each program
ask first how long its bytes, its FLOP and its additions take alone: the longest of these, or a factor between it and
the measured time, names the cause.
"""

A = "in flight"
a_in_flight = 12 * 32 * 4 * 1  # bytes in each SM
B = "sectors"
C = "queue"
c_ms = 1e3 * 250e6 / 16 / 1e9  # milliseconds for the additions to one address
D = "nothing"
E = "divergence"
F = "banks"
