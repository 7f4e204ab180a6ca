"""What the steps of the profile wait for, and what they would gain.

Fill in: `cause` is "data", "products", "optimizer", "small operators" or "copies".
"""

cause = None
gain = None  # (low, high): times as fast, if no step waited for that any more
workers = None  # processes
