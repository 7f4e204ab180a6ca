"""What chapter 4's versions in Gluon share, as far as it runs without a GPU: the choice of a tile."""

from importlib.util import find_spec

import pytest
from edges import module

from common.pairs.pair import ROOT

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
SMS = 132  # of an H100 or H200
RATES = {(128, 256): 1.0, (192, 128): 0.99, (128, 64): 0.6}


def soonest(*arguments):
    return module(ROOT / "ch4/hopper.py").soonest(*arguments)


@pytest.mark.parametrize(
    ("m", "n", "tile"),
    [
        (8192, 8192, (192, 128)),  # 21 waves of 24,576 elements / 0.99 = 521,309; 16 of 32,768 = 524,288
        (4096, 4096, (128, 256)),  # 4 waves of 32,768 = 131,072; 6 of 24,576 / 0.99 = 148,945
        (2048, 2048, (128, 256)),  # 1 wave; 2 waves of 192 x 128
        (1, 1, (128, 64)),  # 1 wave of any tile
        (64, 64 * SMS, (128, 64)),  # 1 wave of any tile, again; the smallest wastes least
        (64, 64 * SMS + 1, (192, 128)),  # 2 waves of 8192 / 0.6, 1 of 24,576 / 0.99
    ],
)
def test_the_tile_whose_waves_take_the_shortest_time(m, n, tile):
    assert soonest(RATES, m, n, SMS) == tile
