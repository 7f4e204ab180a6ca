"""Imported once by the forkserver of children for a GPU: 5 seconds less for each that uses torch.compile.

Only imports: to register what is replaced in a graph (`lazy_init` in fx_passes) makes tensors on the GPU, which no
process can use that is then forked.
"""

import pkgutil
from importlib import import_module

import torch._inductor.fx_passes.serialized_patterns as patterns
from torch._inductor.codecache import torch_key

# compile_fx, and what it imports late: a graph is lowered and scheduled by it, and is made anew by patterns
LATE = (
    "torch._dynamo.backends.cudagraphs", "torch._dynamo.backends.distributed", "torch._dynamo.repro.after_dynamo",
    "torch._export.passes.add_runtime_assertions_for_constraints_pass",
    "torch._functorch._aot_autograd.subclass_codegen", "torch._inductor.bounds", "torch._inductor.choices",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.cpp_wrapper_gpu", "torch._inductor.codegen.cuda.device_op_overrides",
    "torch._inductor.codegen.cuda_combined_scheduling", "torch._inductor.codegen.halide",
    "torch._inductor.codegen.memory_planning", "torch._inductor.codegen.mps", "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.fx_passes.freezing_patterns", "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.misc_patterns", "torch._inductor.fx_passes.pad_mm", "torch._inductor.graph",
    "torch.distributed.launcher.api", "torch.export._trace",
)  # fmt: skip
for name in LATE:
    import_module(name)
for module in pkgutil.iter_modules(patterns.__path__):
    import_module(f"{patterns.__name__}.{module.name}")

torch_key()  # a hash of all its files, kept from then on
