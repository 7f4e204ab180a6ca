"""Arrays of torch, NumPy and CuPy handled alike. A "tree" is an array, a number, or a dict, list or tuple of trees."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

Tree = Any
_Row = TypeVar("_Row")
LONG_LIST = 64  # entries
# values handled at once: in float64 2 MiB, which fit in a core's cache, or 32 MiB, which fit in a GPU's
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 22}
SMALL = 64  # arrays in a block: larger ones are handled alone


def is_cupy(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "__cuda_array_interface__")


def is_array(x: Any) -> bool:
    return isinstance(x, torch.Tensor) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufc") or is_cupy(x)


def is_plain(x: Any) -> bool:
    """Whether an array is of the library's own class; a subclass could compute when it is read."""
    return type(x) in (torch.Tensor, torch.nn.Parameter, np.ndarray) or type(x).__module__ == "cupy"


def laziness(t: torch.Tensor) -> str:
    """What reading a tensor still has to compute; empty if nothing."""
    if t.layout != torch.strided:
        return f"a tensor of layout {t.layout}"
    if t.is_conj() or t.is_neg():
        return "a tensor that is negated or conjugated when read"
    return "an expanded tensor, fewer values than it shows" if has_repeats(t) else ""


def has_repeats(t: torch.Tensor) -> bool:
    """Whether several elements share a place in memory."""
    sparse = t.layout != torch.strided
    return sparse or any(size > 1 and step == 0 for size, step in zip(t.shape, t.stride(), strict=True))


def has_arithmetic(t: torch.Tensor) -> bool:
    """Whether the type is a floating type with arithmetic. One-byte types are only for storage."""
    return t.is_floating_point() and t.element_size() > 1


def memory_order(t: torch.Tensor) -> str:
    """The memory order: contiguous, or the strides."""
    return "contiguous" if t.layout != torch.strided or t.is_contiguous() else f"strides {list(t.stride())}"


def as_tensor(x: Any) -> torch.Tensor:
    """A tensor of real numbers on the same memory (a copy for an array with negative strides, which torch lacks)."""
    if isinstance(x, np.ndarray):
        tensor = torch.from_numpy(x if all(stride >= 0 for stride in x.strides) else x.copy())
    else:
        tensor = x.detach() if isinstance(x, torch.Tensor) else torch.as_tensor(x, device=f"cuda:{x.device.id}")
    return torch.view_as_real(tensor) if tensor.is_complex() and not tensor.is_conj() else tensor


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf of a tree, in a fixed order."""
    if isinstance(tree, dict):
        for key, value in sorted(tree.items()):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, list | tuple):
        for i, value in enumerate(tree):
            yield from leaves(value, f"{path}[{i}]")
    else:
        yield path, tree


def tensors(tree: Tree) -> Iterator[tuple[str, torch.Tensor]]:
    return ((path, as_tensor(leaf)) for path, leaf in leaves(tree) if is_array(leaf))


def batches(rows: Iterable[_Row], first: Callable[[_Row], torch.Tensor]) -> Iterator[list[_Row]]:
    """Rows whose first arrays are large, each alone; between them, successive rows of one type and device together.

    So hundreds of small arrays become a few long ones (`join`): on a GPU each operation takes microseconds.
    """
    batch, form, room = list[_Row](), None, 0
    for row in rows:
        array = first(row)
        count, block = array.numel(), BLOCK[array.device.type]
        is_small, is_alike = count <= block // SMALL, form == (array.dtype, array.device)
        if batch and not (is_small and is_alike and count <= room):
            yield batch
            batch = []
        if not batch:
            form, room = (array.dtype, array.device), block if is_small else 0
        batch.append(row)
        room -= count
    if batch:
        yield batch


def join(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Flat arrays behind each other; one alone is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat([*parts])


def map_arrays(function: Callable[[Any], Any], tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: map_arrays(function, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        mapped = [map_arrays(function, value) for value in tree]
        return type(tree)(*mapped) if hasattr(tree, "_fields") else type(tree)(mapped)
    return function(tree) if is_array(tree) else tree


def private_views(tree: Tree) -> Tree:
    """The same memory behind new arrays, dicts and lists, so that changes of these stay private.

    (A leaf that collects gradients stays itself: its view would not collect them.)
    """

    def view(x: Any) -> Any:
        return x if isinstance(x, torch.nn.Parameter) or getattr(x, "requires_grad", False) else x[...]

    return map_arrays(view, tree)


def memory_span(t: torch.Tensor) -> tuple[int, int]:
    """The addresses at which a tensor begins and ends; (0, 0) if it has no memory of its own."""
    if t.layout != torch.strided or not t.numel():
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True)) + 1
    return t.data_ptr(), t.data_ptr() + reach * t.element_size()


def overlap_path(tree: Tree, other: Tree) -> str:
    """The path of an array in `tree` that shares memory with one in `other`; empty if none does."""
    spans = [(*memory_span(t), side is tree, path) for side in (tree, other) for path, t in tensors(side)]
    last = {True: (0, ""), False: (0, "")}  # of those that begin earlier, the one that ends last
    for start, end, is_first, path in sorted(spans):
        other_end, other_path = last[not is_first]
        if start < other_end:
            return path if is_first else other_path
        last[is_first] = max(last[is_first], (end, path))
    return ""


def clone(tree: Tree) -> Tree:
    """A private copy in the same kind and placement (a pinned tensor's clone is pinned)."""

    def copy(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x.copy()
        return torch.empty_like(x, pin_memory=x.device.type == "cpu" and x.is_pinned()).copy_(x.detach())

    return map_arrays(copy, tree)


def merge_numbers(tree: Tree) -> Tree:
    """A long list of single numbers, each an array, as one array: to handle each takes too long."""
    if isinstance(tree, dict):
        return {key: merge_numbers(value) for key, value in tree.items()}
    if not isinstance(tree, list | tuple) or len(tree) < LONG_LIST:
        return tree
    kinds = {(type(x), getattr(x, "dtype", None), getattr(x, "device", None), getattr(x, "ndim", 1)) for x in tree}
    ((kind, _, _, axes), *others) = kinds
    return torch.stack([*tree]) if kind is torch.Tensor and axes == 0 and not others else tree


def to_float64(tree: Tree) -> Tree:
    """Floating arrays in float64, everything else as it is."""

    def widen(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            wide = torch.complex128 if x.is_complex() else torch.float64 if x.is_floating_point() else x.dtype
            return x.detach().to(wide)
        return x.astype({"f": np.float64, "c": np.complex128}[x.dtype.kind]) if x.dtype.kind in "fc" else x

    return map_arrays(widen, tree)


def difference(tree: Tree, other: Tree) -> str:
    """How two trees differ in names, shapes, dtypes or numbers, which versions share; empty if they do not."""
    a, b = dict(leaves(tree)), dict(leaves(other))
    if a.keys() != b.keys():
        return f"has {', '.join(sorted(b)) or 'nothing'} instead of {', '.join(sorted(a)) or 'nothing'}"
    for path, x in a.items():
        y = b[path]
        if is_array(x) != is_array(y) or (not is_array(x) and x != y):
            return f"{path} is {y!r:.60} instead of {x!r:.60}"
        if is_array(x) and (as_tensor(x).shape, as_tensor(x).dtype) != (as_tensor(y).shape, as_tensor(y).dtype):
            return f"{path} is {as_tensor(y).dtype} {list(y.shape)} instead of {as_tensor(x).dtype} {list(x.shape)}"
    return ""


def same_placement(a: Tree, b: Tree) -> bool:
    """Whether two trees of equal shapes have equal placement: kind, device, strides, alignment, pinning."""

    def placement(x: Any) -> tuple:
        t = as_tensor(x)
        return type(x), t.device, t.stride(), t.data_ptr() % 16, t.device.type == "cpu" and t.is_pinned()

    return all(
        not is_array(x) or placement(x) == placement(y) for (_, x), (_, y) in zip(leaves(a), leaves(b), strict=True)
    )


def copy_into(target: Tree, source: Tree) -> None:
    for (_, t), (_, s) in zip(tensors(target), tensors(source), strict=True):
        t.copy_(s)


def with_values(target: Tree, source: Tree) -> Tree:
    """The target's arrays with the source's values, written in place; every other leaf is the source's.

    So is an array whose length is drawn, too, if it is another one: a copy in the source's placement.
    """
    if isinstance(source, dict):
        return {key: with_values(target[key], value) for key, value in source.items()}
    if isinstance(source, list | tuple) and len(source) == len(target):
        values = [with_values(t, s) for t, s in zip(target, source, strict=True)]
        return type(source)(*values) if hasattr(source, "_fields") else type(source)(values)
    if not is_array(source) or tuple(target.shape) != tuple(source.shape):
        return clone(source)
    as_tensor(target).copy_(as_tensor(source))
    return target


def overwrite_slice(target: Tree, source: Tree, rng: random.Random) -> None:
    """Overwrite, in each array, a random part (an eighth of its longest axis) with the source's."""
    for (_, t), (_, s) in zip(tensors(target), tensors(source), strict=True):
        axis = max(range(s.dim()), key=s.size)
        length = -(-s.size(axis) // 8)
        start = rng.randrange(s.size(axis) - length + 1)
        t.narrow(axis, start, length).copy_(s.narrow(axis, start, length))


def nbytes(tree: Tree) -> int:
    return sum(t.numel() * t.element_size() for _, t in tensors(tree))
