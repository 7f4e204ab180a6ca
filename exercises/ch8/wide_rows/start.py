"""What the kernel of the table loses most time with, and what mending it takes.

Fill in: `cause` is "registers", "in flight", "tail", "sectors" or "occupancy".
"""

cause = None
values = None  # of x, z and dy that a thread has to hold
warps = None  # of a program: the least power of two with which that does not happen
gain = None  # (low, high): times fewer accesses to memory in a program's code, if it does not happen
