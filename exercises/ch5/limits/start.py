"""What each program waits for: "bytes", "launches", "sectors", "arithmetic", "registers" or "nothing"."""

A = None
a_bytes_ms = None  # milliseconds for the bytes that A moves
B = None
C = None
D = None
d_ms = None  # milliseconds for D's FLOP
E = None
F = None
f_registers = None  # numbers of x, y and the answer that a thread of F has to hold
