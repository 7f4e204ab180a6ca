"""Chapter 6's notebook: what it counts without processes, its exercise, its schedules; how long it takes to read."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch.distributed as dist
from cells import code_of, literals, pairs_of, told

from common.notebook import chapter_cells as chapters
from common.notebook import nb, processes
from common.pairs.pair import ROOT, load

CODE = code_of("ch6")
PAIRS = {  # as the notebook has them
    name: replace(pair, variants=tuple(version for version in pair.variants if version.label == "optimized"))
    for name, pair in pairs_of("ch6").items()
}
CELLS = json.loads((ROOT / "notebooks/ch6_many_gpus.ipynb").read_text(encoding="utf-8"))["cells"]
TEXTS = {cell["id"]: "".join(cell["source"]) for cell in CELLS}
SOLUTION = re.search(r"```python\n(.*?)```", TEXTS["your-turn-solution"], re.DOTALL)[1]
IMPORTS = """
import os
import torch
import torch.distributed as dist
from common.checks.comm_bytes import CommCounter
LATE, found = 3, lambda: "a cell's, which cannot be pickled"
"""


def test_every_pair_is_in_the_notebook():
    assert PAIRS.keys() <= {text for code in CODE.values() for text in literals(code)}


# What it counts


@pytest.mark.parametrize("number", [2, 3, 8])
@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if not pair.variants[0].needs_cuda])
def test_versions_of_a_pair_send_as_many_bytes_with_any_number_of_processes(name, number):
    found = processes.count_sent(PAIRS[name], "check", number)
    amounts = [[sends.bytes for sends in by_rank] for by_rank in found.values()]
    others = amounts[1:] if name != "all_to_all" else []  # whose baseline sends padding, which is the lesson
    assert all(each == pytest.approx(amounts[0], abs=8) for each in others) and max(amounts[0]) > 0
    assert all(sum(each) <= sum(amounts[0]) + 8 * number for each in amounts)
    assert not dist.is_initialized()


def test_calls_and_bytes_are_those_of_the_definitions(monkeypatch):
    shown = []
    monkeypatch.setattr(processes, "display", lambda markdown: shown.append(markdown.data))
    found = processes.show_sent(PAIRS["buckets"], "check", (8, 2))
    grads = 4 * (127 + 128 + 127 + 128 + 127)
    assert [found[label][0].calls for label in found] == [{"allreduce_": 5}, {"allreduce_": 1}]
    assert [each.bytes for each in found["optimized"]] == [2 * 7 * grads // 8] * 8
    assert f"| optimized | 1 x allreduce | {2 * 7 * grads // 8:,} bytes | {grads:,} bytes |" in shown[0]
    processes.show_sent(PAIRS["pipeline"], "check", (2,))
    assert f"| optimized | 5 x send | at most {4 * 5 * 33} bytes |" in shown[1]


def test_the_ring_sums_and_sends_what_the_text_says():
    here = {"np": np}
    exec(CODE["ring"].split("lines, megabytes")[0], here)
    for n in (1, 2, 5):
        x = np.arange(n * n).reshape(n, n) ** 2
        sums, sent = here["ring"](x)
        assert (sums == x.sum(axis=0)).all() and sent == 2 * (n - 1)


@pytest.mark.parametrize(("stages", "parts"), [(1, 3), (2, 1), (4, 8), (4, 27)])
def test_the_bubble_is_that_of_the_formula(stages, parts):
    here = {"nb": nb}
    exec(CODE["pipeline-count"].split("enough =")[0], here)
    found = here["bubble"](here["pipeline"](stages, parts), stages)
    assert found == pytest.approx((stages - 1) / (parts + stages - 1))
    figure = nb.timelines.timelines({"a": here["pipeline"](stages, parts)}, [f"stage {i}" for i in range(stages)])
    assert f"stage 0 busy {parts / (parts + stages - 1):.0%}" in figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_pair_is_measured_only_where_each_of_its_processes_has_a_gpu(gpus, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(chapters, "has_gpu", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    monkeypatch.setattr(chapters, "run_pairs", lambda pairs, size, fast: asked.append(pairs))
    monkeypatch.setattr(chapters.Chapter, "recorded", lambda self, size: None)
    assert nb.chapter(6).reveal(["buckets"]) == {}
    assert asked == ([] if gpus == 1 else [[pairs_of("ch6")["buckets"]]])
    assert capsys.readouterr().out.startswith("no figures of buckets: ")


# Functions of cells in several processes

FUNCTIONS = """
def later(x):
    return x + LATE


def total(rank, ranks, device):
    x = torch.full((2,), float(rank + 1), device=device)
    dist.all_reduce(x)
    found = [later(each).item() for each in x]
    return found, ranks, os.environ["RANK"]


def fails(rank, ranks, device):
    if rank == 1:
        raise ValueError("no luck")
    dist.barrier()
"""


@pytest.fixture
def functions(tmp_path):
    """functions(text): what cells with this text define, in a module that the processes cannot import."""

    def of(text):
        (tmp_path / "cell.py").write_text(IMPORTS + text, encoding="utf-8")
        return vars(load(tmp_path / "cell.py"))

    return of


def test_a_function_of_a_cell_runs_in_every_process_with_what_it_uses(functions):
    assert processes.in_ranks(functions(FUNCTIONS)["total"], 3) == [([9, 9], 3, str(rank)) for rank in range(3)]


def test_a_process_that_raises_is_named_in_one_line(functions):
    with pytest.raises(processes.NoResult, match=r"^rank 1: ValueError: no luck") as error:
        processes.in_ranks(functions(FUNCTIONS)["fails"])
    assert told(error.value) == str(error.value)


TWO = SOLUTION.replace("dist.all_reduce(packed)", "dist.all_reduce(packed[:1])\n    dist.all_reduce(packed[1:])")


ANSWERS = {
    CODE["your-turn"]: "not yet: process 0 of 3: mean of column 0 of 3 should be ",
    SOLUTION: r"right: 1 calls and 1,371 bytes sent, 1.00 times the least, by 3",
    TWO: "right, but not yet in one collective: 2 calls",
    SOLUTION.replace("packed[-1]", "len(x) / dist.get_world_size()"): "not yet: ",
}
EACH = """
def each(rank, ranks, device):
    found = []
    for text in TEXTS:
        here = {"torch": torch, "dist": dist, "CommCounter": CommCounter}
        exec(text, here)
        found.append(here["check"](rank, ranks, device))
    return found
"""


def test_the_exercise_tells_a_right_answer_from_others(functions):
    """All of them in the same three processes, which take seconds to start."""
    check = CODE["your-turn-check"].split("for ranks in")[0]
    texts = [f"{text}\n\n\n{check}" for text in ANSWERS]
    by_rank = processes.in_ranks(functions(f"TEXTS = {texts!r}\n{EACH}")["each"], 3)
    for says, found in zip(ANSWERS.values(), zip(*by_rank, strict=True), strict=True):
        assert any(re.match(says, text) for text in found), found
