"""The products and the layer as torch modules. All take and give multivectors: (D, batch, features), D = 4 or 8 blades.

If the input of a layer is rotated or reflected, its answer is rotated or reflected in the same way.
"""

import torch
from torch import nn

from .algebra import algebra
from .fcgp_ops import PRECISIONS, fcgp
from .sgp_ops import autocast_is_on, sgp


def _check_features(features: int) -> None:
    if features < 1:
        raise ValueError(f"there must be at least one feature, not {features!r}")


class _Weighted(nn.Module):
    """The gated product of x and y with a learned weight for each feature and path, normalized or not."""

    dimensions: int

    def __init__(self, features: int, normalize: bool = True):
        super().__init__()
        paths = len(algebra(self.dimensions).paths)
        _check_features(features)
        weight = torch.randn(paths, features) * (self.dimensions + 1) ** -0.5
        self.weight = nn.Parameter(weight.mT)  # (features, paths), in memory path by path: as the kernels read it
        self.normalize = normalize

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return sgp(x, y, self.weight, self.normalize)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, normalize={self.normalize}"


class SGP2d(_Weighted):
    """`sgp` in two dimensions, D = 4."""

    dimensions = 2


class SGP3d(_Weighted):
    """`sgp` in three dimensions, D = 8."""

    dimensions = 3


class _Connected(nn.Module):
    """The gated product of x and y with a learned matrix for each path, normalized or not.

    `precision` is how float32 is multiplied on a GPU: "ieee", "tf32x3" or "tf32" (fcgp.py).
    """

    dimensions: int

    def __init__(self, features: int, normalize: bool = True, precision: str = "ieee"):
        super().__init__()
        paths, grades = len(algebra(self.dimensions).paths), self.dimensions + 1
        _check_features(features)
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
        self.weight = nn.Parameter(torch.randn(paths, features, features) * (features * grades) ** -0.5)
        self.normalize, self.precision = normalize, precision

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return fcgp(x, y, self.weight, self.normalize, self.precision)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[-1]}, normalize={self.normalize}, precision={self.precision!r}"


class FCGP2d(_Connected):
    """`fcgp` in two dimensions, D = 4."""

    dimensions = 2


class FCGP3d(_Connected):
    """`fcgp` in three dimensions, D = 8."""

    dimensions = 3


PRODUCTS = {("sgp", 2): SGP2d, ("sgp", 3): SGP3d, ("fcgp", 2): FCGP2d, ("fcgp", 3): FCGP3d}


class CliffordLayer(nn.Module):
    """The product of x and a linear function of x, which has a matrix for each grade and a bias on the scalar blade.

    dimensions is 2 or 3; product "sgp" (a weight a path and feature) or "fcgp" (a matrix a path, and a `precision` for
    these products). Raises ValueError for others, and for an x that is not (2**dimensions, batch, features) or, without
    autocast, not of the weights' type.
    """

    def __init__(
        self, dimensions: int, features: int, product: str = "sgp", normalize: bool = True, precision: str = "ieee"
    ):
        super().__init__()
        if (product, dimensions) not in PRODUCTS:
            raise ValueError(f"no product {product!r} in {dimensions!r} dimensions: there are sgp and fcgp, in 2 and 3")
        if product == "sgp" and precision != "ieee":
            raise ValueError("precision is of matrix products: sgp has none")
        _check_features(features)
        self.dimensions, self.features, grades = dimensions, features, dimensions + 1
        spread = (features * grades if product == "sgp" else features) ** -0.5
        self.linear = nn.Parameter(torch.randn(grades, features, features) * spread)
        self.bias = nn.Parameter(torch.zeros(features))
        how = {} if product == "sgp" else {"precision": precision}
        self.product = PRODUCTS[product, dimensions](features, normalize, **how)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or x.shape[0] != 2**self.dimensions or x.shape[2] != self.features:
            expected = f"({2**self.dimensions}, batch, {self.features})"
            raise ValueError(f"x must be {expected}, not {tuple(x.shape)}")
        if x.device != self.linear.device:
            raise ValueError(f"x must be on the layer's device, {self.linear.device}, not on {x.device}")
        if x.dtype != self.linear.dtype and not autocast_is_on(x.device):
            raise ValueError(f"x must be of the layer's type, {self.linear.dtype}, not {x.dtype}")
        matrices = self.linear.unbind()  # self.linear[grade] would have, for each blade, a gradient of all grades
        y = torch.bmm(x, torch.stack([matrices[grade] for grade in algebra(self.dimensions).grades]))
        y[0] += self.bias  # in place: 1 of D blades is read and written, not all
        return self.product(x, y)

    def extra_repr(self) -> str:
        return f"{self.dimensions}, {self.features}"
