"""The inputs of a pair's candidates: one draw in each one's placement, watched for changes."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from common.checks import arrays, guards, stress
from common.engine.candidates import KEPT, Candidate, Disqualified, caches, call_function, weights
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


def placement_seed(seed: int) -> int:
    """The seed with which a version is asked where its inputs lie. Else it could compute with the values to come."""
    return random.Random(seed).randrange(2**31)


class InputSet:
    """One draw of the inputs, in each candidate's placement, with a private copy for a later comparison.

    `like`: an earlier set whose weights (`w_*`) this one shares, as the calls of a block do. `shared_labels`: those of
    candidates that use the baseline's own buffers, known from an earlier set. `can_mix`: whether a part of every input
    may be overwritten. Integers, single values, numbers and inputs with structure need a whole new draw instead.
    """

    def __init__(
        self, candidates: list[Candidate], arguments: dict[str, Any], device: str, seed: int,
        like: "InputSet | None" = None, shared_labels: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self._baseline, self._arguments, self._device = candidates[0], arguments, device
        self._structured = getattr(candidates[0].module, "STRUCTURE", {})
        self.base = self._draw(self._baseline, seed)
        stress.perturb(weights(self.base))
        self.by_label: dict[str, dict[str, Any]] = {}
        for candidate in candidates:
            is_shared = candidate.label in shared_labels
            self.by_label[candidate.label] = self.base if is_shared else self._draw_for(candidate, seed)
        self.shared_labels = frozenset(label for label, tree in self.by_label.items() if tree is self.base)
        self.pristine = arrays.clone(inputs_proper(self.base))
        self.pristine_weights: dict[str, Any] = like.pristine_weights if like else arrays.clone(weights(self.base))
        self.can_mix = not self._structured and all(map(_is_mixable, dict(arrays.tensors(self.pristine)).values()))
        if like:
            for label, tree in self.by_label.items():
                tree.update(weights(like.by_label[label]))

    def _draw(self, candidate: Candidate, seed: int) -> dict[str, Any]:
        seed_all(seed, self._device)
        inputs: dict[str, Any] = call_function(candidate.module, "inputs", {**self._arguments, "device": self._device})
        return inputs

    def _draw_for(self, candidate: Candidate, seed: int) -> dict[str, Any]:
        """A candidate's inputs with the baseline's values; the baseline's own buffers if the placement is equal."""
        seed = placement_seed(seed)
        inputs, model = self._draw(candidate, seed), self.base
        if arrays.difference(model, inputs):  # of numbers and lengths that are drawn: they depend on the seed
            model = self._draw(self._baseline, seed)
        if problem := arrays.difference(model, inputs):
            raise Disqualified(candidate.label, Finding(Cause.OTHER_INPUTS, {"how": problem}))
        if arrays.same_placement(model, inputs):
            return self.base
        return {**inputs, **arrays.with_values(inputs, self.base)}

    @property
    def trees(self) -> list[dict[str, Any]]:
        """Each tree of inputs once."""
        return list({id(tree): tree for tree in self.by_label.values()}.values())

    def overwrite(self, source: "InputSet", rng: random.Random) -> None:
        """Change every input except the weights, equally for all: a part is replaced, the rest made smaller.

        Where that is no valid input, or numbers differ between two draws: a new draw of the baseline's `inputs`.
        """
        if self.can_mix and source.can_mix and not self.differing(source):
            arrays.overwrite_slice(self.pristine, inputs_proper(source.base), rng)
            _shrink(self.pristine, _factors(rng))  # the replaced part too: the source was seen
        else:
            fresh = inputs_proper(self._draw(self._baseline, rng.getrandbits(31)))
            self.pristine = arrays.with_values(self.pristine, fresh)
        self._copy_out()

    def differing(self, other: "InputSet") -> str:
        """How the inputs of two draws differ apart from the values of arrays: numbers, texts, lengths."""
        return arrays.difference(inputs_proper(self.base), inputs_proper(other.base))

    @contextmanager
    def stress_draw(self, draw: str) -> Iterator[bool]:
        """Inside, the inputs hold a stress draw (common.checks.stress). Yields whether any of them is of its kind."""
        backup, by_label, shared_labels = arrays.clone(self.pristine), self.by_label, self.shared_labels
        if draw in (*stress.STRIDES, *stress.LAYOUTS):
            if draw == stress.EXPANDED:
                stress.repeat_first(self.pristine)
                self._copy_out()
            proper = inputs_proper if draw == stress.EXPANDED else read_only_inputs
            layouts = {id(tree): stress.change_layout(draw, proper(self._like_baseline(tree))) for tree in self.trees}
            self.by_label = {label: {**tree, **layouts[id(tree)]} for label, tree in by_label.items()}
            self.shared_labels = frozenset()  # an answer may have the memory order of its inputs
            before, after = ({id(x) for _, x in arrays.leaves(tree)} for tree in (self.base, layouts[id(self.base)]))
            yield not after <= before
            self.by_label, self.shared_labels = by_label, shared_labels
        elif stress.write_draw(draw, {k: v for k, v in self.pristine.items() if k not in self._structured}):
            self._copy_out()
            yield True
        else:
            yield False
            return
        self.pristine = backup
        self._copy_out()

    def _like_baseline(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The inputs with the baseline's placement: another placement may be a version's lesson."""
        same = arrays.same_placement
        return {name: value for name, value in read_only_inputs(tree).items() if same(self.base[name], value)}

    def _copy_out(self) -> None:
        for tree in self.trees:
            tree.update(arrays.with_values(inputs_proper(tree), self.pristine))

    def prepare(self, label: str) -> dict[str, Any]:
        """A candidate's inputs for its next call: outputs hold no earlier answer, caches what was drawn."""
        tree = self.by_label[label]
        guards.poison_outputs(tree)
        arrays.copy_into(caches(tree), caches(self.pristine))
        return tree

    def violation(self) -> tuple[str, list[str]] | None:
        """(The changed input, the labels of candidates that had it); None if nothing changed."""
        for tree in self.trees:
            if path := guards.changed_input(read_only_inputs(tree), self._unchanged):
                return path, [label for label, label_tree in self.by_label.items() if label_tree is tree]
        return None

    def restore(self) -> None:
        for tree in self.trees:
            arrays.copy_into(read_only_inputs(tree), self._unchanged)

    @property
    def _unchanged(self) -> dict[str, Any]:
        return {**read_only_inputs(self.pristine), **self.pristine_weights}


def _is_mixable(t: torch.Tensor) -> bool:
    return arrays.has_arithmetic(t) and t.numel() > 1


def _factors(rng: random.Random) -> torch.Tensor:
    """A factor for each value: one common factor would only scale a row."""
    generator = torch.Generator().manual_seed(rng.getrandbits(63))
    return torch.empty(PERIOD, dtype=torch.float64, device="cpu").uniform_(*SHRINK, generator=generator)


def _shrink(tree: dict[str, Any], factors: torch.Tensor) -> None:
    """Multiply arrays that fill their memory without gaps, as copies do."""
    rows: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}  # the factors in each type, on each device
    for _, tensor in arrays.tensors(tree):
        if arrays.has_arithmetic(tensor):
            form = tensor.dtype, tensor.device
            rows[form] = rows[form] if form in rows else factors.to(tensor)
            flat, row = tensor.as_strided((tensor.numel(),), (1,)), rows[form]
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
    return {name: value for name, value in tree.items() if not name.startswith(("out", *KEPT))}


def inputs_proper(tree: dict[str, Any]) -> dict[str, Any]:
    """The inputs without weights and outputs: they change from call to call."""
    return {name: value for name, value in tree.items() if not name.startswith(("w_", "out"))}
