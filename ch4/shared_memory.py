"""How many blocks in flight an SM has room for."""

import torch


def stages_that_fit(x, most, elements, rest=0):
    """Stages of so many elements of x's type, at most `most`, that fit in shared memory beside `rest` more elements."""
    if x.is_cpu:
        return most
    shared = torch.cuda.get_device_properties(x.device).shared_memory_per_block_optin
    barriers = 1024 if rest else 0
    return min(most, max((shared - rest * x.element_size() - barriers) // (elements * x.element_size()), 1))
