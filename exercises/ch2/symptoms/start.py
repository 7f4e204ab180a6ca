"""What holds each program up: "sectors", "in flight", "queue", "banks", "divergence" or "nothing"."""

A = None
a_in_flight = None  # bytes in each SM
B = None
C = None
c_ms = None  # milliseconds for the additions to one address
D = None
E = None
F = None
