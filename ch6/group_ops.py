"""Collectives whose names differ between versions of torch, under one name."""

import torch.distributed as dist


def all_gather(out, part):
    """The parts of all processes, one after the other."""
    (getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor)(out, part)


def reduce_scatter(out, whole):
    """The sum over all processes, of which each gets its part."""
    (getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor)(out, whole)


def exchange(send, to, receive, source):
    """Start to send to one process and to receive from another; returns what to wait for."""
    return dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, send.contiguous(), to), dist.P2POp(dist.irecv, receive, source)]
    )
