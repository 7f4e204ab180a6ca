"""What holds each program up: "sectors", "in flight", "queue", "banks", "divergence" or "nothing"."""

A = "sectors"
a_in_flight = 1536  # bytes in each SM
B = "sectors"
C = "queue"
c_ms = 15.6  # milliseconds for the additions to one address
D = "nothing"
E = "divergence"
F = "banks"
