"""Imported once by the forkserver of children for a GPU, so that a child need not import these modules again.

This saves 4 seconds in a process that uses torch.compile, and half a second in one that launches a Triton kernel.
"""

import torch._inductor.compile_fx
import torch._inductor.graph  # noqa: F401  what a graph is lowered and scheduled by, which compile_fx imports late
import triton.experimental.gluon  # noqa: F401  a launch imports it
from torch._inductor.codecache import torch_key
from triton.runtime.cache import triton_key

triton_key()  # hashes of all their files, kept from then on
torch_key()
