"""Imported by the process that children for a GPU are forked from: what each would import, and find out, anew.

That is 6 seconds for a process that uses torch.compile, and half a second for one that launches a kernel in Triton.
"""

import triton.experimental.gluon  # noqa: F401  a launch imports it
from torch._inductor.codecache import torch_key
from triton.runtime.cache import triton_key

triton_key()  # hashes of all their files, kept from then on
torch_key()
