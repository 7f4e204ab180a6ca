"""For tests/chapters/test_ch7.py: what gemv and gate_up say of their machine code."""

import pytest

from common.pairs.pair import ROOT, discover
from common.xray.occupancy import ARCHITECTURES
from common.xray.picture import xray

TILE = 32 * 4  # registers of 32 loads of 16 bytes, if all are on the way


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", ["gemv", "gate_up"])
def test_a_barrier_keeps_all_loads_of_a_tile_before_their_sums(name):
    """Without it the compiler sorts them in between: the lesson of `loads_first`, also on generations to come."""
    pytest.importorskip("triton")
    (pair,) = discover(ROOT / "ch7", name)
    sorted_in = {"baseline", "optimized/rows"}
    seen = {(p.label, k.registers >= TILE) for p in xray(pair, ARCHITECTURES) for k in p.kernels}
    assert seen == {(v.label, v.label not in sorted_in) for v in pair.versions if v.has_kernel}
