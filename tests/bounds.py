"""Triton's interpreter, made to refuse an address outside of all tensors that a kernel is given.

Such a load reads what lies there: mostly nothing happens, and now and then the process dies.
"""

from types import SimpleNamespace

import numpy as np
from torch.utils._pytree import tree_leaves


def enforce():
    """From here on, for all kernels that this process interprets."""
    from triton.runtime import interpreter

    memory, convert, spans = interpreter._interpreter, interpreter.GridExecutor._init_args_hst, []

    def converted(self, *arguments):
        found = args, kwargs = convert(self, *arguments)
        tensors = [getattr(each, "base", each) for each in tree_leaves((args, kwargs))]  # .base: of a descriptor
        storages = [each.untyped_storage() for each in tensors if hasattr(each, "untyped_storage")]
        spans[:] = [(each.data_ptr(), each.data_ptr() + each.nbytes()) for each in storages]
        return found

    def check(pointers, mask, size):
        used = pointers[np.broadcast_to(np.asarray(mask, bool), pointers.shape)]
        inside = [(used >= first) & (used + np.uint64(size) <= end) for first, end in spans]
        if used.size and not np.any(inside, axis=0).all():
            raise IndexError("a program touches an address outside of all tensors")

    def load(pointers, mask, other, dtype):
        check(pointers, mask, dtype.itemsize)
        return memory.load(pointers, mask, other, dtype)

    def store(pointers, value, mask):
        check(pointers, mask, value.dtype.itemsize)
        return memory.store(pointers, value, mask)

    def atomic_rmw(operation, pointers, value, mask, order):
        check(pointers, mask, value.dtype.itemsize)
        return memory.atomic_rmw(operation, pointers, value, mask, order)

    interpreter.GridExecutor._init_args_hst = converted
    replaced = {"load": load, "store": store, "atomic_rmw": atomic_rmw}
    interpreter._interpreter = SimpleNamespace(atomic_cas=memory.atomic_cas, **replaced)
