"""Imported once by the forkserver of children for a GPU: 4 seconds less for each that uses torch.compile."""

import torch._inductor.compile_fx
import torch._inductor.graph  # noqa: F401  what a graph is lowered and scheduled by, which compile_fx imports late
from torch._inductor.codecache import torch_key

torch_key()  # a hash of all its files, kept from then on
