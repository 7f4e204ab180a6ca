"""Chapter 8: every version of the training step trains as float64 does. (One step is judged in test_pairs.py.)"""

import importlib
import sys

import pytest
import torch

from common.checks.arrays import clone, to_float64
from common.pairs.pair import ROOT, discover

STEPS = 20
SHAPE = {"batch": 4, "tokens": 32, "layers": 2, "hidden": 64, "heads": 4, "vocabulary": 300}
# How far from float64, at most, are 20 losses, the first gradients, the last weights: in roundings, each at most this
# part of a number. A loss is a mean of 128 words, so that roundings to bfloat16 cancel; in float32 sums have their own.
# Gradients are read from the first moment, of which they are a fiftieth: a rounding of it is 50 of theirs.
NEAR = {"": (2**-24, 4, 100, 20), "bf16": (2**-8, 0.05, 4, 1)}
NEEDS_A_GPU = {"optimized/tf32", "optimized/graph"}  # on a CPU a setting does nothing, and there are no graphs
(PAIR,) = discover(ROOT / "ch8", "training_step")
VERSIONS = [version for version in PAIR.versions if version.label not in NEEDS_A_GPU]


@pytest.fixture(scope="module")
def chapter():
    """What imports a module of the chapter."""
    sys.path.insert(0, str(ROOT / "ch8"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "ch8"))


@pytest.fixture(scope="module")
def trained(chapter):
    """trained(module, inputs, words): its losses, the first step's gradients, the weights at last."""

    def train(module, inputs, words):
        inputs = clone(inputs)
        before, state = clone(inputs["state_m"]), module.setup(**inputs)
        losses = []
        with torch.compiler.set_stance("force_eager"):  # a compiled version as it is: a test has no time to compile it
            for batch in words:
                losses.append(module.run(**inputs | {"words": batch}, **state))
                if len(losses) == 1:
                    gradients = [(m - 0.9 * old) / 0.1 for m, old in zip(inputs["state_m"], before, strict=True)]
        return torch.stack(losses), gradients, inputs["state_weights"]

    return train


@pytest.fixture(scope="module")
def exact(chapter, trained):
    """The inputs, the words of each step, and what float64 makes of them."""
    torch.manual_seed(0)
    baseline = chapter("baseline_training_step")
    inputs = baseline.inputs(**SHAPE, device="cpu")
    pattern = torch.randint(SHAPE["vocabulary"], (8,))  # something to learn: the same eight words, again and again
    starts = torch.randint(8, (STEPS, SHAPE["batch"], 1))
    words = pattern[(starts + torch.arange(SHAPE["tokens"] + 1)) % 8]
    return inputs, words, trained(baseline, to_float64(inputs), words)


def relative(value, expected):
    return float((value - expected).norm() / expected.norm())


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.label)
def test_it_trains_as_float64_does(version, chapter, trained, exact):
    inputs, words, (losses, gradients, weights) = exact
    module = chapter(version.path.stem)
    eps, *near = NEAR[getattr(module, "PRECISION", "")]
    my_losses, my_gradients, my_weights = trained(module, inputs, words)
    assert relative(my_losses, losses) < near[0] * eps
    assert max(map(relative, my_gradients, gradients)) < near[1] * eps
    assert max(map(relative, my_weights, weights)) < near[2] * eps
    assert losses[-1] < 0.8 * losses[0]  # it learns
