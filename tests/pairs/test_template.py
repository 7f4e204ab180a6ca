"""CONTRIBUTING.md's pair is one that a reader can copy: it runs, it is right, and a wrong answer in it is found."""

import re

import numpy as np
import pytest
import torch
from samples import TEMPLATE, write_template

from common.engine.runner import run_pairs
from common.pairs.pair import discover, load

RUN_BODY = re.compile(r"(?<=\ndef run\(a, b, weight\):\n    )return .*")


@pytest.fixture
def folder(tmp_path):  # test_cli.py runs the pair from the shell
    write_template(tmp_path)
    return tmp_path


@pytest.mark.parametrize("n", [1, 129])
@pytest.mark.parametrize("name", TEMPLATE)
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
    for name in TEMPLATE:
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
