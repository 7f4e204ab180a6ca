"""Chapter 0's exercises: each start is refused, each solution passes; a wrong kernel is told what it looks like."""

import importlib.util
import json
import re

import pytest
import torch
from cells import code_of

from common.notebook import exercise, nb
from common.pairs.pair import ROOT

pytest.importorskip("triton")

EXERCISES = ("add", "row-sum", "transpose")
NOTEBOOK = ROOT / "notebooks/ch0_triton.ipynb"
IMPORTS = "import triton\nimport triton.language as tl\n\n\n"
MARKDOWN = {
    cell["id"]: "".join(cell["source"])
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "markdown"
}


def solution(name):
    return re.search(r"```python\n(.*?)```", MARKDOWN[f"{name}-solution"], re.DOTALL)[1]


@pytest.fixture
def module(tmp_path):
    """module(text): what a cell's code defines, from a file: Triton reads a kernel's source."""

    def of(text):
        path = tmp_path / "cell.py"
        path.write_text(IMPORTS + text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("cell", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return vars(made)

    return of


@pytest.mark.parametrize("name", EXERCISES)
def test_a_start_is_not_right_and_its_solution_is(name, module, capsys):
    check = code_of("ch0")[f"{name}-check"]
    exec(check, {"nb": nb, "torch": torch, **module(code_of("ch0")[f"{name}-start"])})
    assert capsys.readouterr().out.startswith("not yet: inputs of ")
    exec(check, {"nb": nb, "torch": torch, **module(solution(name))})
    said = capsys.readouterr().out
    assert re.match(r"right: .*\ntraffic at .*, 1\.0\d times the least", said)


def test_the_notebook_is_read_in_twenty_minutes():
    words = sum(len(text.split()) for text in [*MARKDOWN.values(), *code_of("ch0").values()])
    assert words / 220 <= 19  # and a minute to run
    assert max(len(code.splitlines()) for code in code_of("ch0").values()) <= 40


ADD = solution("add")
FAULTS = {
    "no mask": ((", mask=mask)", ")"), "program 1 loads x at offset 127, but x has 127 elements"),
    "no mask of the store": (
        ("x + y, mask=mask", "x + y"), "program 1 stores to out at offset 127, but out has 127 elements",
    ),
    "too few programs": (("triton.cdiv(n, 64)", "1"), r"out\[64\] .* never written. Nor is anything behind"),
    "a part of a block": (
        ("mask = offsets < n", "mask = (offsets < n) & (offsets % 64 < 60)"),
        r"out\[60\] should be .*, but is never written. 7 of 127",
    ),
    "no program": (("triton.cdiv(n, 64)", "n // 128"), "no program has stored anything"),
    "one place": (
        ("out_ptr + offsets, x + y, mask=mask", "out_ptr + offsets % 64, x + y, mask=mask"),
        r"Programs 0 and 1 both write it",
    ),
    "another element": (
        ("out_ptr + offsets, x + y", "out_ptr + n - 1 - offsets, x + y"), r"out\[0\] .* belongs into out\[126\]",
    ),
    "another value": (("x + y,", "x - y,"), r"out\[0\] should be .*, got .* \(127 of 127 elements are wrong\)$"),
    "NaN": (("x + y,", "(x + y) * float('nan'),"), "got nan"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_is_told_what_it_looks_like(fault, module, capsys):
    change, said = FAULTS[fault]
    text = ADD.replace(*change)
    assert text != ADD
    exercise.check_kernel(module(text)["add"], torch.add, [(127,), (1,)])
    out = capsys.readouterr().out.strip()
    assert out.startswith("not yet: inputs of 127: ") and re.search(said, out), out
    assert out.count("\n") == 0


def test_sizes_beside_the_first_are_checked_and_the_traffic_is_counted(module, capsys):
    only_whole = module(ADD.replace("triton.cdiv(n, 64)", "max(n // 64, 1)"))["add"]
    exercise.check_kernel(only_whole, torch.add, [(128,), (129,)])
    assert "not yet: inputs of 129: out[128]" in capsys.readouterr().out
    apart = module(ADD.replace("tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
                               "tl.arange(0, BLOCK) * tl.num_programs(0) + tl.program_id(0)"))["add"]  # fmt: skip
    exercise.check_kernel(apart, torch.add, [(1024,)])
    assert "traffic at 1024: 3,072 sectors, 8.00 times the least (384)" in capsys.readouterr().out


def test_an_answer_without_a_kernel_is_none(capsys):
    exercise.check_kernel(lambda x, out: out.copy_(x), lambda x: x, [(8,)])
    assert capsys.readouterr().out == "not yet: inputs of 8: no program has stored anything\n"


def test_an_error_in_a_kernel_is_its_writers_to_read(module):
    broken = module(ADD.replace("BLOCK=64", "BLOCK=63"))["add"]
    with pytest.raises(Exception, match="power of 2"):
        exercise.check_kernel(broken, torch.add, [(128,)])


def test_threads_share_a_block(module):
    kernel, x = module(ADD)["add_kernel"], torch.empty(1 << 20, device="meta")
    found = [nb.compiled(kernel, x, x, x, x.numel(), BLOCK=1024, num_warps=warps) for warps in (4, 32)]
    assert [each.threads for each in found] == [128, 1024]
    assert [each.widest("global loads") for each in found] == [128, 32]


def test_without_triton_one_line_says_so(monkeypatch):
    monkeypatch.setattr(exercise, "find_spec", lambda name: None)
    with pytest.raises(exercise.NoTriton) as error:
        nb.need_triton()
    assert error.value._render_traceback_() == [str(error.value)] and "Linux" in str(error.value)


def test_what_one_program_touches(module):
    n, add = 10, module(ADD)["add"]
    tensors = {"x": torch.zeros(n), "y": torch.zeros(n), "out": torch.zeros(n)}
    _, accesses = nb.traced(add, *tensors.values())
    drawn = nb.programs.touched(accesses, tensors["out"], 0)
    assert drawn.tolist() == [[nb.programs.STORED] * n + [nb.programs.MASKED] * (64 - n)]
    assert (nb.programs.touched(accesses, tensors["x"], 1) == nb.programs.UNTOUCHED).all()
    figure = nb.programs.one_program(accesses, tensors, 0)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"{name}, program 0" for name in tensors]


def test_masked_lanes_lie_beyond_a_transposed_tile_too(module):
    x, out = torch.randn(6, 10), torch.zeros(10, 6)
    _, accesses = nb.traced(module(solution("transpose"))["transpose"], x, out)
    touched = nb.programs.touched(accesses, out, 0)
    assert touched.shape == (16, 16) and (touched[:10, :6] == nb.programs.STORED).all()
    assert (touched == nb.programs.MASKED).sum() == 16 * 16 - 60
