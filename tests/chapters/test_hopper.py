"""What chapter 4's versions in Gluon share, as far as it runs without a GPU: which tiles, and who computes which."""

from dataclasses import replace
from importlib.util import find_spec
from itertools import chain

import pytest
import torch
from edges import module

from common.pairs.pair import ROOT, discover
from common.xray.picture import xray

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
SMS = 132  # of an H100 or H200
TABLE = {(128, 256): (1.0, 1.0), (192, 256): (1.02, 1.14), (192, 128): (0.96, 0.84), (128, 64): (0.6, 0.5)}


def soonest(*arguments):
    return module(ROOT / "ch4/hopper.py").soonest(*arguments)


@pytest.mark.parametrize(
    ("m", "n", "is_shared", "tile", "whole"),
    [
        (4096, 4096, False, (192, 256), None),  # 3 waves of 49,152 elements / 1.14 = 129,347; 4 of 32,768 = 131,072
        (2048, 2048, False, (128, 256), None),  # 1 wave; 2 waves of 192 x 128
        (64, 64 * SMS, False, (128, 64), None),  # 1 wave of any tile; the smallest wastes least
        (2056, 2056, True, (192, 256), None),  # 99 tiles, of 3 groups each: too many for 132 programs
        (3097, 4607, True, (128, 256), 396),  # 54 are left: 3.75 waves = 122,880; 5 of 192 x 128 = 128,000
        (64, 64 * SMS + 1, True, (128, 64), SMS),  # 1 is left: 1.75 waves of 8192 / 0.6 = 23,893, not 25,600
        (1, 1, True, (128, 64), 0),  # none is whole
    ],
)
def test_the_tile_whose_waves_take_the_shortest_time(m, n, is_shared, tile, whole):
    """The last wave's tiles may be shared by groups."""
    assert soonest(TABLE, m, n, SMS, is_shared) == (tile, whole)


def copied(x, y):
    y[:, : x.shape[1]] = x
    return y


def test_what_tma_reads_is_copied_unless_its_rows_begin_at_multiples_of_16_bytes(monkeypatch):
    helper, x = module(ROOT / "ch4/tma_layout.py"), torch.randn(24, 64).half()
    monkeypatch.setattr(helper, "copied", copied)  # a kernel
    for wrong in (x[:, :61].contiguous(), x[:, ::2], x.T, x[:, 1:], x[:1].expand(24, 64)):
        y = helper.aligned(wrong)
        assert torch.equal(y, wrong) and y.data_ptr() != wrong.data_ptr()
        assert y.stride(1) == 1 and y.stride(0) % 8 == 0 and y.data_ptr() % 16 == 0
    assert all(helper.aligned(right) is right for right in (x, x[:, :61], x[:, 8:]))
    y, is_transposed = helper.describable(x.T)
    assert is_transposed and torch.equal(y, x)


def turns(*arguments):
    return module(ROOT / "ch4/attention_tiles.py").turns(*arguments)


def test_a_tile_goes_to_the_program_that_is_free_first():
    """The longest first: 5 steps and 4, then 3 after the 4, and 2 after the 5."""
    assert turns(1, 512, (2, 128, 3), True, 1, 2) == ([[3, 0, -1], [2, 1, -1]], 7)


@pytest.mark.parametrize(
    ("together", "found"), [(1, [[1, 2, -1], [0, 3, -1]]), (2, [[1, 0, -1], [3, 2, -1]])], ids=["alone", "pairs"]
)
def test_tiles_of_some_heads_come_together(together, found):
    assert turns(2, 256, (2, 128, 3), True, together, 2)[0] == found


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shape", [(1, 128, 3), (2, 128, 3), (3, 128, 3), (2, 64, 2)])
def test_every_tile_has_one_program(shape, causal):
    heads, n, (groups, block_n, _) = 7, 1001, shape
    blocks = -(-n // (64 * groups))
    found, steps = turns(heads, n, shape, causal, 4, 10)
    tiles = [[tile for tile in program if tile >= 0] for program in found]
    assert sorted(chain(*tiles)) == list(range(heads * blocks))
    assert {len(program) for program in found} == {max(map(len, tiles)) + 1} and all(row[-1] == -1 for row in found)
    ends = [[min((tile % blocks + 1) * 64 * groups, n) if causal else n for tile in program] for program in tiles]
    assert steps == max(sum(-(-end // block_n) + groups - 1 for end in program) for program in ends)


@pytest.mark.usefixtures("in_this_process")
def test_attention_with_few_tiles_has_one_group_which_spills_nothing():
    (pair,) = discover(ROOT / "ch4", "attention")
    pair = replace(pair, variants=[version for version in pair.variants if version.label == "optimized/tuned"])
    _, picture = xray(pair, ["sm_90"], "check/wide")
    assert [(kernel.threads, kernel.spills) for kernel in picture.kernels] == [(256, 0)], picture.reason  # 4 warps load
