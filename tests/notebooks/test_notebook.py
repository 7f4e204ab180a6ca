"""What the notebooks show: diffs, counts, machine code, recorded results, a guess and a measurement, a diagram."""

import re

import pytest
from samples import because, one_pair, pair_result, record, rows_of, version, write_pair

from common.hardware.diagram import diagram
from common.hardware.sheet import Fact, Link, Sheet
from common.notebook import chapter_cells as chapters
from common.notebook import named_gpu as gpus
from common.notebook import nb
from common.pairs.pair import discover
from common.pairs.source import source_hash
from common.record.result import Row
from common.record.store import keep_record

NAMES = ("default", "small/a", "large/a", "large/b", "large/c", "batch")
SIZES = {"check": {"n": 127}, **{name: {"n": 8} for name in NAMES}}


@pytest.fixture
def pair(tmp_path):
    return one_pair(tmp_path / "ch1", version("return x + x + w_shift"))


def changes(diff):
    return [line for line in diff.data.splitlines()[2:] if line[0] in "+-" and line[1:]]


def test_the_diff_is_without_what_stands_in_the_baseline_only_and_what_that_alone_uses(tmp_path):
    given = """
        from math import prod, tau
        def amount(x): return 8 * prod(x.shape)
        def cost(x, w_shift): return {"dram_bytes": amount(x)}
        """
    baseline = version("return 2 * x + w_shift * tau / tau", extra=given)
    shown = nb.show_diff(one_pair(tmp_path, version("return x", extra="from math import tau"), baseline))
    assert changes(shown) == ["-    return 2 * x + w_shift * tau / tau", "+    return x"]
    own = version("return x", extra='from math import tau\ndef cost(x, w_shift): return {"dram_bytes": 8}')
    cost_of = [line for line in changes(nb.show_diff(one_pair(tmp_path, own, baseline))) if "dram_bytes" in line]
    assert [line[0] for line in cost_of] == ["-", "+"]  # its own is part of the difference


def test_the_diff_is_to_the_rung_that_is_named_as_the_lessons(tmp_path, pair):
    swapped = version("return w_shift + x + x", extra='VERSUS = ""')
    write_pair(tmp_path / "ch1", "double", {"swapped": swapped})  # beside the pair's own
    (pair,) = discover(tmp_path / "ch1")
    diff = nb.show_diff(pair, "optimized/swapped")
    assert diff.data.splitlines()[:2] == ["--- optimized_double.py", "+++ optimized_double_swapped.py"]
    assert changes(diff) == ["-    return x + x + w_shift", "+    return w_shift + x + x"]
    assert "-    return 2 * x + w_shift" in changes(nb.show_diff(pair, "optimized/swapped", "baseline"))


@pytest.mark.parametrize(("labels", "versions"), [(None, ["baseline", "optimized"]), ([], ["baseline"])])
def test_counts_are_a_table_in_units_of_the_minimum_and_come_back_by_label(labels, versions, tmp_path, monkeypatch):
    pytest.importorskip("triton")
    shown = []
    monkeypatch.setattr(chapters, "display", lambda markdown: shown.append(markdown.data))
    text = version("return 2 * x", sizes=SIZES, extra='def cost(x, w_shift): return {"dram_bytes": 2 * x.nbytes}')
    pair = one_pair(tmp_path / "ch1", text.replace("return 2 * x\n", "return x + x + w_shift\n"), text)
    found = nb.show_counts(pair, "check", labels)
    assert {label: traffic.launches for label, traffic in found.items()} == dict(zip(versions, (1, 2), strict=False))
    assert "exact" in shown[0] and "the minimum work" in shown[0]
    heading, *rows = rows_of(shown[0])
    place = heading.index("requested")
    assert [(row[0], row[place]) for row in rows] == list(zip(versions, ("1.00x", "2.50x"), strict=False))


def test_a_record_is_shown_with_origin_rows_and_remarks():
    rows = [Row("optimized/fused", "baseline", "skipped", because("needs an NVIDIA GPU"))]
    text = nb.show(record(pair_result(ratio=2.5), pair_result("other", rows=rows, arms={}))).data
    assert text.startswith("*NVIDIA H200, 2026-01-02*\n\n| pair and version | verdict | speedup |")
    assert "| optimized | faster | 2.50x | [2.48, 2.52] | 1.00 ms | 50 % |\n" in text
    assert text.endswith("- needs an NVIDIA GPU: other")


# A chapter


@pytest.fixture
def course(tmp_path, monkeypatch):
    """course(*names): a chapter of these pairs on a machine without a GPU; what is shown is in `course.displayed`."""
    monkeypatch.setattr(chapters, "ROOT", tmp_path)
    monkeypatch.setattr(chapters, "has_gpu", lambda: False)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")

    def begin(*names):
        for name in names:
            text = version(sizes=SIZES)
            one_pair(tmp_path / "ch3", text, text, name=name)
        return nb.chapter(3)

    def of(name, size="default", **fields):
        (pair,) = discover(tmp_path / "ch3", name)
        return pair_result(name, size=size, **{"chapter": "ch3", "source_hash": source_hash(pair), **fields})

    begin.of, begin.displayed = of, []
    monkeypatch.setattr(chapters, "display", lambda *shown: begin.displayed.extend(each.data for each in shown))
    return begin


def test_what_is_recorded_is_the_newest_gpus_without_pairs_that_have_changed(course):
    chapter = course("double", "other")
    current, old = course.of("double"), [course.of("other", source_hash="x"), course.of("other", sizes={"n": 9})]
    keep_record(record(current, kind="cpu", name="A CPU", date="2026-09-09T00:00:00+00:00"))
    assert chapter.recorded() is None
    keep_record(record(old[0], name="NVIDIA A10", date="2025-12-31T00:00:00+00:00"))
    for stale in old:
        keep_record(record(current, stale))
        found = [(pair.name, pair.source_hash) for pair in chapter.recorded().pairs]
        said = (nb.origin(chapter.recorded()), found)
        assert said == ("NVIDIA H200, 2026-01-02", [(current.name, current.source_hash)])


def test_the_pairs_asked_for_are_shown_in_that_order_and_the_missing_named(course, capsys):
    chapter = course("one", "other", "new")
    results = {name: course.of(name) for name in ("one", "other")}
    keep_record(record(*results.values()))
    found = chapter.reveal(["other", "new", "one"])
    assert [(name, pair.source_hash) for name, pair in found.items()] == [
        (name, results[name].source_hash) for name in ("other", "one")
    ]
    assert {*chapter.results} == {(name, "default") for name in results}
    assert course.displayed[0] == "**Recorded, not measured here**"
    assert course.displayed[1].index("| **other** |") < course.displayed[1].index("| **one** |")
    assert capsys.readouterr().out.startswith("no figures of new: there is no GPU here, and nothing is recorded of its")


def test_on_a_gpu_the_pairs_are_measured(course, monkeypatch, capsys):
    chapter, asked = course("double"), []
    measured = {"default": ["default"], "large": ["large/a", "large/b"], "large/c": []}

    def run_pairs(pairs, size, fast):
        asked.append(size)
        return record(*(pair_result(one.name, size=each) for one in pairs for each in measured[size]))

    monkeypatch.setattr(chapters, "has_gpu", lambda: True)
    monkeypatch.setattr(chapters, "run_pairs", run_pairs)
    assert list(chapter.reveal(["double"])) == ["double"]
    assert list(chapter.reveal(["double"], "large")) == ["double large/a", "double large/b"]
    assert course.displayed[::2] == ["**Measured here**"] * 2
    assert capsys.readouterr().out == ""
    assert chapter.reveal(["double"], "large/c") == {}
    assert capsys.readouterr().out == "no figures of double at size large/c: it has no such size\n"
    assert asked == list(measured)


@pytest.fixture
def sized(course):
    """A chapter of two pairs of which several sizes are recorded."""
    chapter = course("one", "other")
    sizes = {"one": ("default", "large/a", "large/b"), "other": ("default", "small/a")}
    keep_record(record(*(course.of(name, size) for name in sizes for size in sizes[name])))
    return chapter


def test_a_sweep_is_drawn_of_all_classes_and_of_nothing_there_is_a_line(sized, tmp_path):
    figure = sized.sweep("one")
    ratios, _shares = figure.axes
    figure.canvas.draw()
    assert [label.get_text() for label in ratios.get_yticklabels()] == ["default", "large/a", "large/b"]
    assert {container.get_label() for container in ratios.containers} == {"optimized"}
    assert figure.get_suptitle() == "one: NVIDIA H200, 2026-01-02"
    assert sized.sweep("none").data.startswith("*No figure: nothing is recorded")
    changed = version("return x + x + w_shift", sizes=SIZES)
    one_pair(tmp_path / "ch3", changed, changed, name="one")
    assert nb.chapter(3).sweep("one").data.startswith("*No figure")  # it has changed since
    assert nb.chapter(3).sweep("other").axes


def test_a_chapter_measures_nothing_until_it_is_asked_and_computes_with_what_is_recorded(monkeypatch):
    monkeypatch.setattr(gpus, "has_gpu", lambda: False)
    gpus.gpu.cache_clear()
    known = nb.gpu()
    assert (known.sheet, known.source) == (gpus.sheets.recorded_sheet(), nb.origin(known.sheet))
    assert (known.arch, known.sms, known.l2_bytes) == ("sm_90", 132, 60 << 20)
    assert known.copied == known.limits["dram_bytes"]["measured"]
    assert 1e9 < known.clock_hz < 3e9
    monkeypatch.setattr(gpus.sheets, "recorded_sheet", lambda: None)
    gpus.gpu.cache_clear()
    assumed = nb.gpu()
    assert (assumed.sheet, assumed.copied, "assumed" in str(assumed)) == (None, 4.8e12, True)
    gpus.gpu.cache_clear()


# Machine code

KERNEL = """
import cupy
kernel = cupy.RawKernel(r'''
extern "C" __global__ void twice(const WIDTH* x, WIDTH* y) {
    __shared__ WIDTH tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
''', "twice")
def reference(x): ...
"""
RUN = "y = cupy.empty_like(x)\nkernel((1,), (64,), (x, y))\nreturn y"


@pytest.fixture
def kernels(tmp_path, in_this_process):
    for package in ("triton", "cupy", "cuda.bindings.nvrtc"):  # Triton's tools read machine code
        pytest.importorskip(package)
    text = version(RUN, "x", 'return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}', KERNEL)
    baseline, wide, pairs = (text.replace("WIDTH", width) for width in ("float", "float4", "float2"))
    write_pair(tmp_path / "ch2", "twice", {"": wide, "pairs": pairs}, baseline)
    return discover(tmp_path / "ch2")[0]


@pytest.mark.rest
def test_machine_code_is_a_table_for_each_architecture_and_what_differs(kernels):
    text = nb.show_xray(kernels, ["sm_80", "sm_90"]).data
    titles = [f"**twice**, compiled for {arch}" for arch in ("sm_80 (A100)", "sm_90 (H100)")]
    assert [line for line in text.splitlines() if line.startswith("**")] == titles
    heading, loads = "baseline twice | optimized twice | pairs twice", "1 x 32 bit | 1 x 128 bit | 1 x 64 bit"
    said = "- optimized: global loads move up to 16 bytes at once instead of 4"
    assert [text.count(each) for each in (f"|  | {heading} |", f"| global loads | {loads} |", said)] == [2, 2, 2]


def test_code_is_shown_in_its_order_with_what_each_instruction_does(kernels):
    fence, name, *shown, rest, end = nb.show_code(kernels, "optimized").data.splitlines()
    assert (fence, name, end) == ("```", "twice, sm_90", "```")
    kinds = [f"{line[6:20].strip()} {line[20:].split()[0].split('.')[0]}" for line in shown]
    assert kinds == ["global loads LDG", "shared stores STS", "barriers BAR", "shared loads LDS", "global stores STG"]
    assert re.fullmatch(r"and \d+ other instructions", rest)
    assert "LDG.E.128" in shown[0]


# The diagram


def a_sheet(**fields):
    numbers = {
        "streaming multiprocessors": 132, "warps per SM": 64, "registers per SM, of 32 bits": 65_536,
        "L1 and shared memory per SM": 256 << 10, "shared memory per SM": 228 << 10, "L2": 50 << 20, "memory": 80 << 30,
    }  # fmt: skip
    facts = [Fact(name, value, "", "made up") for name, value in numbers.items()]
    levels = {"L2": {"bytes": 1 << 20, "read": 5.5e12, "cycles": 270.4, "seconds": 150e-9}, "DRAM": {"bytes": 1 << 30}}
    values = {"limits": {}, "bandwidth": {}, "latency": [], "levels": levels, "transfers": {}, "links": [], **fields}
    environment = {"device": {"kind": "cuda", "name": "NVIDIA H100"}, "versions": {}, "date": "2026-01-02T03:04:05"}
    return Sheet(1, environment, facts, **values)


def texts(figure):
    (axes,) = figure.axes
    return [axes.get_title(), *(text.get_text() for text in axes.texts if text.get_text())]


def test_the_diagram_has_a_machines_parts_and_what_was_measured_between_them():
    assert sorted(texts(diagram(a_sheet()))) == sorted([
        "NVIDIA H100, 2026-01-02", "read 5.50 TB/s, 270 cycles = 150 ns", "SM 1 of 132", "131 more",
        "64 warps of 32 lanes", "registers: 256 KiB", "L1 and shared memory: 256 KiB", "L2: 50 MiB", "DRAM: 80 GiB",
    ])  # fmt: skip


def test_the_diagram_has_the_rates_of_the_links_with_the_largest_transfers():
    rates = {"host to device, pinned": 55e9, "host to device, pageable": 9e9, "cuda:0 to cuda:1": 377e9}
    transfers = {name: [[4096, 1e8], [1 << 28, rate]] for name, rate in rates.items()}
    sheet = a_sheet(transfers=transfers, links=[Link([0, 1], True, "NVLink", "NVML")])
    assert "host to device, pinned: 55.0 GB/s\ncuda:0 to cuda:1: 377 GB/s\nNVLink" in texts(diagram(sheet))
