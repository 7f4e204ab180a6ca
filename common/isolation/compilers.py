"""Imported by the process that children for a GPU are forked from: what each would import, and find out, anew.

That is 4 seconds for a process that uses torch.compile, and half a second for one that launches a kernel in Triton.
"""

import torch._inductor.compile_fx
import torch._inductor.graph  # noqa: F401  what a graph is lowered and scheduled by, which compile_fx imports late
import triton.experimental.gluon  # noqa: F401  a launch imports it
from torch._inductor.codecache import torch_key
from triton.runtime.cache import triton_key

triton_key()  # hashes of all their files, kept from then on
torch_key()
