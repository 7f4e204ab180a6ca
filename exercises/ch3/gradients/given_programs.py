"""Given: how many programs a GPU runs at once, if each needs much of an SM. In the interpreter there are four."""

import torch


def programs_at_once(x, per_sm=1):
    """`per_sm` programs on every SM of the GPU that has x."""
    return 4 if x.is_cpu else per_sm * torch.cuda.get_device_properties(x.device).multi_processor_count
