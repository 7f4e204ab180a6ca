"""torch.compile once more, told to compute again rather than to keep.

TorchInductor writes to memory what takes more than 4 reads or 30 operations to compute (torch/_inductor/config.py), so
that little is computed twice. A blade of a product of multivectors reads more: 8 others in 2D, 16 in 3D.
"""

from compiled import compiled

THRESHOLDS = ("realize_reads_threshold", "realize_opcount_threshold", "realize_acc_reads_threshold")
NEVER = 1_000_000


def inlined(function, like, *fixed):
    """What `compiled` gives, with these thresholds out of reach."""
    return compiled(function, like, *fixed, options=tuple((threshold, NEVER) for threshold in THRESHOLDS))
