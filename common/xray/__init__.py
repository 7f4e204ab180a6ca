"""X-ray: a pair's kernels as machine code for named GPUs, on any machine.

    benchmark.py --xray coalescing --arch sm_80,sm_90

Every version is run with its launches recorded instead of executed (capture.py). The kernels are compiled
(compilers.py) and read (sass.py). show.py puts the versions side by side and names the differences.
"""
