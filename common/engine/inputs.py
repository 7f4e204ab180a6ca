"""The inputs of a pair's candidates: one draw in each one's placement, watched for changes."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from common.checks import arrays, guards, stress
from common.engine.candidates import Candidate, Disqualified, call_function, weights
from common.machine.device import cupy_on
from common.record.outcome import Cause, Finding

SHRINK = (0.9, 0.99)  # values are multiplied by such factors between rounds, so that every value changes
PERIOD = 1021  # of the pattern of factors: a prime, so that rows begin at different places in it


def seed_all(seed: int, device: str) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (whichever generator a pair draws from)
    # without a GPU torch.manual_seed keeps three tracebacks per call for a later CUDA initialization
    (torch.default_generator if device == "cpu" else torch).manual_seed(seed)
    if cupy := cupy_on(device):
        cupy.random.seed(seed % 2**32)


class InputSet:
    """One draw of the inputs, in each candidate's placement, with a private copy for a later comparison.

    `like`: an earlier set whose weights (`w_*`) this one shares, as the calls of a block do. `shared_labels`: those of
    candidates that use the baseline's own buffers, known from an earlier set.
    """

    def __init__(
        self, candidates: list[Candidate], arguments: dict[str, Any], device: str, seed: int,
        like: "InputSet | None" = None, shared_labels: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        seed_all(seed, device)
        self.base: dict[str, Any] = call_function(candidates[0].module, "inputs", {**arguments, "device": device})
        stress.perturb(weights(self.base))
        self.by_label: dict[str, dict[str, Any]] = {}
        for candidate in candidates:
            is_shared = candidate.label in shared_labels
            tree = self.base if is_shared else self._draw_for(candidate, arguments, device, seed)
            self.by_label[candidate.label] = tree
        self.shared_labels = frozenset(label for label, tree in self.by_label.items() if tree is self.base)
        self.pristine = arrays.clone(inputs_proper(self.base))
        self.pristine_weights: dict[str, Any] = like.pristine_weights if like else arrays.clone(weights(self.base))
        if like:
            for label, tree in self.by_label.items():
                tree.update(weights(like.by_label[label]))

    def _draw_for(self, candidate: Candidate, arguments: dict[str, Any], device: str, seed: int) -> dict[str, Any]:
        """A candidate's inputs with the baseline's values; the baseline's own buffers if the placement is equal."""
        seed_all(seed, device)
        inputs: dict[str, Any] = call_function(candidate.module, "inputs", {**arguments, "device": device})
        if problem := arrays.difference(self.base, inputs):
            raise Disqualified(candidate.label, Finding(Cause.OTHER_INPUTS, {"how": problem}))
        if arrays.same_placement(self.base, inputs):
            return self.base
        arrays.copy_into(inputs, self.base)
        return inputs

    @property
    def trees(self) -> list[dict[str, Any]]:
        """Each tree of inputs once."""
        return list({id(tree): tree for tree in self.by_label.values()}.values())

    @property
    def can_mix(self) -> bool:
        """Whether a part of every input may be overwritten. Integers and single values need a new draw instead."""
        return all(arrays.has_arithmetic(t) and t.numel() > 1 for _, t in arrays.tensors(inputs_proper(self.base)))

    def overwrite(self, source: "InputSet", rng: random.Random) -> None:
        """Change every input except the weights, equally for all: a part is replaced, the rest made smaller."""
        arrays.overwrite_slice(self.pristine, inputs_proper(source.base), rng)
        _shrink(self.pristine, _factors(rng))  # the replaced part too: the source was seen
        self._copy_out()

    @contextmanager
    def stress_draw(self, draw: str) -> Iterator[bool]:
        """Inside, the inputs hold a stress draw (common.checks.stress). Yields whether any of them is of its kind."""
        backup, by_label = arrays.clone(self.pristine), self.by_label
        if draw in stress.STRIDES:
            trees = {id(tree): {**tree, **stress.add_gaps(draw, self._like_baseline(tree))} for tree in self.trees}
            self.by_label = {label: trees[id(tree)] for label, tree in by_label.items()}
            yield any(isinstance(x, torch.Tensor | np.ndarray) for _, x in arrays.leaves(self.base))
            self.by_label = by_label
        elif stress.write_draw(draw, self.pristine):
            self._copy_out()
            yield True
            self.pristine = backup
            self._copy_out()
        else:
            yield False

    def _like_baseline(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The inputs with the baseline's placement: another placement may be a version's lesson."""
        same = arrays.same_placement
        return {name: value for name, value in read_only_inputs(tree).items() if same(self.base[name], value)}

    def _copy_out(self) -> None:
        for tree in self.trees:
            arrays.copy_into(inputs_proper(tree), self.pristine)

    def violation(self) -> tuple[str, list[str]] | None:
        """(The changed input, the labels of candidates that had it); None if nothing changed."""
        for tree in self.trees:
            if path := guards.changed_input(read_only_inputs(tree), {**self.pristine, **self.pristine_weights}):
                return path, [label for label, label_tree in self.by_label.items() if label_tree is tree]
        return None

    def restore(self) -> None:
        for tree in self.trees:
            arrays.copy_into(read_only_inputs(tree), {**self.pristine, **self.pristine_weights})


def _factors(rng: random.Random) -> torch.Tensor:
    """A factor for each value: one common factor would only scale a row."""
    generator = torch.Generator().manual_seed(rng.getrandbits(63))
    return torch.empty(PERIOD, dtype=torch.float64, device="cpu").uniform_(*SHRINK, generator=generator)


def _shrink(tree: dict[str, Any], factors: torch.Tensor) -> None:
    """Multiply arrays that fill their memory without gaps, as copies do."""
    for _, tensor in arrays.tensors(tree):
        if arrays.has_arithmetic(tensor):
            flat, row = tensor.as_strided((tensor.numel(),), (1,)), factors.to(tensor)
            whole = flat.numel() // PERIOD * PERIOD
            flat[:whole].view(-1, PERIOD).mul_(row)
            flat[whole:].mul_(row[: flat.numel() - whole])


def harvest_grads(inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The `.grad` of a call's inputs by path, removed from them."""
    grads = {}
    for path, leaf in arrays.leaves(inputs):
        if isinstance(leaf, torch.Tensor) and leaf.grad is not None:
            grads[path], leaf.grad = leaf.grad, None
    return grads


def read_only_inputs(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if not name.startswith("out")}


def inputs_proper(tree: dict[str, Any]) -> dict[str, Any]:
    """The inputs without weights and outputs: they change from call to call and must not be written."""
    return {name: value for name, value in tree.items() if not name.startswith(("w_", "out"))}
