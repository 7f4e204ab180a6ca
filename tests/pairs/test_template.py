"""CONTRIBUTING.md's pair is one that a reader can copy: it runs, it is right, and a wrong answer in it is found."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from common.engine.runner import run_pairs
from common.pairs.pair import ROOT, discover, load

NAMED_BLOCK = re.compile(r"^`(\w+\.py)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = ["baseline_blend.py", "optimized_blend.py"]
RUN_BODY = re.compile(r"(?<=\ndef run\(a, b, weight\):\n    )return .*")


@pytest.fixture
def folder(tmp_path):
    """The template's files, as a reader would save them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = dict(NAMED_BLOCK.findall(text))
    assert sorted(blocks) == NAMES
    assert text.count("```python") == len(blocks)
    for name, code in blocks.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


@pytest.mark.rest
def test_template_runs(folder):
    command = [sys.executable, ROOT / "benchmark.py", "--path", folder, "--fast"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b(faster|slower|same|unsure)\b", done.stdout)


@pytest.mark.parametrize("n", [1, 129])
@pytest.mark.parametrize("name", NAMES)
def test_version_agrees_with_numpy(folder, name, n):
    version = load(folder / name)
    given = version.inputs(n=n, device="cpu")
    a, b = (given[key].numpy().astype(np.float64) for key in "ab")
    truth = (1 - given["weight"]) * a + given["weight"] * b
    out = version.run(**given)
    assert out.dtype == torch.float32
    np.testing.assert_allclose(out, truth, rtol=1e-5, atol=1e-6)


def verdict_of(folder):
    (pair,) = run_pairs(discover(folder), device="cpu", check_only=True).pairs
    return pair.rows[0].verdict


def test_it_is_right_and_zeros_are_found(folder, machine):
    assert verdict_of(folder) == "verified"
    for name in NAMES:
        text = (folder / name).read_text(encoding="utf-8")
        code, replaced = RUN_BODY.subn("return torch.zeros_like(a)", text)
        assert replaced == 1
        (folder / name).write_text(code, encoding="utf-8")
        assert verdict_of(folder) == "invalid"
        (folder / name).write_text(text, encoding="utf-8")


def test_versions_differ_in_their_lesson_only(folder):
    """Docstrings and what stands in the baseline only apart, the diff is one line."""
    codes = [version.path.read_text(encoding="utf-8").split('"""', 2)[2] for version in discover(folder)[0].versions]
    assert ["SIZES" in code for code in codes] == [True, False]
    of_baseline = re.compile(r"\nSIZES = {.*?\n}\n|def cost.*?\n\n\n", re.DOTALL)
    first, second = (of_baseline.sub("", code).splitlines() for code in codes)
    assert [mine != theirs for mine, theirs in zip(first, second, strict=True)].count(True) == 1
