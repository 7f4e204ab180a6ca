"""Rows are carried over where names have changed and the work has not, and stay stale everywhere else."""

import re
import textwrap
from argparse import Namespace
from dataclasses import replace
from itertools import count

import pytest
from samples import arms_for, pair_result, record, refused, write_pair

from common.cli import counts
from common.cli.counts import CountedPair
from common.pairs.pair import discover
from common.pairs.source import source_hash
from common.record.outcome import Cause, Finding, Verdict
from common.record.record_file import load_record, save_record
from common.record.result import Row
from common.record.store import current_filter
from common.traffic.data import Kernel, Traffic
from common.traffic.versions import VersionTraffic
from common.xray.compilers import Binary
from common.xray.occupancy import MACHINES
from tools import carry_records
from tools.old_tree import RenameMap, old_pairs, read_map
from tools.timed_code import timed_code
from tools.work import code_of

pytest.importorskip("triton")  # which compiles the kernels
TEXT = textwrap.dedent(
    """
    \"\"\"Double a vector: 8 bytes an element.\"\"\"

    import torch
    import triton
    import triton.language as tl

    SIZES = {"check": {"n": 5}, "default": {}, "large": {"n": 4096}}


    def inputs(n=1024, device="cuda"):
        return {"x": torch.randn(n, device=device)}


    def reference(x):
        return 2 * x


    @triton.jit
    def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


    def run(x):
        result = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, result, x.numel(), BLOCK=256)
        return result
    """
)


def changed(text, changes):
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


NAMES = {"at = ": "offsets = ", "+ at": "+ offsets", "at <": "offsets <", "double_kernel": "scale_kernel"}
RENAMED = changed(TEXT, {**NAMES, "n, BLOCK:": "numel, BLOCK:", "< n": "< numel"})


@pytest.fixture
def carried(tmp_path, monkeypatch, capsys, in_this_process):
    """carried(text, ...): a recorded result, and what is printed, after the files have changed to this text.

    `then`: the text before. `more`: further variants, then and now. `helpers`: further files, then and now. `variant`:
    the text of the variant now, if it is another. `lists_sizes`: whether the baseline does so now.
    """
    monkeypatch.setattr("tools.carry_records.RECORDED", tmp_path / "recorded")

    def write(folder, name, text, variant, more, helpers):
        folder.mkdir()
        write_pair(folder / "ch3", name, {"": variant, **more}, text)
        for file, content in helpers.items():
            (folder / "ch3" / file).write_text(content)
        return folder / "ch3"

    def carry_over(
        text, name="double", names=None, more=({}, {}), helpers=({}, {}), then=TEXT, variant=None, lists_sizes=True,
        **fields,
    ):  # fmt: skip
        names = names or RenameMap()
        old = old_pairs(write(tmp_path / "old", "double", then, then, more[0], helpers[0]), names)
        folder = write(tmp_path / "new", name, text, variant or text, more[1], helpers[1])
        new = {pair.name: pair for pair in discover(folder)}
        for path in [] if lists_sizes else folder.glob("*.py"):
            path.write_text(path.read_text().replace(SIZES, ""))
        known, path = old["double"][1], tmp_path / "recorded/gpu/ch3.json"
        path.parent.mkdir(parents=True)
        save_record(record(pair_result(**{"chapter": "ch3", "source_hash": known, "sizes": {}, **fields})), path)
        (carry_over.before,) = load_record(path).pairs
        carry_records.carry_chapter("ch3", old, new, names)
        (path,) = path.parent.glob("*.json")  # another where the class of its size is another
        (kept,) = load_record(path).pairs
        return kept, current_filter(list(new.values()))(kept), capsys.readouterr().out, known

    return carry_over


@pytest.fixture
def unseen(monkeypatch):
    """Who asks for it has no X-ray: rows are carried by their code, or not at all."""

    def works(path, names, sizes, architecture, say):
        return [{name: ["cannot be seen: here"] for name in names} for _ in sizes]

    monkeypatch.setattr(carry_records, "works", works)


@pytest.mark.rest
@pytest.mark.usefixtures("in_its_process")
def test_other_names_of_the_same_work_keep_their_row(carried):
    kept, current, said, known = carried(RENAMED)
    assert RENAMED != TEXT and current and kept.carried == [known]
    assert said == "ch3.json double default: carried over as double default\n"


@pytest.mark.rest
def test_what_was_carried_before_is_carried_on_from_each_code_that_it_was_of(carried, tmp_path):
    folder = tmp_path / "as_it_was"
    folder.mkdir()
    write_pair(folder / "ch3", "double", TEXT, TEXT)
    (pair,) = discover(folder / "ch3")
    kept, current, *_ = carried(RENAMED, source_hash="in between", carried=[source_hash(pair)])
    assert current and kept.carried == [source_hash(pair), "in between"]


def test_a_loop_that_triton_specializes_is_compared_before_that(monkeypatch):
    numbers = count()
    monkeypatch.setattr("tools.work.machine_code", lambda _: next(numbers))  # each time another

    def code(ttir):
        return code_of(Binary("kernel", b"", "", 128, 0, ttir))

    loop = """tt.func @kernel(%x: i32 {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: i32 loc("y"(#loc))) {
      %sum = arith.addi %x, %y loc(#loc1)
    } {tt.warp_specialize} loc(callsite(#loc2 at #loc3))
    """
    assert code(loop) == code(loop.replace("loc1", "loc7").replace("%x", "%left"))
    assert code(loop) != code(loop.replace("addi", "muli"))
    assert code(loop) != code(loop.replace("%y: i32", "%y: i64"))
    plain = loop.replace("tt.warp_specialize", "")
    assert code(plain) != code(plain)


@pytest.mark.rest
def test_a_pair_with_another_name_and_an_argument_more_keeps_its_row(carried):
    of_2d = {"inputs(n": "inputs(dimensions=3, n", '"large": {"n"': '"2d/large": {"dimensions": 2, "n"'}
    names = RenameMap(pairs={"ch3/double": {"name": "twofold", "arguments": {"dimensions": 2}}})
    kept, current, *_ = carried(changed(RENAMED, of_2d), "twofold", names, size="large", sizes={"n": 4096})
    assert current and (kept.name, kept.size, kept.sizes) == ("twofold", "2d/large", {"dimensions": 2, "n": 4096})


CONSTANT = {"BLOCK: tl.constexpr": "BLOCK: tl.constexpr, TAIL: tl.constexpr", "BLOCK=256": "BLOCK=256, TAIL=0"}
LATER = {"more": ({"later": TEXT}, {"later": TEXT.replace("2 * tl.load", "3 * tl.load")})}  # was not recorded


@pytest.mark.rest
@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (TEXT, LATER),
        (changed(TEXT, CONSTANT), {}),  # the machine code is the same
        (TEXT + "\n\ndef library(x):\n    return x + x\n", {}),
        (changed(TEXT, {"return result": "return result[:]"}), {}),  # a view is no work
    ],
)
def test_what_changes_no_recorded_work_keeps_the_row(text, fields, carried):
    assert carried(text, **fields)[1]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"2 * tl.load": "3 * tl.load"}, "run: launch"),  # the machine code
        ({"empty_like": "zeros_like"}, "run: aten.zeros_like"),
        ({"n=1024": "n=2048"}, "double has no size of {'n': 1024}"),
        ({"return result": "return result.clone() if x.is_cuda else result"}, "run: aten.clone"),
        ({"kernel[(triton.cdiv(x.numel(), 256),)](x, ": "kernel[(triton.cdiv(x.numel(), 256),)](x[1:], "}, "launch"),
    ],
)
def test_other_work_is_stale(changes, said, carried):
    kept, current, out, _ = carried(changed(RENAMED, changes))
    assert not current and not kept.carried and "stale: " in out and said in out


@pytest.mark.rest
@pytest.mark.parametrize(
    ("changes", "stays", "said"),
    [
        ({"result": "y"}, True, "carried over"),
        ({"torch.empty_like(x)": "torch.empty_like(x, dtype=None)"}, False, "its code on the host differs"),
    ],
)
def test_on_the_walls_clock_the_host_has_to_do_the_same(changes, stays, said, carried):
    _, current, out, _ = carried(changed(TEXT, changes), clock="wall")
    assert current is stays and said in out


def test_what_was_recorded_of_another_revision_is_none_of_this_ones(carried):
    kept, current, said, _ = carried(RENAMED, source_hash="another")
    assert not current and kept.source_hash == "another" and "of another revision" in said


def test_a_map_that_is_none_is_one_line(tmp_path):
    path = tmp_path / "map.toml"
    for text in ("[files", "[file]\na = 'b'"):
        path.write_text(text)
        with refused("no map of names", start=path):
            carry_records.run(Namespace(revision="HEAD", chapter=None, map=str(path)))


def test_a_map_has_a_table_for_each_kind_of_name(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('[files]\n"ch3/a" = "ch3/b"\n[functions]\nf = "g"\n[labels."ch3/x"]\noptimized = "optimized/y"')
    names = read_map(str(path))
    assert names == RenameMap({"ch3/a": "ch3/b"}, {"f": "g"}, {"ch3/x": {"optimized": "optimized/y"}})
    assert names.modules("ch3") == {"a": "b", "optimized_x": "optimized_x_y"} and names.modules("ch4") == {}


# What cannot be seen is carried by its code


@pytest.mark.usefixtures("unseen")
def test_what_cannot_be_seen_may_have_other_names_of_local_variables(carried):
    assert carried(changed(TEXT, {"result": "y"}))[1]


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize(
    "changes",
    [
        {"2 * tl.load": "3 * tl.load"},
        {"empty_like": "zeros_like"},
        {"run(x)": "run(y)", "x.numel()": "y.numel()", "(x, result": "(y, result", "_like(x)": "_like(y)"},
        {"triton.cdiv": "cdiv", "import torch\n": "import torch\nfrom triton import cdiv\n"},
    ],
)
def test_what_cannot_be_seen_and_has_other_code_is_stale(changes, carried):
    kept, is_current, said, _ = carried(changed(TEXT, changes))
    assert not is_current and not kept.carried and "its code differs, and its work cannot be seen" in said


def test_the_code_of_a_function_is_all_that_it_reaches(tmp_path):
    (tmp_path / "helper.py").write_text("import os\nSIZE = 2\nOTHER = 3\n\n\ndef size():\n    return SIZE\n")
    (tmp_path / "effects.py").write_text("register(1)\n")
    path, run, cost = tmp_path / "version.py", "def run():\n    return helper.size()", "def cost():\n    return effects"
    path.write_text(f"import effects\nimport helper\n\n\n{run}\n\n\n{cost}\n")
    own = {("", "run"), ("", "helper")}
    assert timed_code(path, ["run"]).keys() == {*own, ("helper.py", "size"), ("helper.py", "SIZE")}
    assert timed_code(path, ["run"], kernels=False).keys() == {("", "run"), ("helper.py", "size")}
    assert timed_code(path, ["cost"]).keys() == {("", "cost"), ("", "effects"), ("effects.py", "")}


# Names of files, functions and versions

HELPER = "multiple = 2\n\n\ndef block():\n    return 128\n"
HELPED = changed(TEXT, {"import torch\n": "import torch\nimport rows\nfrom rows import multiple\n"})
HELPED = changed(
    HELPED, {"2 * x": "multiple * x", ", 256)": ", multiple * rows.block())", "=256": "=multiple * rows.block()"}
)
NEW_NAMES = {"rows": "alignment", "multiple": "factor", "block()": "block_of()"}
MAP = RenameMap({"ch3/rows": "ch3/alignment"}, {"multiple": "factor", "block": "block_of"})


def helpers(changes=None):
    return {"rows.py": HELPER}, {"alignment.py": changed(HELPER, {**NEW_NAMES, **(changes or {})})}


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("clock", ["device", "wall"])
def test_other_names_of_files_and_functions_keep_the_row_on_each_clock_and_unseen(clock, carried):
    now, fields = changed(HELPED, NEW_NAMES), {"helpers": helpers(), "then": HELPED, "clock": clock}
    kept, is_current, _, known = carried(now, names=MAP, **fields)
    assert is_current and kept.carried == [known] != [kept.source_hash]


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize(("names", "changes"), [(MAP, {"128": "64"}), (MAP, {"= 2": "= 3"}), (RenameMap(), {})])
def test_a_helper_with_other_code_or_another_name_that_is_not_in_the_map_is_stale(names, changes, carried):
    said = carried(changed(HELPED, NEW_NAMES), names=names, helpers=helpers(changes), then=HELPED)[2]
    assert "its code differs" in said


def written(folder, text, helper):
    write_pair(folder, "double", re.sub(r"def reference.*?\n{3}", "", text, flags=re.DOTALL), text)
    (folder / helper).write_text(HELPER if helper == "rows.py" else changed(HELPER, NEW_NAMES))
    return folder


def test_old_files_get_new_names_where_these_are_the_chapters(tmp_path):
    user = "import rows as of\nfrom torch import multiple\nmine = [of.block(), multiple, torch.block, f(block=1)]"
    folder = written(tmp_path / "ch3", HELPED, "rows.py")
    (folder / "user.py").write_text(user)
    pair, known = old_pairs(folder, MAP)["double"]
    assert (folder / "user.py").read_text() == changed(user, {"rows": "alignment", "of.block": "of.block_of"})
    (new,) = discover(written(tmp_path / "new", changed(HELPED, NEW_NAMES), "alignment.py"))
    assert source_hash(pair) == source_hash(new) != known


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (RenameMap({"ch3/row": "ch3/alignment"}), "no file"),
        (RenameMap({"ch3/rows": "ch3/baseline_double"}), "in use"),
        (RenameMap(functions={"multiple": "BLOCK"}), "BLOCK is in use"),
    ],
)
def test_a_name_that_is_missing_or_in_use_is_refused(names, said, tmp_path):
    folder = written(tmp_path / "ch3", HELPED, "rows.py")
    with refused(said, start="ch3/"):
        old_pairs(folder, names)


GROUPED = {"rows": [Row("optimized/grouped", "baseline", Verdict.FASTER, ratio=2.0, interval=(1.98, 2.02))]}
GROUPED |= {"arms": arms_for(GROUPED["rows"]), "orders": [[["baseline", "optimized/grouped", "control"]] * 5] * 6}


@pytest.mark.usefixtures("unseen")
def test_another_label_of_a_version_keeps_its_rows_times_and_orders(carried):
    names = RenameMap(labels={"ch3/double": {"optimized/grouped": "optimized/ordered"}})
    kept, is_current, *_ = carried(TEXT, names=names, more=({"grouped": TEXT}, {"ordered": TEXT}), **GROUPED)
    assert is_current and kept.rows == [replace(carried.before.rows[0], variant="optimized/ordered")]
    assert kept.arms["optimized/ordered"] == carried.before.arms["optimized/grouped"] and len(kept.arms) == 3
    assert kept.orders == [[["baseline", "optimized/ordered", "control"]] * 5] * 6


@pytest.mark.parametrize(
    ("changes", "kernel", "stays"),
    [
        ({}, "double_kernel", True),
        ({"import alignment\n": "", "import triton\n": "import triton\nimport alignment\n"}, "double_kernel", True),
        ({"empty_like": "zeros_like"}, "double_kernel", False),
        ({}, "block", False),  # the counts have its old name
    ],
)
def test_counts_are_kept_if_nothing_but_names_has_changed(changes, kernel, stays, tmp_path, monkeypatch):
    monkeypatch.setattr("tools.carry_records.RECORDED", tmp_path)
    old = old_pairs(written(tmp_path / "ch3", HELPED, "rows.py"), MAP)
    (new,) = discover(written(tmp_path / "now", changed(HELPED, {**NEW_NAMES, **changes}), "alignment.py"))
    counted = [VersionTraffic("baseline", Traffic((Kernel(kernel, 1, 1),)))]
    count = CountedPair("ch3", "double", "default", {}, old["double"][1], "device", counted)
    counts.save(counts.new_counts([count], MACHINES["sm_90"]), tmp_path / counts.FILE)
    carry_records.carry_counts("ch3", old, {"double": new}, MAP)
    (kept,) = counts.FORMAT.load(tmp_path / counts.FILE).pairs
    assert kept.is_current(new) is stays and kept.versions == counted


# What is timed, wherever it stands

LIBRARY = "\n\ndef library(x):\n    return x + x\n"
LATE = "\n\ndef library_late(x):\n    return x * 2\n"
COST = '\n\ndef cost(x):\n    return {"dram_bytes": 2 * x.nbytes}\n'
WHOLE = TEXT + COST + LIBRARY + LATE
REFERENCE = TEXT[TEXT.index("def reference") : TEXT.index("@triton")]
NOTES = [Finding(Cause.HOST_BOUND, {"host_us": 2.0, "device_us": 1.0})]
ROW = Row("optimized", "baseline", Verdict.FASTER, None, 2.0, (1.98, 2.02), notes=NOTES)
WIDE = "optimized/wide"
ROW = replace(ROW, vs_library={"library": {"ratio": 1.5, "interval": [1.4, 1.6]}})
TIMED = {"then": WHOLE, "rows": [ROW], "arms": arms_for([ROW])}


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("clock", ["device", "wall"])
def test_verdicts_ratios_and_samples_are_those_from_before(clock, carried):
    kept, is_current, *_ = carried(changed(WHOLE, {"result": "y"}), clock=clock, **TIMED)
    assert is_current and kept.carried == [carried.before.source_hash] != [kept.source_hash]
    assert replace(kept, source_hash=carried.before.source_hash, carried=[]) == carried.before
    assert [(row.verdict, row.ratio) for row in kept.rows] == [(Verdict.FASTER, pytest.approx(2.0))]


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("clock", ["device", "wall"])
def test_what_a_version_inherits_from_its_baseline_is_its_own(clock, carried):
    assert carried(WHOLE, variant=TEXT.replace(REFERENCE, ""), clock=clock, **TIMED)[1]


@pytest.mark.parametrize("variant", [TEXT, WHOLE], ids=["inherited", "its own"])
def test_another_cost_is_stale(variant, carried):
    said = carried(changed(WHOLE, {"2 * x.nbytes": "3 * x.nbytes"}), variant=variant, **TIMED)[2]
    assert "cost: cost {'dram_bytes': 12288} instead of cost {'dram_bytes': 8192}" in said


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("clock", ["device", "wall"])
@pytest.mark.parametrize(
    ("changes", "of_variant"),
    [
        ({"return 2 * x\n": "return x + x\n"}, {}),  # the reference
        ({"x * 2": "3 * x"}, {}),  # a library that was not timed
        ({}, {"x + x": "x - x"}),  # a variant's, where the baseline's is timed
        ({"def library_late": "def library_new(x):\n    return x\n\n\ndef library_late"}, {}),
    ],
)
def test_what_was_not_timed_may_change(changes, of_variant, clock, carried):
    assert carried(changed(WHOLE, changes), variant=changed(WHOLE, of_variant), clock=clock, **TIMED)[1]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"x + x": "x * x"}, "library: aten.mul"),
        ({LIBRARY: ""}, "library is gone"),
        (
            {"return x + x": "return torch.compile(torch.add, fullgraph=True)(x, x)"},
            "torch.compile {fullgraph=",
        ),
    ],
)
def test_a_library_of_other_work_is_left_out(changes, said, carried):
    kept, is_current, out, _ = carried(changed(WHOLE, changes), **TIMED)
    assert carried.before.arms.keys() - kept.arms.keys() == {"library"} and kept.rows[0].vs_library == {}
    assert is_current and kept.carried and ", without library (" in out and said in out


@pytest.mark.rest
def test_a_version_of_other_work_is_left_out_and_not_the_baseline(carried):
    rows = [Row(label, "baseline", Verdict.FASTER, ratio=2.0, interval=(1.98, 2.02)) for label in ("optimized", WIDE)]
    rows.append(Row(WIDE, "optimized", Verdict.SAME, ratio=1.0, interval=(0.99, 1.01)))
    now = {"wide": changed(TEXT, {"2 * tl.load": "3 * tl.load"})}
    kept, is_current, out, _ = carried(WHOLE, more=({"wide": TEXT}, now), then=WHOLE, variant=TEXT, rows=rows)
    assert is_current and [row.variant for row in kept.rows] == ["optimized"] and WIDE not in kept.arms
    assert f", without {WIDE} ({WIDE} run: " in out and {*kept.orders[0][0]} == {*kept.arms}


@pytest.mark.rest
def test_without_its_cost_nothing_of_a_row_is_kept(carried):
    kept, is_current, out, _ = carried(changed(WHOLE, {COST: ""}), **TIMED)
    assert not is_current and not kept.carried and "cost is gone" in out


# Sizes

SIZES = TEXT[TEXT.index("SIZES") : TEXT.index("def inputs")]


@pytest.mark.usefixtures("unseen")
def test_the_contract_of_today_is_not_asked_of_old_files_and_a_sizes_arguments_are_those_of_the_row(carried):
    then, size = changed(TEXT, {'"check": {"n": 5}, ': ""}), {"size": "large", "sizes": {"n": 4096}}
    kept, is_current, *_ = carried(changed(TEXT, {"result": "y"}), then=then, lists_sizes=False, **size)
    assert is_current and kept.sizes == {"n": 4096}


@pytest.mark.rest
@pytest.mark.usefixtures("in_its_process")
@pytest.mark.parametrize(("step", "is_kept"), [(1, True), (2, False)])
def test_an_argument_that_there_is_no_more_had_its_default(step, is_kept, carried):
    then = changed(TEXT, {"n=1024,": "n=1024, step=1,"})
    kept, is_current, out, _ = carried(TEXT, then=then, sizes={"step": step})
    assert is_current is is_kept and bool(kept.carried) is is_kept
    assert is_kept or "double has no size of {'step': 2, 'n': 1024}" in out
