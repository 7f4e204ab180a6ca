"""What train.py trains: two Clifford layers that learn signed volumes, and a plain network of as many parameters.

Four points span a body of volume det(p1 - p0, p2 - p0, p3 - p0) / 6. The volume is negative if p1, p2, p3, seen from
p0, go round the other way. If the points are turned, the volume stays the same; if they are mirrored, it changes its
sign. It is a multiple of e123, the product of three vectors. Two layers can form it: the first multiplies vectors to
bivectors, the second bivectors by vectors. All bodies to learn from lie the same way: long in x, flat in z. A model
that has learned volumes, and not only bodies that lie this way, is right for turned and mirrored bodies as well.
"""

from math import isqrt

import torch
from clifford import CliffordLayer, algebra, reference
from torch import nn

EXTENT = (2.0, 1.0, 0.5)  # of a body along x, y, z; its volume's mean square is 2 / 3 with a product of 1
BODIES, BATCH = 4096, 256  # to learn from, and of these in a step
RATE = 0.02  # of the first step; it falls to nothing, along a line


def bodies(count, seed, device="cpu"):
    """Points (count, 4, 3) about their own mean, and the signed volumes (count) that they span. Drawn on the CPU."""
    points = torch.randn(count, 4, 3, generator=torch.Generator().manual_seed(seed)) * torch.tensor(EXTENT)
    points = points - points.mean(1, keepdim=True)
    return points.to(device), volumes(points).to(device)


def volumes(points):
    return torch.linalg.det(points[:, 1:] - points[:, :1]) / 6


class Clifford(nn.Module):
    """Volumes by CliffordLayers, each of which adds to what it is given; `eager`: by the formulas of reference.py.

    Without normalization, which divides by a size: a volume is one.
    """

    def __init__(self, features=16, product="sgp", eager=False):
        super().__init__()
        self.eager = eager
        self.embed = nn.Parameter(torch.randn(4, features) / 2)  # 4 points, so that a feature's variance is a point's
        self.layers = nn.ModuleList(CliffordLayer(3, features, product, normalize=False) for _ in range(2))
        self.read = nn.Parameter(torch.randn(features) / features)

    def multivectors(self, points):
        """Points (B, 4, 3) to (8, B): turn or mirror what it is given, and so will be what it answers."""
        vectors = points.permute(2, 0, 1) @ self.embed  # (3, B, features): e1, e2, e3
        x = nn.functional.pad(vectors, (0, 0, 0, 0, 1, 4))  # 0 before them, of 1, and after: e12, e13, e23, e123
        for layer in self.layers:
            weights = layer.linear, layer.bias, layer.product.weight
            x = x + (reference.layer(x, *weights, normalized=False) if self.eager else layer(x))
        return x @ self.read

    def forward(self, points):
        return self.multivectors(points)[-1]  # what there is of e123


class Plain(nn.Module):
    """Volumes by a network of three layers on the coordinates, with as many parameters as it is told, or a few less."""

    def __init__(self, parameters):
        super().__init__()
        width = max((isqrt(225 + 4 * (parameters - 1)) - 15) // 2, 1)  # width^2 + 15 width + 1: matrices and biases
        sides = [nn.Linear(12, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)]
        self.layers = nn.Sequential(*sides)

    def forward(self, points):
        return self.layers(points.flatten(1))[:, 0]


def models(seed=0, device="cpu", **how):
    """(Clifford(**how), Plain of its size), with the same first weights for the same seed. Leaves torch's seed set."""
    torch.manual_seed(seed)  # and draws on the CPU: so that all devices begin alike
    clifford = Clifford(**how)
    return clifford.to(device), Plain(size(clifford)).to(device)


def size(model):
    """How many parameters it has."""
    return sum(parameter.numel() for parameter in model.parameters())


def train(model, steps=200, seed=0, tell=lambda step, loss: None):
    """The losses, mean squared errors of BATCH bodies, of all steps of Adam. `tell` hears of each when it is done."""
    device = next(model.parameters()).device
    batches = [*zip(*(drawn.split(BATCH) for drawn in bodies(BODIES, seed, device)), strict=True)]
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    losses = []
    for step in range(steps):
        points, expected = batches[step % len(batches)]
        loss = nn.functional.mse_loss(model(points), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())  # waits for the device
        tell(step, losses[-1])
    return losses


# Do the answers turn with the bodies?


def turns(count, seed, device="cpu"):
    """Random orthogonal matrices (count, 3, 3): rotations, and every other one a rotation and a reflection."""
    drawn = torch.randn(count, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    q, r = torch.linalg.qr(drawn)
    q = q * r.diagonal(dim1=1, dim2=2).sign()[:, None]  # all directions alike
    q[::2] *= torch.linalg.det(q[::2])[:, None, None]
    q[1::2] *= -torch.linalg.det(q[1::2])[:, None, None]
    return q.float().to(device)


def on_blades(q):
    """What orthogonal matrices q (B, 3, 3) do to multivectors: (B, 8, 8), for each two blades of a grade a minor."""
    blades = algebra(3).blades
    out = q.new_zeros(len(q), 8, 8)
    for k, to in enumerate(blades):
        for i, of in enumerate(blades):
            if len(to) == len(of):
                rows, columns = ([axis - 1 for axis in blade] for blade in (to, of))
                out[:, k, i] = torch.linalg.det(q[:, rows][:, :, columns])
    return out


@torch.no_grad()
def error(model, points):
    """The root mean square of a model's errors over that of the volumes: 1 is what the answer 0 has."""
    expected = volumes(points)
    return ((model(points) - expected).square().mean() / expected.square().mean()).sqrt().item()


@torch.no_grad()
def gap(clifford, points, q):
    """How far the answers for turned bodies, all blades of them, are from the turned answers: the same of these."""
    answers = torch.einsum("bki,ib->kb", on_blades(q.cpu()).to(q), clifford.multivectors(points))
    return ((clifford.multivectors(points @ q.mT) - answers).square().mean() / answers.square().mean()).sqrt().item()
