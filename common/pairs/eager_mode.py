"""torch's operations one by one, as they are written: what counts them, and what writes them down, starts from here."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def tensors_in(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def with_own_memory(made: list[torch.Tensor], given: list[torch.Tensor]) -> list[torch.Tensor]:
    """What an operation made, without views of what it was given."""
    storages = {t.untyped_storage()._cdata for t in given}
    return [t for t in made if t.untyped_storage()._cdata not in storages]


class EagerMode(TorchDispatchMode):
    """A dispatch mode under which torch.compile compiles nothing. It does not import torch._dynamo: that takes 2 s."""

    _should_skip_dynamo = classmethod(lambda cls: False)  # otherwise the first operation imports it

    def __init__(self) -> None:
        super().__init__()
        self._eagerly = list[AbstractContextManager[Any]]()  # one for each time that it is entered

    def __enter__(self) -> Any:
        is_known = "torch._dynamo" in sys.modules  # without it nothing has been compiled yet
        self._eagerly.append(
            torch.compiler.set_stance("force_eager") if is_known else patch.object(torch, "compile", _uncompiled)
        )
        self._eagerly[-1].__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return super().__exit__(*error)
        finally:
            self._eagerly.pop().__exit__(*error)


def _uncompiled(model: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    return model if model is not None else lambda function: function
