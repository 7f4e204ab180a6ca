"""Imported once by the forkserver of children in which Triton interprets kernels: a third of a second less for each.

Triton decides at its import whether it interprets: TRITON_INTERPRET is set where this is imported.
"""

import importlib.util

if importlib.util.find_spec("triton"):  # which there is not for every system
    import triton.experimental.gluon.nvidia.hopper  # a launch imports it
    import triton.runtime.interpreter  # noqa: F401
