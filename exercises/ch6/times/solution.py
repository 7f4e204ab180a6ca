"""Seven figures from t = latency + S * factor / bus bandwidth, with the factors of nccl-tests.

With n = 8 the factor is 2 * 7 / 8 = 1.75 for an all-reduce and 7 / 8 for an all-gather or a reduce-scatter. The factor
says how often a byte of S crosses a process's link, so the bus bandwidth (algbw times the factor) can be compared with
the wires, whatever the collective is. algbw cannot: an all-gather at 500 GB/s needs 438 GB/s of each link, which is
possible, and an all-reduce at 300 GB/s needs 525 GB/s, which is not.

`big_ms`: 1 GB * 1.75 / 400 GB/s is 4.375 ms, and a latency. `many_us`: 200 latencies are 4000 us, all bytes 57 us.
`flat_us` keeps the bytes and one latency. `even_mb`: 20 us * 400 GB/s / 1.75. Below it an all-reduce costs its latency,
above it its bytes. `halves`: an all-reduce is a reduce-scatter and an all-gather, so both together send the same bytes,
and only one latency is added. That is why a step with sharded optimizer states costs no more on the link.
"""

LATENCY_S, BUS, N = 20e-6, 400e9, 8  # a collective's fixed time; bytes a second; processes
ALL_REDUCE, HALF = 2 * (N - 1) / N, (N - 1) / N

big_ms = (LATENCY_S + 1e9 * ALL_REDUCE / BUS) * 1e3
big_algbw = 1e9 / (LATENCY_S + 1e9 * ALL_REDUCE / BUS) / 1e9
many_us = 200 * (LATENCY_S + 65_536 * ALL_REDUCE / BUS) * 1e6
flat_us = (LATENCY_S + 200 * 65_536 * ALL_REDUCE / BUS) * 1e6
even_mb = LATENCY_S * BUS / ALL_REDUCE / 1e6
halves = 2 * (LATENCY_S + 1e9 * HALF / BUS) / (LATENCY_S + 1e9 * ALL_REDUCE / BUS)
claim = "all_reduce"
