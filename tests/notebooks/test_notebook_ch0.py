"""Chapter 0's exercises: each start is refused, each solution passes; how long it takes to read."""

import re

import pytest
import torch
from cells import code_of, told
from primer import defined, solution

from common.notebook import kernel_check, nb

pytest.importorskip("triton")

EXERCISES = ("add", "row-sum", "transpose")
ADD, TRANSPOSE = solution("add"), solution("transpose")


@pytest.fixture
def module(tmp_path):
    return lambda text: defined(text, tmp_path)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_start_is_not_right_and_its_solution_is(name, module, capsys):
    check = code_of("ch0")[f"{name}-check"]
    exec(check, {"nb": nb, "torch": torch, **module(code_of("ch0")[f"{name}-start"])})
    assert capsys.readouterr().out.startswith("not yet: inputs of ")
    exec(check, {"nb": nb, "torch": torch, **module(solution(name))})
    said = capsys.readouterr().out
    assert re.match(r"right: .*\ntraffic at .*, 1\.0\d times the least", said)


def test_threads_share_a_block(module):
    kernel, x = module(ADD)["add_kernel"], torch.empty(1 << 20, device="meta")
    found = [nb.compiled(kernel, x, x, x, x.numel(), BLOCK=1024, num_warps=warps) for warps in (4, 32)]
    assert [each.threads for each in found] == [128, 1024]
    assert [each.widest("global loads") for each in found] == [128, 32]


def test_without_triton_one_line_says_so(monkeypatch):
    monkeypatch.setattr(kernel_check, "find_spec", lambda name: None)
    with pytest.raises(kernel_check.NoTriton) as error:
        nb.need_triton()
    assert told(error.value) == str(error.value) and "Linux" in str(error.value)


def test_what_one_program_touches(module):
    n, add = 10, module(ADD)["add"]
    tensors = {"x": torch.zeros(n), "y": torch.zeros(n), "out": torch.zeros(n)}
    _, accesses = nb.traced(add, *tensors.values())
    drawn = nb.programs.touched(accesses, tensors["out"], 0)
    assert drawn.tolist() == [[nb.programs.STORED] * n + [nb.programs.MASKED] * (64 - n)]
    assert (nb.programs.touched(accesses, tensors["x"], 1) == nb.programs.UNTOUCHED).all()
    figure = nb.programs.one_program(accesses, tensors, 0)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["x, program 0", "y", "out"]
