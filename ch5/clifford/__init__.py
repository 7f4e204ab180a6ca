"""Clifford layers of two and three dimensions: multivectors (blades, batch, features), multiplied in one pass on a GPU.

    from clifford import CliffordLayer

    layer = CliffordLayer(dimensions=3, features=512).cuda()
    y = layer(torch.randn(8, 4096, 512, device="cuda"))

The products alone are `ops.sgp` and `ops.fcgp`, their formulas in plain PyTorch `reference.sgp` and `reference.fcgp`.
"""

from . import ops, reference
from .algebra import Algebra, algebra
from .modules import CliffordLayer, FCGP2d, FCGP3d, SGP2d, SGP3d

__all__ = ["Algebra", "CliffordLayer", "FCGP2d", "FCGP3d", "SGP2d", "SGP3d", "algebra", "ops", "reference"]
