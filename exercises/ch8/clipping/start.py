"""What the step of the table waits for, and what it would gain.

Fill in: `cause` is "waits", "launches", "products", "optimizer" or "copies".
"""

cause = None
idle_us = None  # microseconds of a step in which the device has nothing to do
gain = None  # (low, high): times as fast, if the host never waited
