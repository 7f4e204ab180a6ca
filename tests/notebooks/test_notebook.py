"""What the notebooks show: diffs, counts, machine code, recorded results, a guess beside a measurement, a diagram."""

import re
from dataclasses import replace

import pytest
from common.record.recording import keep_record
from matplotlib.patches import Rectangle
from samples import one_pair, pair_result, record, version, write_pair

from common import notebook
from common.hardware.diagram import diagram, rate_text
from common.hardware.sheet import Sheet
from common.pairs.pair import ROOT, discover, load, source_hash
from common.record import recording
from common.record.result import Row
from common.show.report import ratio, share, times


@pytest.fixture
def pair(tmp_path):
    return one_pair(tmp_path / "ch1", version("return x + x + w_shift"))


def test_the_diff_is_the_lesson_without_docstrings(pair):
    lines = notebook.show_diff(pair).data.splitlines()
    changed = [line for line in lines[3:] if line.startswith(("+", "-"))]
    assert changed == ["-    return 2 * x + w_shift", "+    return x + x + w_shift"]
    assert "Double" not in "".join(lines)


def test_calls_are_counted_without_values(pair):
    call = notebook.ready(pair.baseline, pair.sizes["default"], "meta")
    with notebook.CountCalls() as counter:
        out = call()
    assert sum(counter.calls.values()) == 2  # a product and a sum
    assert out.is_meta


def test_a_pair_that_changed_is_not_shown_as_current(pair, tmp_path, monkeypatch):
    current, old = pair_result(source_hash=source_hash(pair)), pair_result("another")
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    keep_record(record(current, kind="cpu", name="A CPU", date="2026-09-09T00:00:00+00:00"))
    assert notebook.recorded_on_gpu("ch1") is None
    keep_record(record(old, name="NVIDIA A10", date="2025-12-31T00:00:00+00:00"))
    keep_record(record(current, old))
    found = notebook.recorded_on_gpu("ch1")
    assert (notebook.origin(found), found.pairs) == ("NVIDIA H200, 2026-01-02", [current])


def test_a_record_is_shown_with_origin_rows_and_remarks():
    rows = [Row("optimized/fused", "baseline", "skipped", "needs an NVIDIA GPU")]
    text = notebook.show(record(pair_result(ratio=2.5), pair_result("other", rows=rows, arms={}))).data
    assert text.startswith("*NVIDIA H200, 2026-01-02*\n\n| pair |")
    shown = pair_result(ratio=2.5)
    figures = (ratio(shown.rows[0]), times(shown, shown.rows[0]), share(shown, shown.rows[0]))
    assert f"| double | optimized | **faster** | {' | '.join(figures)} |" in text
    assert text.endswith("- other, fused: needs an NVIDIA GPU")


@pytest.mark.parametrize(("guess", "says"), [(1.9, "too low"), (1.97, "right"), (2.0, "right"), (3.0, "too high")])
def test_a_guess_is_judged_by_the_interval_and_the_margin(guess, says):
    row = pair_result().rows[0]
    assert notebook.against(guess, row) == f"you guessed {guess:g}x; measured {ratio(row)}: {says}"


def test_without_a_ratio_the_verdict_answers_the_guess():
    row = Row("optimized", "baseline", "skipped", "needs an NVIDIA GPU")
    assert notebook.against(2.0, row) == "you guessed 2x; skipped: needs an NVIDIA GPU"


def test_the_pairs_asked_for_are_shown_in_that_order_and_the_missing_named(tmp_path, monkeypatch, capsys):
    hashes = {name: source_hash(one_pair(tmp_path / "ch2", name=name)) for name in ("one", "other", "new")}
    results = [pair_result(name, source_hash=hashes[name], chapter="ch2") for name in ("one", "other")]
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "has_gpu", lambda: False)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    keep_record(record(*results))
    displayed = []
    monkeypatch.setattr(notebook, "display", lambda *shown: displayed.extend(each.data for each in shown))
    found = notebook.reveal("ch2", ["other", "new", "one"])
    assert list(found.items()) == [("other", results[1]), ("one", results[0])]
    assert displayed[0] == "**Recorded, not measured here**"
    assert displayed[1].index("| other |") < displayed[1].index("| one |")
    assert capsys.readouterr().out.startswith("no figures of new: there is no GPU here, and nothing is recorded of it")


def test_without_a_record_nothing_is_shown_but_the_reason(tmp_path, monkeypatch, capsys):
    one_pair(tmp_path / "ch2")
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "has_gpu", lambda: False)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    assert notebook.reveal("ch2", ["double"]) == {}
    assert capsys.readouterr().out.startswith("no figures of double: ")


def test_on_a_gpu_the_pairs_are_measured(tmp_path, monkeypatch, capsys):
    pair = one_pair(tmp_path / "ch2")
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "has_gpu", lambda: True)
    monkeypatch.setattr(notebook, "display", lambda *shown: print(shown[0].data))
    asked = []

    def run_pairs(pairs, size, fast):
        asked.append(size)
        return record(*(pair_result(one.name, size=each) for one in pairs for each in measured[size]))

    measured = {"default": ["default"], "large": ["large/a", "large/b"], "large/c": []}
    monkeypatch.setattr(notebook, "run_pairs", run_pairs)
    assert list(notebook.reveal("ch2", ["double"])) == [pair.name]
    assert capsys.readouterr().out == "**Measured here**\n"
    assert list(notebook.reveal("ch2", ["double"], "large")) == ["double large/a", "double large/b"]
    assert capsys.readouterr().out == "**Measured here**\n"
    assert notebook.reveal("ch2", ["double"], "large/c") == {}
    assert capsys.readouterr().out == "no figures of double at size large/c: it has no such size\n"
    assert asked == list(measured)


def test_a_pair_without_a_ratio_is_shown_and_not_returned(tmp_path, monkeypatch):
    pair = one_pair(tmp_path / "ch2")
    skipped = pair_result(
        source_hash=source_hash(pair),
        rows=[Row("optimized", "baseline", "skipped", "needs 2 GPUs")],
        arms={},
        noise_floor=None,
        chapter="ch2",
    )
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "has_gpu", lambda: False)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    keep_record(record(skipped))
    displayed = []
    monkeypatch.setattr(notebook, "display", lambda *shown: displayed.extend(each.data for each in shown))
    assert notebook.reveal("ch2", ["double"]) == {}
    assert "- double, optimized: needs 2 GPUs" in displayed[1]


# At other sizes


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A chapter of two pairs, measured on a GPU at several sizes, of which nothing is here but what was recorded."""
    hashes = {name: source_hash(one_pair(tmp_path / "ch3", name=name)) for name in ("one", "other")}
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "has_gpu", lambda: False)
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    sizes = {"one": ("default", "large/a", "large/b"), "other": ("default", "small/a")}
    results = [
        pair_result(name, source_hash=hashes[name], chapter="ch3", size=size) for name in sizes for size in sizes[name]
    ]
    keep_record(record(*results))
    displayed = []
    monkeypatch.setattr(notebook, "display", lambda *shown: displayed.extend(each.data for each in shown))
    return tmp_path, displayed


@pytest.mark.parametrize(
    ("size", "found", "missing"),
    [
        ("default", ["one", "other"], ""),
        ("large", ["one large/a", "one large/b"], "no figures of other at size large: there is no GPU here"),
        ("large/b", ["one"], "no figures of other at size large/b: there is no GPU here"),
        ("batch", [], "no figures of one, other at size batch: there is no GPU here"),
    ],
)
def test_a_class_of_sizes_or_one_of_them_is_shown(size, found, missing, course, capsys):
    results = notebook.reveal("ch3", ["one", "other"], size)
    assert list(results) == found
    assert {pair.size.split("/")[0] for pair in results.values()} <= {size.split("/")[0]}
    assert capsys.readouterr().out.startswith(missing)
    _, displayed = course
    lines = [line for line in displayed[-1].splitlines() if line.startswith("| ")] if displayed else []
    assert lines == [] or lines[0].startswith(
        "| pair | variant |" if size == "default" else "| pair | size | variant |"
    )
    assert len(lines) == (2 + len(found) if found else 0)


def test_remarks_at_other_sizes_name_them():
    row = Row("optimized", "baseline", "faster", "", 2.0, (1.9, 2.1), notes=["launch-bound"])
    assert notebook.show(record(pair_result(rows=[row], size="large/a"))).data.endswith(
        "- double large/a, optimized: launch-bound"
    )


def test_a_sweep_is_drawn_of_all_classes_and_of_nothing_there_is_none(course):
    folder, _ = course
    figure = notebook.sweep("ch3", "one")
    ratios, bandwidths = figure.axes
    figure.canvas.draw()
    assert [label.get_text() for label in ratios.get_xticklabels()] == ["default", "large/a", "large/b"]
    assert [container.get_label() for container in ratios.containers] == ["one"]
    assert ratios.get_title() == "NVIDIA H200, 2026-01-02"
    assert [line.get_label() for line in bandwidths.get_lines()][-2:] == ["limit, measured", "limit, datasheet"]
    assert notebook.sweep("ch3", "none") is None
    one_pair(folder / "ch3", version("return x + x + w_shift"), name="one")
    assert notebook.sweep("ch3", "one") is None  # it has changed since
    assert notebook.sweep("ch3", "other") is not None


def test_a_sweep_of_two_runs_has_both_dates_and_both_limits(course):
    folder, _ = course
    pair = discover(folder / "ch3", "one")[0]
    later = pair_result("one", source_hash=source_hash(pair), chapter="ch3", size="large/a")
    other_limits = {"dram_bytes": {"measured": 4.1e12, "datasheet": 4.8e12, "how": "copy", "source": "a datasheet"}}
    keep_record(replace(record(later, date="2026-01-03T00:00:00+00:00"), limits=other_limits))
    ratios, bandwidths = notebook.sweep("ch3", "one").axes
    assert ratios.get_title() == "NVIDIA H200, 2026-01-02 / NVIDIA H200, 2026-01-03"
    flat = {line.get_label(): line.get_ydata()[0] for line in bandwidths.get_lines() if "limit" in line.get_label()}
    assert flat == {"limit, measured": 4000, "_limit, measured": 4100, "limit, datasheet": 4800}


# Machine code

KERNEL = """
import cupy
SIZES = {"check": {"n": 127}, "default": {"n": 4096}}
kernel = cupy.RawKernel(r'''
extern "C" __global__ void twice(const WIDTH* x, WIDTH* y) {
    __shared__ WIDTH tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
''', "twice")
def inputs(n=4096, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}
def reference(x):
    return x[::-1]
def run(x):
    y = cupy.empty_like(x)
    kernel((1,), (64,), (x, y))
    return y
"""


@pytest.fixture
def kernels(tmp_path):
    pytest.importorskip("triton")  # whose tools read machine code
    pytest.importorskip("cupy")
    pytest.importorskip("cuda.bindings.nvrtc")
    text = '"""Reverse 64 elements."""' + KERNEL
    variants = {name: text.replace("WIDTH", width) for name, width in (("", "float4"), ("pairs", "float2"))}
    write_pair(tmp_path / "ch2", "twice", variants, text.replace("WIDTH", "float"))
    return discover(tmp_path / "ch2")[0]


def test_machine_code_is_a_table_for_each_architecture_and_what_differs(kernels):
    text = notebook.show_xray(kernels, ["sm_80", "sm_90"]).data
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        "**twice**, compiled for sm_80 (A100)",
        "**twice**, compiled for sm_90 (H100)",
    ]
    assert text.count("|  | baseline twice | optimized twice | pairs twice |") == 2
    assert text.count("| global loads | 1 x 32 bit | 1 x 128 bit | 1 x 64 bit |") == 2
    assert text.count("- optimized: global loads move up to 16 bytes at once instead of 4") == 2


def test_of_the_variants_only_those_asked_for_are_compiled(kernels):
    text = notebook.show_xray(kernels, labels=["optimized/pairs"]).data
    assert "|  | baseline twice | pairs twice |" in text
    assert "optimized" not in text


def test_code_is_shown_in_its_order_with_what_each_instruction_does(kernels):
    fence, name, *shown, rest, end = notebook.show_code(kernels, "optimized").data.splitlines()
    assert (fence, name, end) == ("```", "twice, sm_90", "```")
    kinds = [(line[6:20].strip(), line[20:].split()[0].split(".")[0]) for line in shown]
    assert kinds == [
        ("global loads", "LDG"), ("shared stores", "STS"), ("barriers", "BAR"), ("shared loads", "LDS"),
        ("global stores", "STG"),
    ]  # fmt: skip
    assert re.fullmatch(r"and \d+ other instructions", rest)
    assert "LDG.E.128" in shown[0]


def test_without_code_to_see_the_reason_is_shown(pair):
    assert "- optimized: launches library kernels only" in notebook.show_xray(pair).data
    assert notebook.show_code(pair, "baseline").data.startswith("```\nbaseline: launches library kernels only")


# The diagram


def a_sheet(kind="cuda", **fields):
    numbers = {
        "cuda": {
            "streaming multiprocessors": 132, "warps per SM": 64, "registers per SM, of 32 bits": 65_536,
            "L1 and shared memory per SM": 256 << 10, "shared memory per SM": 228 << 10, "L2": 50 << 20,
            "memory": 80 << 30,
        },
        "cpu": {"cores": 8, "L1d": 32 << 10, "L2": 1 << 20, "L3, shared by 8 cores": 96 << 20, "memory": 64 << 30},
    }[kind]  # fmt: skip
    device = {"kind": kind, "name": "NVIDIA H100" if kind == "cuda" else "A CPU", "threads": 7}
    facts = [{"name": name, "value": value, "unit": "", "source": "made up"} for name, value in numbers.items()]
    levels = {"L2": {"bytes": 1 << 20, "read": 5.5e12, "cycles": 270.4, "seconds": 150e-9}, "DRAM": {"bytes": 1 << 30}}
    values = {"limits": {}, "bandwidth": {}, "latency": [], "levels": levels, "transfers": {}, "links": [], **fields}
    return Sheet(1, {"device": device, "versions": {}, "date": "2026-01-02T03:04:05+00:00"}, facts, **values)


def texts(figure):
    (axes,) = figure.axes
    return [axes.get_title(), *(text.get_text() for text in axes.texts if text.get_text())]


def test_the_diagram_of_a_gpu_has_its_parts_and_what_was_measured_between_them():
    assert texts(diagram(a_sheet())) == [
        "NVIDIA H100, 2026-01-02",
        "2", "...", "132", "SM 1 of 132", "64 warps of 32 lanes", "registers: 256 KiB",
        "L1 and shared memory: 256 KiB", "read 5.50 TB/s, 270 cycles = 150 ns", "L2: 50 MiB", "DRAM: 80 GiB",
    ]  # fmt: skip


def test_what_is_outside_the_chip_is_drawn_where_it_was_measured():
    host = {"host to device, pinned": [[4096, 1e9], [1 << 28, 55e9]], "device to host, pinned": [[1 << 28, 52.5e9]]}
    alone = texts(diagram(a_sheet(transfers=host)))
    assert "host, pinned memory\nto the GPU 55.0 GB/s\nfrom it 52.5 GB/s" in alone
    link = {"between": [0, 1], "peer_access": True, "link": "NVLink, 18 links of each GPU", "source": "NVML"}
    peers = {f"cuda:0 to cuda:{other}": [[1 << 28, 380e9]] for other in (1, 2)}
    assert "2 more GPUs\nNVLink\ncuda:0 to cuda:1: 380 GB/s" in texts(diagram(a_sheet(transfers=peers, links=[link])))


def test_a_cpu_keeps_all_caches_but_the_last_in_its_cores():
    figure = diagram(a_sheet("cpu"))
    assert texts(figure) == [
        "A CPU, 7 threads, 2026-01-02",
        "2", "...", "8", "core 1 of 8", "registers and vector units",
        "L1d: 32 KiB", "read 5.50 TB/s, 270 cycles = 150 ns", "L2: 1 MiB", "L3: 96 MiB", "DRAM: 64 GiB",
    ]  # fmt: skip
    boxes = {text.get_text(): patch for text, patch in _boxes(figure)}
    assert boxes["L2: 1 MiB"].get_width() < boxes["L3: 96 MiB"].get_width() == boxes["DRAM: 64 GiB"].get_width()


def _boxes(figure):
    """(text, the box in whose middle it stands)"""
    (axes,) = figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [
        (text, box) for text in axes.texts for box in boxes if text.get_position() == pytest.approx(box.get_center())
    ]


def test_a_machine_that_does_not_tell_its_caches_still_has_memory():
    sheet = a_sheet("cpu")
    bare = replace(sheet, facts=[fact for fact in sheet.facts if not fact["name"].startswith("L")], levels={})
    assert texts(diagram(bare))[-1] == "DRAM: 64 GiB"


def test_rates_are_shown_in_the_unit_that_fits():
    assert [rate_text(rate) for rate in (4.86e9, 52.5e9, 999e9, 4.032e12)] == [
        "4.86 GB/s", "52.5 GB/s", "999 GB/s", "4.03 TB/s"
    ]  # fmt: skip


def test_the_chapters_compare_is_that_of_all(monkeypatch):
    import common.cli.compare

    module = load(ROOT / "ch2" / "compare.py")
    monkeypatch.setattr(common.cli.compare, "compare_chapter", lambda chapter: ("compared", chapter))
    monkeypatch.setattr(common.cli.compare, "profile_chapter", lambda chapter, only: ("profiled", chapter, only))
    assert module.compare() == ("compared", "ch2")
    assert module.profile("trans*") == ("profiled", "ch2", "trans*")
