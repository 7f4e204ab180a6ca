"""Seven figures of the way to the limit: launches, a graph, fewer kernels, dependent launch.

Yours: replace each None. The machine and the model are described in the exercise's text.
"""

least_ms = None  # milliseconds
plain_ms = None  # milliseconds
graph_ms = None  # milliseconds
fused_ms = None  # milliseconds
dependent_percent = None  # percent of the limit
large_gain = None  # a ratio of times
report = None  # "no_graph", "memory", "boundaries" or "host_slow"
