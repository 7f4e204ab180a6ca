"""X-ray: what becomes of a pair's kernels as machine code, for named GPUs, on any machine.

    benchmark.py --xray coalescing --arch sm_80,sm_90

Both versions are run with their launches recorded instead of executed (capture.py), compiled (compilers.py), and read
(sass.py); show.py puts them side by side and says what differs.
"""
