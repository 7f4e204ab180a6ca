"""The shortest launch of `add_small`'s kernel: the function in C behind Triton's launcher, by release."""

import triton


# Every launch of Triton's ends in this function in C. It is no public interface, but every public way to it leads
# through Python, whose time is the pair's lesson. It takes its arguments by position, in another order from release to
# release, and trusts them: one out of place is an address that the GPU writes to. So the releases whose order is known
# are served, and no other; the order of a new one is at the end of `CudaLauncher.__call__`, in Triton's
# backends/nvidia/driver.py.
def launcher(compiled, programs, block):
    """launch(stream, x_ptr, y_ptr, out_ptr, n), all integers, of the compiled `add_kernel` on so many programs.

    A RuntimeError where the order of this release of Triton is not known.
    """
    if not triton.__version__.startswith(("3.6.", "3.7.")):
        raise RuntimeError(f"triton {triton.__version__}: add_small knows the launcher in C of 3.6 and 3.7 only")
    python = compiled.run  # the launcher in Python, which holds the one in C
    launch, function, metadata = python.launch, compiled.function, compiled.packed_metadata
    cooperative, pdl = python.launch_cooperative_grid, python.launch_pdl

    # None stands for scratch memory, which this kernel does not use, and for the hooks of a profiler with their data.
    # C steps over the block, which is in the code already.
    if triton.__version__.startswith("3.6."):

        def launch_3_6(stream, x_ptr, y_ptr, out_ptr, n):
            launch(
                programs, 1, 1, stream, function, cooperative, pdl, None, None, metadata, None, None, None,
                x_ptr, y_ptr, out_ptr, n, block,
            )  # fmt: skip

        return launch_3_6

    kinds, types = python.arg_annotations, python.kernel_signature

    def launch_3_7(stream, x_ptr, y_ptr, out_ptr, n):
        launch(
            programs, 1, 1, stream, function, cooperative, pdl, metadata, None, None, None, None, None,
            kinds, types, (x_ptr, y_ptr, out_ptr, n, block),
        )  # fmt: skip

    return launch_3_7
