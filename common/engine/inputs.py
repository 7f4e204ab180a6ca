"""The inputs of a pair's arms: one draw in each arm's placement, watched for changes."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from common.checks import arrays, guards, stress
from common.engine.candidates import Candidate, Disqualified, ask, weights
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
    """One draw of the inputs, in each arm's placement, with a private copy for a later comparison.

    `like`: an earlier set whose weights (`w_*`) this one shares, as the calls of a block do. `shared`: the labels of
    arms that use the baseline's own buffers, known from an earlier set.
    """

    def __init__(
        self, candidates: list[Candidate], arguments: dict[str, Any], device: str, seed: int,
        like: "InputSet | None" = None, shared: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        seed_all(seed, device)
        self.base: dict[str, Any] = ask(candidates[0].module, "inputs", {**arguments, "device": device})
        stress.perturb(weights(self.base))
        apart = {one.label: self._placed(one, arguments, device, seed) for one in candidates if one.label not in shared}
        self.by_label = {one.label: apart.get(one.label, self.base) for one in candidates}
        self.shared = frozenset(label for label, tree in self.by_label.items() if tree is self.base)
        self.pristine = arrays.clone(inputs_proper(self.base))
        self.pristine_weights: dict[str, Any] = like.pristine_weights if like else arrays.clone(weights(self.base))
        if like:
            for label, tree in self.by_label.items():
                tree.update(weights(like.by_label[label]))

    def _placed(self, one: Candidate, arguments: dict[str, Any], device: str, seed: int) -> dict[str, Any]:
        """An arm's inputs with the baseline's values; the baseline's own buffers if the placement is equal."""
        seed_all(seed, device)
        own: dict[str, Any] = ask(one.module, "inputs", {**arguments, "device": device})
        if problem := arrays.difference(self.base, own):
            raise Disqualified(one.label, Finding(Cause.OTHER_INPUTS, {"how": problem}))
        if arrays.same_placement(self.base, own):
            return self.base
        arrays.copy_into(own, self.base)
        return own

    @property
    def trees(self) -> list[dict[str, Any]]:
        """Each tree of inputs once."""
        return list({id(tree): tree for tree in self.by_label.values()}.values())

    @property
    def mixes(self) -> bool:
        """Whether a part of every input may be overwritten. Integers and single values need a new draw instead."""
        return all(arrays.has_arithmetic(t) and t.numel() > 1 for _, t in arrays.tensors(inputs_proper(self.base)))

    def overwrite(self, source: "InputSet", rng: random.Random) -> None:
        """Change every input except the weights, equally for all arms: a part is replaced, the rest made smaller."""
        arrays.overwrite_slice(self.pristine, inputs_proper(source.base), rng)
        _shrink(self.pristine, _factors(rng))  # the replaced part too: the source was seen
        self._copy_out()

    @contextmanager
    def stressed(self, draw: str) -> Iterator[bool]:
        """Inside, the inputs hold a stress draw (common.checks.stress). Yields whether any of them is of its kind."""
        kept, by_label = arrays.clone(self.pristine), self.by_label
        if draw in stress.STRIDES:
            trees = {id(tree): {**tree, **stress.add_gaps(draw, self._placed_alike(tree))} for tree in self.trees}
            self.by_label = {label: trees[id(tree)] for label, tree in by_label.items()}
            yield any(isinstance(x, torch.Tensor | np.ndarray) for _, x in arrays.leaves(self.base))
            self.by_label = by_label
        elif stress.write_draw(draw, self.pristine):
            self._copy_out()
            yield True
            self.pristine = kept
            self._copy_out()
        else:
            yield False

    def _placed_alike(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The inputs with the baseline's placement: another placement may be a version's lesson."""
        alike = arrays.same_placement
        return {name: value for name, value in unwritable(tree).items() if alike(self.base[name], value)}

    def _copy_out(self) -> None:
        for tree in self.trees:
            arrays.copy_into(inputs_proper(tree), self.pristine)

    def violation(self) -> tuple[str, list[str]] | None:
        """(The changed input, the labels of arms that had it); None if nothing changed."""
        for tree in self.trees:
            if path := guards.changed_input(unwritable(tree), {**self.pristine, **self.pristine_weights}):
                return path, [label for label, theirs in self.by_label.items() if theirs is tree]
        return None

    def restore(self) -> None:
        for tree in self.trees:
            arrays.copy_into(unwritable(tree), {**self.pristine, **self.pristine_weights})


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
    found = {}
    for path, leaf in arrays.leaves(inputs):
        if isinstance(leaf, torch.Tensor) and leaf.grad is not None:
            found[path], leaf.grad = leaf.grad, None
    return found


def unwritable(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if not name.startswith("out")}


def inputs_proper(tree: dict[str, Any]) -> dict[str, Any]:
    """The inputs without weights and outputs: they change from call to call and must not be written."""
    return {name: value for name, value in tree.items() if not name.startswith(("w_", "out"))}
