"""What the steps of the profile wait for, and what they would gain.

Fill in: `cause` is "waits", "launches", "products", "optimizer" or "copies".
"""

cause = None
waits = None  # calls in which the host waits until the GPU is done
gain = None  # (low, high): times as fast, if the GPU had no gap after a wait
