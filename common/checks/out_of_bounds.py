"""Triton's interpreter, made to refuse an address outside of all arrays that a kernel is given.

Such a load reads what lies there, and such a store changes it: mostly nothing is seen, and now and then the process
dies. On a GPU nobody looks: there it is the task of NVIDIA's compute-sanitizer.
"""

import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves


class OutOfBounds(Exception):
    """A kernel reads or writes beside its arrays."""


def enforce() -> None:
    """From here on, for all kernels that this process interprets, if it has loaded Triton for that.

    A kernel that is given 64-bit integers may go anywhere: they may be addresses.
    """
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    interprets = interpreter and os.environ.get("TRITON_INTERPRET") == "1"
    if not interprets or isinstance(interpreter._interpreter, SimpleNamespace):  # the second: it does already
        return
    memory, convert = interpreter._interpreter, interpreter.GridExecutor._init_args_hst
    spans: list[tuple[int, int]] = []

    def record_spans(self: Any, *arguments: Any) -> Any:
        args, kwargs = convert(self, *arguments)
        tensors = [getattr(leaf, "base", leaf) for leaf in tree_leaves((args, kwargs))]  # .base: of a descriptor
        tensors = [leaf for leaf in tensors if hasattr(leaf, "untyped_storage")]
        storages = [tensor.untyped_storage() for tensor in tensors]
        spans[:] = [(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages]
        if any(tensor.dtype in (torch.int64, torch.uint64) for tensor in tensors):
            spans[:] = [(0, sys.maxsize)]  # these may be addresses of other arrays
        return args, kwargs

    def check(action: str, pointers: Any, mask: Any, size: int) -> None:
        addresses = pointers[np.broadcast_to(np.asarray(mask, bool), pointers.shape)]
        inside = [(addresses >= first) & (addresses + np.uint64(size) <= end) for first, end in spans]
        if addresses.size and not np.any(inside, axis=0).all():
            compare = "compare its offsets and mask with their sizes"
            raise OutOfBounds(f"a kernel {action} outside of all its arrays: {compare}")

    def load(pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        check("reads", pointers, mask, dtype.itemsize)
        return memory.load(pointers, mask, other, dtype)

    def store(pointers: Any, value: Any, mask: Any) -> Any:
        check("writes", pointers, mask, value.dtype.itemsize)
        return memory.store(pointers, value, mask)

    def atomic_rmw(operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        check("writes", pointers, mask, value.dtype.itemsize)
        return memory.atomic_rmw(operation, pointers, value, mask, order)

    interpreter.GridExecutor._init_args_hst = record_spans
    operations = {"load": load, "store": store, "atomic_rmw": atomic_rmw}
    interpreter._interpreter = SimpleNamespace(atomic_cas=memory.atomic_cas, **operations)
