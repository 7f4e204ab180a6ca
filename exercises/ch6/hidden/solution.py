"""Six steps that sum their gradients: three times tell what is hidden, the other columns why.

The least time of an overlap is the longer of computation and sums, and the sum of the last bucket, which nothing can
hide. What was hidden is (one after the other - this version) / sums alone. A: 60 ms of work for a core that is busy all
the time. Without a GPU gloo's copies and additions run on the cores that compute, so `overlap` gets `same` on two
processes and two cores. B starts a sum and waits for it before the next layer. C hides all that it can, but makes 400
latencies of what were 16. D has one bucket, which is full when backward ends. E is done when its bytes are: more batch
for each gradient, or fewer bytes, would help, an order would not. F waits for one bucket of 16 and is at its limit.
"""

A = "shared"
a_ratio = 60.0 / max(40.0, 20.0)  # how many times faster A would be if its sums used no core
B = "wait"
C = "latency"
c_latency_ms = 400 * 25e-6 * 1e3  # milliseconds of C's latencies
D = "bucket"
E = "link"
e_least_ms = max(0.90, 1.80)  # milliseconds that E takes at least
F = "nothing"
f_hidden = (6.60 - 4.91) / 1.80  # the part of F's sums that is hidden
