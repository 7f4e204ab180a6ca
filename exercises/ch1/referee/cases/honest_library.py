"""calls torch's own hard swish"""

import torch


def run(x):
    return torch.nn.functional.hardswish(x)
