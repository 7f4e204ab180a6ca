"""Rows are carried over where names have changed and the work has not, and stay stale everywhere else."""

import textwrap
from itertools import count

import pytest
from samples import pair_result, record, refused, write_pair

from common.pairs.pair import discover
from common.pairs.source import source_hash
from common.record.load import load_record, save_record
from common.record.store import current
from common.xray.compilers import Binary
from common.xray.work import code_of
from tools import carry_records

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
    """carried(text, ...): a recorded result, and what is printed, after the files have changed to this text."""
    monkeypatch.setattr("tools.carry_records.RECORDED", tmp_path / "recorded")

    def write(folder, name, text, more):
        folder.mkdir()
        write_pair(folder / "ch3", name, {"": text, **more}, text)
        return {pair.name: pair for pair in discover(folder / "ch3")}

    def carry_over(text, name="double", renamed=None, more=({}, {}), **fields):
        old, new = write(tmp_path / "old", "double", TEXT, more[0]), write(tmp_path / "new", name, text, more[1])
        known, path = source_hash(old["double"]), tmp_path / "recorded/gpu/ch3.json"
        path.parent.mkdir(parents=True)
        save_record(record(pair_result(**{"chapter": "ch3", "source_hash": known, "sizes": {}, **fields})), path)
        carry_records.carry_chapter("ch3", old, new, renamed or {})
        (path,) = path.parent.glob("*.json")  # another where the class of its size is another
        (kept,) = load_record(path).pairs
        return kept, current(list(new.values()))(kept), capsys.readouterr().out, known

    return carry_over


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


@pytest.mark.rest
def test_a_version_that_was_not_recorded_may_change(carried):
    assert carried(TEXT, more=({"later": TEXT}, {"later": changed(TEXT, {"2 * tl.load": "3 * tl.load"})}))[1]


@pytest.mark.rest
def test_a_further_constant_that_changes_no_machine_code_keeps_the_row(carried):
    more = {"BLOCK: tl.constexpr": "BLOCK: tl.constexpr, TAIL: tl.constexpr", "BLOCK=256": "BLOCK=256, TAIL=0"}
    assert carried(changed(TEXT, more))[1]


@pytest.mark.rest
def test_a_library_that_was_not_there_yet_keeps_the_row(carried):
    assert carried(TEXT + "\n\ndef library(x):\n    return x + x\n")[1]


@pytest.mark.rest
def test_a_view_is_no_work(carried):
    assert carried(changed(TEXT, {"return result": "return result[:]"}))[1]


def test_a_loop_that_triton_specializes_is_compared_before_that(monkeypatch):
    numbers = count()
    monkeypatch.setattr("common.xray.work.machine_code", lambda _: next(numbers))  # each time another

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
    renamed = {"double": ("twofold", {"dimensions": 2})}
    kept, current, *_ = carried(changed(RENAMED, of_2d), "twofold", renamed, size="large", sizes={"n": 4096})
    assert current and (kept.name, kept.size, kept.sizes) == ("twofold", "2d/large", {"dimensions": 2, "n": 4096})


@pytest.mark.rest
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"2 * tl.load": "3 * tl.load"}, "run: launch"),  # the machine code
        ({"256": "512"}, "run: launch"),
        ({"empty_like": "zeros_like"}, "run: aten.zeros_like"),
        ({"n=1024": "n=2048"}, "double has no size of {'n': 1024}"),
        ({"return result": "return result.clone()"}, "run: aten.clone"),
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


@pytest.mark.parametrize("text", ["x", "x=y:d=foo(", "=y"])
def test_a_renaming_that_is_none_is_one_line(text):
    with refused("must be OLD=NEW"):
        carry_records.run(["HEAD", "--renamed", text])
