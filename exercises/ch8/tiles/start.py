"""What the kernel of the table loses most time with, and what it would gain.

Fill in: `cause` is "tail", "registers", "in flight", "sectors" or "arithmetic".
"""

cause = None
rounds = None  # of programs, from the first to the last
gain = None  # (low, high): times as fast, at most, if nothing were lost to that
