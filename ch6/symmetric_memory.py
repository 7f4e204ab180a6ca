"""Symmetric memory: each process allocates the same, and then knows where that memory is on the GPU of each other one.

A kernel or a copy engine reads and writes it there, over the link, without a call of a library. Before each access a
process must wait until the others are ready: see the barriers of the versions that use it.
"""

from functools import cache

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory


@cache
def symmetric(shape, dtype, device):
    """(handle, this memory on the GPU of each process, by rank). It is 0 at first. Equal arguments get the same memory.

    All processes must call it, with the same shape and type. `handle.barrier()` makes the current stream wait until the
    current streams of all processes are there.
    """
    strides = torch.empty(shape, device="meta").stride()
    # `symmetric_memory.empty` would take it from a pool, in which several tensors share one allocation and its barriers
    own = symmetric_memory._SymmetricMemory.empty_strided_p2p(shape, strides, dtype, device).zero_()
    handle = symmetric_memory.rendezvous(own, dist.group.WORLD.group_name)
    handle.barrier()  # no process writes to another one that has yet to write its zeros
    everywhere = [handle.get_buffer(rank, shape, dtype) for rank in range(handle.world_size)]
    everywhere[handle.rank] = own  # the others are addresses, and keep no memory
    return handle, tuple(everywhere)
