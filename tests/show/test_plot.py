"""The figures show the record's own values, and every axis says what it is."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
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


def test_a_sweep_has_a_row_a_size_with_speedups_and_shares_of_the_limit():
    pairs = [replace(sized("large", 4.0), limit_s=4e-4), replace(sized("small", 1.5), limit_s=1e-4)]
    speedups, shares = plot.sweep(record(*pairs)).axes
    container = only(speedups, ErrorbarContainer)
    assert (container.get_label(), list(container.lines[0].get_xdata())) == ("optimized", pytest.approx([1.5, 4.0]))
    assert spans(container) == [pytest.approx((1.35, 1.8)), pytest.approx((3.6, 4.8))]
    assert [label.get_text() for label in speedups.get_yticklabels()] == ["small", "large"]  # the least work first
    reached = {line.get_label(): list(line.get_xdata()) for line in shares.lines if line.get_linewidth() == 0}
    expected = {label: [100 * pair.arms[label].of_limit for pair in pairs[::-1]] for label in reached}
    assert reached == {label: pytest.approx(values) for label, values in expected.items()}
    assert {*reached} == {*pairs[0].arms} - {"control"}
    rows = [line.get_ydata() for line in shares.lines if line.get_linewidth() == 0]
    assert len({float(row[0]) for row in rows}) == len(rows)  # equal shares do not hide each other
    assert "speedup over the baseline" in speedups.get_xlabel() and "limit" in shares.get_xlabel()
    (unlimited,) = plot.sweep(record(without_limit(pairs[0]))).axes
    assert unlimited.get_xlabel() == speedups.get_xlabel()


def without_limit(pair):
    return replace(pair, limit_s=None, arms={label: replace(arm, of_limit=None) for label, arm in pair.arms.items()})


def test_sizes_of_one_type_stand_together():
    sizes = {"a": "float16", "b": "float32", "c": "float16"}
    pairs = [replace(sized(size, 2.0), sizes={"n": 8, "dtype": dtype}) for size, dtype in sizes.items()]
    speedups, _ = plot.sweep(record(*pairs)).axes
    assert [label.get_text() for label in speedups.get_yticklabels()] == ["a", "c", "b"]


def test_several_sizes_are_a_sweep_for_each_pair():
    pairs = [sized(size, 2.0, name) for name in ("double", "other") for size in ("small", "large")]
    assert {*heatmap.figures_for(record(*pairs))} == {"ch1_double", "ch1_other"}
    assert {*heatmap.figures_for(record(*pairs[:2]))} == {*heatmap.figures_for(record(pairs[0], pairs[2]))} == {""}


def luminance(color):
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return np.dot([0.2126, 0.7152, 0.0722], parts)


@pytest.mark.parametrize("page", ["#ffffff", "#111111", "#0d1117"])
def test_figures_are_transparent_and_legible_on_light_and_on_dark_pages(page, full):
    figure = plot.ratio_bars(full)
    (axes,) = figure.axes
    drawn = [*axes.texts, axes.xaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels(), axes.title]
    for color in {to_hex(text.get_color()) for text in drawn}:
        lighter, darker = sorted((luminance(color), luminance(page)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) > 4
    assert figure.get_facecolor()[3] == axes.get_facecolor()[3] == 0


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
    figure = heatmap.figures_for(record(*cells))[""]
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
    for axes, said in zip(
        heatmap.figures_for(record(*mixed))[""].axes, (["1.50x", "2.00x"], ["0.25", "0.50"]), strict=True
    ):
        assert [texts(axes)[0, i] for i in range(3)] == [*said, said[1]]
        assert "fastest library" in axes.get_title()
    in_tf32 = [with_another(each, 3.0, 4 << 20, "tf32", own="tf32") for each in cells]
    speed, _ = heatmap.figures_for(record(*in_tf32))[""].axes
    assert set(texts(speed).values()) == {"3.00x"}, "not that of another precision, though it is faster"


def test_a_heat_map_never_mixes_library_and_baseline_and_says_what_it_leaves_out():
    cells = [cell(*place, 3.0, 1 << 20, library=None if place == GRID[0] else 2.0) for place in GRID]
    figure = heatmap.figures_for(record(*cells, sized("default", 2.0)))[""]
    shown = texts(figure.axes[0])
    assert (shown[0, 0], shown[1, 2]) == ("none", "2.00x")
    assert "not drawn: 1 result" in figure.get_suptitle()
