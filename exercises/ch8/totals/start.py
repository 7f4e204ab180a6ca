"""What the kernel of the table waits for, and what it would gain.

Fill in: `cause` is "in flight", "registers", "tail", "sectors" or "occupancy".
"""

cause = None
bytes_of_sm = None  # that an SM has on the way at most
gain = None  # (low, high): times as fast, at most, if that were mended
