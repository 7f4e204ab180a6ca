"""What makes the step of the table long, and what it would gain without that.

Fill in: `cause` is "waits", "launches", "products", "optimizer" or "copies".
"""

cause = None
idle_us = None  # microseconds of a step in which the device has nothing to do
gain = None  # (low, high): times as fast, if that were mended
