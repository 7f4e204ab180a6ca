"""CONTRIBUTING.md's pair is one that a reader can copy: it runs, it is right, and a wrong answer in it is found."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from common.pairs.pair import ROOT, discover, load

NAMED_BLOCK = re.compile(r"^`(\w+\.py)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUN_BODY = re.compile(r"(?<=\ndef run\(a, b, weight\):\n    )return .*")


@pytest.fixture
def folder(tmp_path):
    """The template's files, as a reader would save them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = dict(NAMED_BLOCK.findall(text))
    assert sorted(blocks) == ["baseline_blend.py", "optimized_blend.py"]
    assert text.count("```python") == len(blocks)
    for name, code in blocks.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


def benchmark(folder, *arguments):
    command = [sys.executable, ROOT / "benchmark.py", "--path", folder, *arguments]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


@pytest.mark.parametrize(("how", "verdicts"), [("--check", "checked"), ("--fast", "faster|slower|same|unsure")])
def test_template_runs(folder, how, verdicts):
    done = benchmark(folder, how)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b({verdicts})\b", done.stdout)


@pytest.mark.parametrize("n", [1, 127, 129, 4096])
@pytest.mark.parametrize("name", ["baseline_blend", "optimized_blend"])
def test_version_agrees_with_numpy_and_zeros_do_not(folder, name, n):
    version = load(folder / f"{name}.py")
    given = version.inputs(n=n, device="cpu")
    a, b = (given[key].numpy().astype(np.float64) for key in "ab")
    truth = (1 - given["weight"]) * a + given["weight"] * b
    out = version.run(**given)
    assert out.dtype == torch.float32
    np.testing.assert_allclose(out, truth, rtol=1e-5, atol=1e-6)
    assert not np.allclose(np.zeros(n), truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["baseline_blend.py", "optimized_blend.py"])
def test_zeros_are_found(folder, name):
    path = folder / name
    code, replaced = RUN_BODY.subn("return torch.zeros_like(a)", path.read_text(encoding="utf-8"))
    assert replaced == 1
    path.write_text(code, encoding="utf-8")
    done = benchmark(folder, "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"\binvalid\b", done.stdout)


def test_versions_differ_in_their_lesson_only(folder):
    """Docstrings apart, the diff is one line."""
    codes = [version.path.read_text(encoding="utf-8").split('"""', 2)[2] for version in discover(folder)[0].versions]
    first, second = (code.splitlines() for code in codes)
    assert len(first) == len(second)
    assert sum(mine != theirs for mine, theirs in zip(first, second, strict=True)) == 1
