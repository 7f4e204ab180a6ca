"""The predicted time is what a pencil gives: a sum over kernels, each as long as its slowest part."""

import pytest

from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Rates, predict_time

RATES = Rates("a GPU", memory=100.0, per_key={"fp32_flops": 1000.0, "h2d_bytes": 10.0}, launch_s=0.5, issue_s=2.0)
WITH_L2 = Rates("a GPU", 100.0, RATES.per_key, 0.5, 2.0, l2_read=320.0, l2_write=160.0)


def kernel(name="k", launches=1, **amounts):
    return Kernel(name, launches, **amounts)


@pytest.mark.parametrize(
    ("of", "rates", "expected", "by"),
    [
        (kernel(distinct_bytes=400), RATES, 4 + 0.5, "memory"),
        (kernel(distinct_bytes=400, read_sectors=1000), RATES, 4 + 0.5, "memory"),  # an L2 that nobody measured
        (kernel(distinct_bytes=400, read_sectors=20, written_sectors=40), WITH_L2, 2 + 8 + 0.5, "L2"),
        (kernel(distinct_bytes=400, flops={"fp32_flops": 5000}), RATES, 5 + 0.5, "fp32"),
        (kernel(launches=20, distinct_bytes=400), RATES, 4 + 10, "launches"),
        (kernel(), RATES, 0.5, "launches"),
    ],
)
def test_a_kernel_takes_as_long_as_its_slowest_part_and_its_launches(of, rates, expected, by):
    found = predict_time(Traffic((of,)), rates)
    assert found.seconds == pytest.approx(expected)
    assert found.by == by


def test_kernels_run_one_after_the_other_and_copies_beside_them():
    kernels = kernel("a", distinct_bytes=400), kernel("b", flops={"fp32_flops": 3000})
    both = predict_time(Traffic(kernels), RATES)
    assert both.seconds == pytest.approx(4 + 3 + 2 * 0.5)
    assert both.parts == pytest.approx({"memory": 4, "fp32": 3, "launches": 1})
    assert predict_time(Traffic(kernels, {"h2d_bytes": 70}), RATES).seconds == pytest.approx(8)
    longer = predict_time(Traffic(kernels, {"h2d_bytes": 90}), RATES)
    assert (longer.seconds, longer.by) == (pytest.approx(9), "h2d")


@pytest.mark.parametrize(
    ("launches", "is_wall", "expected", "by"),
    [(20, False, 4 + 10, "launches"), (20, True, 40, "host"), (2, True, 4 + 1, "memory")],
)
def test_on_the_wall_clock_launches_take_as_long_as_the_host_needs_to_issue_them(launches, is_wall, expected, by):
    found = predict_time(Traffic((kernel(launches=launches, distinct_bytes=400),)), RATES, is_wall)
    assert (found.seconds, found.by) == (pytest.approx(expected), by)


@pytest.mark.parametrize(
    "traffic", [Traffic((kernel(flops={"fp8_flops": 1}),)), Traffic((kernel(),), {"d2h_bytes": 1})]
)
def test_without_a_rate_there_is_no_prediction(traffic):
    assert predict_time(traffic, RATES) is None


def test_nothing_takes_no_time():
    nothing = predict_time(Traffic(()), RATES)
    assert (nothing.seconds, nothing.by) == (0.0, "")
