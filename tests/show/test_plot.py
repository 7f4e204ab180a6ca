"""The figures show the record's own values, and every axis says what it is."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer
from samples import arm, because, pair_result, record

from common.machine.limits import Limit
from common.record.result import Row
from common.show import heatmap, plot

ROWS = {
    "optimized": ("faster", 2.5, (2.4, 2.6)),
    "optimized/b": ("slower", 0.5, (0.45, 0.6)),
    "optimized/c": ("same", 1.0, (0.99, 1.01)),
    "optimized/d": ("unsure", 1.1, (0.8, 1.4)),
}
LIMITS = {
    "dram_bytes": Limit(4e12, 5e12, "copy", "a datasheet"), "fp32_flops": Limit(50e12, None, "product", ""),
    "bf16_flops": Limit(800e12, 990e12, "product", "a datasheet"),
}  # fmt: skip


@pytest.fixture
def full():
    rows = [Row(variant, "baseline", verdict, "", *figures) for variant, (verdict, *figures) in ROWS.items()]
    rows += [
        Row("optimized/b", "optimized", "slower", None, 0.2, (0.1, 0.3)),
        Row("optimized/e", "baseline", "crashed", because("killed")),
        Row("optimized/f", "baseline", "unsure", because("few"), 1.0, None),
    ]  # fmt: skip
    arms = {label: arm() for label in ("baseline", *ROWS)}
    return record(pair_result("first", rows=rows, arms=arms), pair_result("second", ratio=30.0))


def only(axes, kind):
    (found,) = [container for container in axes.containers if isinstance(container, kind)]
    return found


def spans(container):
    """[(low, high)] of an errorbar's bars, along the axis on which they lie."""
    segments = container.lines[2][0].get_segments()
    return [(low, high) for low, high in (segment.T[np.ptp(segment, axis=0).argmax()] for segment in segments)]


def test_bars_and_intervals_are_the_records(full):
    (axes,) = plot.ratio_bars(full).axes
    bars = only(axes, BarContainer)
    expected = [ratio for _, ratio, _ in ROWS.values()] + [0.2, 30.0]
    assert [bar.get_x() + bar.get_width() for bar in bars] == pytest.approx(expected)
    assert {bar.get_x() for bar in bars} == {1}  # they start at no difference
    intervals = [interval for _, _, interval in ROWS.values()] + [(0.1, 0.3), (29.7, 30.3)]
    assert spans(only(axes, ErrorbarContainer)) == [pytest.approx(interval) for interval in intervals]
    said = [text.get_text().split("x ") for text in axes.texts]
    assert [verdict for _, verdict in said] == ["faster", "slower", "same", "unsure", "slower", "faster"]
    assert [float(ratio) for ratio, _ in said] == pytest.approx(expected, rel=0.01)


def test_the_roof_is_the_lesser_of_bandwidth_and_peak():
    limits = {**LIMITS, "dram_bytes": vars(LIMITS["dram_bytes"])}  # as measured, and as recorded
    points = [("copy", 0.125, 400e9), ("product", 100.0, 40e12)]
    (axes,) = plot.roofline(points, limits, "a title", ("fp32_flops", "bf16_flops")).axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"fp32 roof, measured", "bf16 roof, measured", "bf16 roof, datasheet", "copy", "product"}
    roofs = {"fp32 roof, measured": (4e12, 50e12), "bf16 roof, measured": (4e12, 800e12)}
    for label, (memory, compute) in {**roofs, "bf16 roof, datasheet": (5e12, 990e12)}.items():
        x, y = lines[label].T
        assert y == pytest.approx(np.minimum(x * memory, compute) / 1e9)
        assert y.max() == pytest.approx(compute / 1e9)
        assert y.min() < compute / 1e9 / 100  # both sides of the ridge are shown
    assert [*lines["copy"].ravel(), *lines["product"].ravel()] == pytest.approx([0.125, 400, 100.0, 40_000])
    ridges = [float(text.get_text().removeprefix("ridge ")) for text in axes.texts]
    assert ridges == [pytest.approx(50 / 4, rel=0.05), pytest.approx(800 / 4, rel=0.05)]


def sized(size, ratio, name="double", variant="optimized"):
    row = Row(variant, "baseline", "faster", None, ratio, (0.9 * ratio, 1.2 * ratio))
    return pair_result(name, rows=[row, Row(variant, "optimized/z", "same", None, 1.0, (0.9, 1.1))], size=size)


def test_a_sweep_has_a_panel_a_pair_and_points_over_the_sizes():
    other = [sized(size, ratio, "other", "optimized/b") for size, ratio in (("small", 2.0), ("large", 3.0))]
    figure = plot.sweep(record(sized("small", 1.5), sized("large", 4.0), *other))
    *panels, _ = figure.axes
    found = [{container.get_label(): container for container in axes.containers} for axes in panels]
    assert [set(each) for each in found] == [{"double"}, {"other b"}]
    first, second = (each.lines[0] for containers in found for each in containers.values())
    assert [*first.get_ydata(), *second.get_ydata()] == pytest.approx([1.5, 4.0, 2.0, 3.0])
    assert spans(found[0]["double"]) == [pytest.approx((1.35, 1.8)), pytest.approx((3.6, 4.8))]
    figure.draw_without_rendering()  # labels are worked out only now
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["small", "large"]
        assert axes.get_xlabel() == "size" and "speedup over the baseline" in axes.get_ylabel()


def of_shape(ratio, size, label="optimized", **sizes):
    return replace(sized(size, ratio, variant=label), sizes=sizes)


def lines_of(axes):
    """What is connected, as ratios: lines of more than one point that are no limits and no error bars."""
    connected = [line for line in axes.lines if line.get_linestyle() == "-" and line.get_label().startswith("_child")]
    return [list(line.get_ydata()) for line in connected if len(line.get_ydata()) > 1 and set(line.get_ydata()) != {1}]


def test_sizes_that_one_number_orders_are_connected_and_types_and_shapes_stay_apart():
    pairs = [
        of_shape(3.0, "a", rows=64, columns=4096), of_shape(8.0, "b", rows=999, columns=5),
        of_shape(1.0, "c", rows=64, columns=256), of_shape(2.0, "d", rows=64, columns=1024),
        of_shape(5.0, "e", rows=64, columns=1024, dtype="float16"),
        of_shape(4.0, "f", rows=64, columns=256, dtype="float16"),
    ]  # fmt: skip
    found = plot.groups(pairs)
    assert [(group.label, group.axis, [pair.size for pair in group.pairs]) for group in found] == [
        ("columns", "columns", ["c", "d", "a"]), ("", "", ["b"]), ("float16: columns", "columns", ["f", "e"]),
    ]  # fmt: skip
    axes = plot.sweep(record(*pairs)).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "d", "a", "b", "f", "e"]
    assert lines_of(axes) == [[1.0, 2.0, 3.0], [4.0, 5.0]]
    (container,) = axes.containers
    assert container.lines[0].get_linestyle() == "None"
    (above,) = axes.child_axes
    assert [label.get_text() for label in above.get_xticklabels()] == ["columns", "", "float16: columns"]


def test_a_sweep_shows_bandwidth_under_its_limit_where_memory_sets_it():
    pairs = [replace(sized(size, 2.0), cost={"dram_bytes": moved}) for size, moved in (("large", 4e6), ("small", 1e6))]
    figure = plot.sweep(replace(record(*pairs), limits={"dram_bytes": {"measured": 5e9, "datasheet": None}}))
    axes = figure.axes[1]
    curves = {line.get_label(): line for line in axes.get_lines()}
    assert set(curves) == {"double baseline", "double optimized", "double optimized/z", "limit, measured"}
    assert curves["double optimized"].get_xydata() == pytest.approx(np.array([[1, 1], [4, 4]]))  # MB, GB/s in 1 ms each
    assert set(curves["limit, measured"].get_ydata()) == {5.0}
    assert curves["double optimized"].get_linewidth() == 0  # sizes of as many bytes are no curve
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("bytes that must be moved (MB)", "bandwidth (GB/s)")
    computed = [replace(pair, limit_by="fp32_flops") for pair in pairs]
    assert len(plot.sweep(record(*computed)).axes) == 1


# Heat maps


def cell(batch, features, ratio, peak, library=None, name="double"):
    """A result in a grid; `library` is the library's time over the variant's, 2 MiB its peak, 4 the baseline's."""
    result = pair_result(name, ratio, size=f"sweep/{batch}x{features}", sizes={"batch": batch, "features": features})
    (row,) = result.rows
    vs_library = {} if library is None else {"library": {"ratio": library, "interval": (library, library)}}
    peaks = {"baseline": 4 << 20, "optimized": peak, "control": 4 << 20, "library": 2 << 20}
    arms = {label: replace(result.arms.get(label, arm()), peak_bytes=bytes_) for label, bytes_ in peaks.items()}
    return replace(result, rows=[replace(row, vs_library=vs_library)], arms=arms)


def texts(axes):
    """What stands in each cell, by (row, column)."""
    return {tuple(map(int, reversed(text.get_position()))): text.get_text() for text in axes.texts}


GRID = [(batch, features) for batch in (1024, 2048) for features in (128, 256, 512)]


def test_a_grid_of_two_arguments_is_a_heat_map_against_the_library():
    cells = [cell(*place, 9.0, (i + 1) << 20, library=1.5 + i) for i, place in enumerate(GRID)]
    figure = heatmap.figure_for(record(*cells))
    speed, memory = figure.axes
    assert texts(speed) == {divmod(i, 3): f"{1.5 + i:.2f}x" for i in range(6)}
    assert texts(memory) == {divmod(i, 3): f"{(i + 1) / 2:.2f}" for i in range(6)}
    ticks = [*speed.get_xticklabels(), *speed.get_yticklabels()]
    assert [label.get_text() for label in ticks] == ["128", "256", "512", "1024", "2048"]
    assert (speed.get_ylabel(), speed.get_xlabel()) == ("batch", "features")
    assert "library" in speed.get_title()


def test_a_heat_map_is_against_the_library_that_is_fastest_in_a_cell_for_the_same_work():
    def with_another(result, ratio, peak, precision="", own=""):
        (row,) = result.rows
        another = {"ratio": ratio, "interval": (ratio, ratio), **({"precision": precision} if precision else {})}
        arms = {**result.arms, "library/other": replace(result.arms["library"], peak_bytes=peak)}
        yardstick = {"ratio": 0.5, "interval": (0.5, 0.5)}
        libraries = {**row.vs_library, "library/other": another, "yardstick/add": yardstick}
        return replace(result, rows=[replace(row, vs_library=libraries, precision=own)], arms=arms)

    cells = [cell(*place, 9.0, 1 << 20, library=2.0) for place in GRID]
    mixed = [with_another(each, 1.5 + i, 4 << 20) for i, each in enumerate(cells)]
    for axes, said in zip(heatmap.figure_for(record(*mixed)).axes, (["1.50x", "2.00x"], ["0.25", "0.50"]), strict=True):
        assert [texts(axes)[0, i] for i in range(3)] == [*said, said[1]]
        assert "fastest library" in axes.get_title()
    in_tf32 = [with_another(each, 3.0, 4 << 20, "tf32", own="tf32") for each in cells]
    speed, _ = heatmap.figure_for(record(*in_tf32)).axes
    assert set(texts(speed).values()) == {"3.00x"}, "not that of another precision, though it is faster"


def test_a_heat_map_never_mixes_library_and_baseline_and_says_what_it_leaves_out():
    cells = [cell(*place, 3.0, 1 << 20, library=None if place == GRID[0] else 2.0) for place in GRID]
    figure = heatmap.figure_for(record(*cells, sized("default", 2.0)))
    shown = texts(figure.axes[0])
    assert (shown[0, 0], shown[1, 2]) == ("none", "2.00x")
    assert "not drawn: 1 result" in figure.get_suptitle()
