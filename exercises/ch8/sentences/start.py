"""What the steps of the profile wait for, and what they would gain.

Fill in: `cause` is "data", "products", "optimizer", "compilation" or "small operators".
"""

cause = None
gain = None  # (low, high): times as fast, if no step waited for that any more
versions = None  # of the compiled function, when this call ends
