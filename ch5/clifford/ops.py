"""The products as PyTorch operators: `sgp` (weighted) and `fcgp` (fully connected), on a GPU and on a CPU."""

from .fcgp_ops import fcgp
from .sgp_ops import sgp

__all__ = ["fcgp", "sgp"]
