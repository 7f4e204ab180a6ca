"""Given: how many programs a GPU runs at once. In the interpreter the number differs from size to size."""

import torch
import triton

COLUMNS = 8192  # of an SM's programs together: their sums and rows fill its registers


def programs_at_once(x):
    """On every SM of the GPU that has x as many as together hold COLUMNS columns, at least one."""
    if x.is_cpu:
        return 264 if x.shape[1] % 2 else 5 if x.shape[1] < 128 else 8  # as GPUs of three sizes
    per_sm = max(COLUMNS // triton.next_power_of_2(x.shape[1]), 1)
    return per_sm * torch.cuda.get_device_properties(x.device).multi_processor_count
