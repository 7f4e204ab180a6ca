"""The way to the limit: the host's time or the GPU's, whichever is longer, and the GPU's is reads and boundaries.

The reads take 3 GB / 2000 GB/s = 1.5 ms. The plain model has 24 * 60 + 8 = 1448 kernels: the host needs 6 us for each,
8.7 ms, and the GPU 1.5 ms and 1448 * 1.5 us, 3.7 ms. The longer one decides. A graph takes the host away, so 3.7 ms are
left, most of it boundaries. 122 kernels have 0.18 ms of boundaries. With dependent launch they have 0.05 ms.

With ten times the bytes and as many kernels the GPU needs 17.2 ms, and the host is done with its launches after 8.7 ms:
a graph gains nothing. What remains of the boundaries is 2.2 of 17.2 ms.

The report: 1400 kernels in 8.4 ms are 6 us each, which is the host's time. A graph of these would take 3.6 ms. So there
was none: the function writes to its cache, and this mode does not capture such a function. It says so only in its log.
"""

RATE, HOST_S, BOUNDARY_S, DEPENDENT_S = 2000e9, 6e-6, 1.5e-6, 0.4e-6  # bytes a second; seconds a kernel
PLAIN, FUSED = 24 * 60 + 8, 24 * 5 + 2  # kernels
READS_S, LARGE_S = 3e9 / RATE, 30e9 / RATE

least_ms = READS_S * 1e3
plain_ms = max(PLAIN * HOST_S, READS_S + PLAIN * BOUNDARY_S) * 1e3
graph_ms = (READS_S + PLAIN * BOUNDARY_S) * 1e3
fused_ms = (READS_S + FUSED * BOUNDARY_S) * 1e3
dependent_percent = 100 * READS_S / (READS_S + FUSED * DEPENDENT_S)
large_gain = max(PLAIN * HOST_S, LARGE_S + PLAIN * BOUNDARY_S) / (LARGE_S + PLAIN * BOUNDARY_S)
report = "no_graph"
