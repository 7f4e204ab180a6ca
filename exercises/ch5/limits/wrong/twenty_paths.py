"""What each program waits for: "bytes", "launches", "sectors", "arithmetic", "registers" or "nothing"."""

A = "bytes"
a_bytes_ms = 47 * 64e6 / 4000e9 * 1e3  # milliseconds for the bytes that A moves
B = "launches"
C = "nothing"
D = "arithmetic"
d_ms = 20 * 2 * 4096 * 512 * 512 / 50e12 * 1e3  # milliseconds for D's FLOP
E = "sectors"
F = "registers"
f_registers = 3 * 8 * 2048 // (4 * 32)  # numbers of x, y and the answer that a thread of F has to hold
