"""The versions of a pair: exact at small sizes, sampled at large ones, and why some are not counted."""

import pytest
from samples import one_pair, version, write_pair

from common.pairs.pair import discover
from common.traffic.versions import count_pair, is_exact
from common.xray.occupancy import MACHINES

pytestmark = pytest.mark.usefixtures("in_this_process")
H100 = MACHINES["sm_90"]
COST = 'def cost(x, w_shift):\n    return {"dram_bytes": 2 * x.nbytes}'


def of(found):
    return {each.label: each for each in found}


def test_each_version_is_counted_against_its_cost(tmp_path):
    pair = one_pair(tmp_path, version(extra=COST), version("return (x + w_shift) + x", extra=COST))
    for size in ("check", "default"):  # real; on meta
        found, n = of(count_pair(pair, size, H100)), pair.sizes[size]["n"]
        assert [(each.reason, each.cost) for each in found.values()] == [("", {"dram_bytes": 8 * n})] * 2
        assert {label: each.traffic.launches for label, each in found.items()} == {"baseline": 2, "optimized": 2}
        assert found["baseline"].traffic.total.read_bytes == 4 * (3 * n + 1)
        assert found["optimized"].traffic.total.read_bytes == 4 * (2 * n + 1)
        assert found["optimized"].unit == 8 * n


def test_setup_is_not_counted(tmp_path):
    extra = 'def setup(x, w_shift):\n    return {"y": torch.zeros_like(x)}'
    pair = one_pair(tmp_path, version("return torch.add(x, w_shift, out=y)", "x, w_shift, y", extra=extra))
    found = of(count_pair(pair, "check", H100))["optimized"].traffic
    assert (found.launches, found.allocated_bytes) == (1, 0)


def test_small_sizes_are_exact():
    sizes = ("check", "check/one", "count", "default", "counted/2d")
    assert [size for size in sizes if is_exact(size)] == ["check", "check/one", "count"]


def test_one_that_fails_or_dies_leaves_the_others(tmp_path, in_its_process):
    torn = version("return x + torch.ones(3, device=x.device)")  # shapes that do not fit
    dies = version("import os; os._exit(3)")
    texts = {"torn": torn, "wrong": version("return x + y"), "dies": dies, "fine": version()}
    write_pair(tmp_path, "double", texts)
    found = count_pair(discover(tmp_path)[0], "check", H100)
    assert [each.label for each in found] == [
        "baseline", "optimized/dies", "optimized/fine", "optimized/torn", "optimized/wrong",
    ]  # fmt: skip
    assert [each.failed for each in found] == [False, True, False, True, True]
    assert "must match the size" in found[3].reason
    assert "name 'y' is not defined" in found[4].reason
    assert "3" in found[1].reason
    assert found[2].traffic == found[0].traffic


def test_a_gpu_can_be_asked_for_its_size(tmp_path):
    run = "return x.repeat(torch.cuda.get_device_properties(0).multi_processor_count)"
    pair = one_pair(tmp_path, version(run, extra='DEVICE = "cuda"'), version(run, extra='DEVICE = "cuda"'))
    found = of(count_pair(pair, "default", H100))["optimized"]
    assert found.traffic.allocated_bytes == 4096 * 4 * H100.sms


SQUARE = 'return {"x": torch.randn(n, n, device=device)}'
CAPTURE = """DEVICE = "cuda"
def setup(x):
    static, graph = x.clone(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = static @ static + static
    return {"static": static, "graph": graph, "y": y}"""


def test_what_a_graph_captured_is_asked_for_by_each_replay(tmp_path):
    """And nothing by what was done before."""
    baseline = version("return x @ x + x", "x", SQUARE, 'DEVICE = "cuda"')
    calls = "static.copy_(x)\ngraph.replay()\ngraph.replay()\nreturn y"
    pair = one_pair(tmp_path, version(calls, "x, static, graph, y", SQUARE, CAPTURE), baseline)
    found = count_pair(pair, "check", H100)
    once, twice = ({kernel.name: kernel.launches for kernel in each.traffic.kernels} for each in found)
    assert once == {"torch.mm": 1, "torch.add": 1}
    assert twice == {"torch.copy_": 1, "torch.mm": 2, "torch.add": 2}
