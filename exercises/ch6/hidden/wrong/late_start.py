"""Why each program hides what it hides: "shared", "wait", "latency", "bucket", "link" or "nothing"."""

A = "shared"
a_ratio = 1.5
B = "bucket"
C = "latency"
c_latency_ms = 10.0
D = "bucket"
E = "link"
e_least_ms = 1.8
F = "nothing"
f_hidden = 0.94
