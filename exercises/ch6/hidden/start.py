"""Why each program hides what it hides: "shared", "wait", "latency", "bucket", "link" or "nothing"."""

A = None
a_ratio = None  # how many times faster A would be if its sums used no core
B = None
C = None
c_latency_ms = None  # milliseconds of C's latencies
D = None
E = None
e_least_ms = None  # milliseconds that E takes at least
F = None
f_hidden = None  # the part of F's sums that is hidden
