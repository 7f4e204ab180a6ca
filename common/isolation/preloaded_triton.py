"""Imported once by the forkserver of children that compile kernels: half a second less for each."""

import triton.experimental.gluon  # noqa: F401  a launch imports it
from triton.runtime.cache import triton_key

triton_key()  # a hash of all its files, kept from then on
