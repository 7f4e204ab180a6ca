"""The memory traffic of a program, counted exactly on any machine: Triton kernels and torch operations.

    from common.traffic import count
    print(count(run, x).sectors)

Triton kernels run in Triton's interpreter, which reports every address of every load and store. Torch operations are
counted by their shapes. The answer does not change, and no hook remains. Tensors on a GPU are copied to the CPU, and
results back. What the interpreter cannot run (CUDA C++, Gluon, inline assembly) raises an error.

    triton_hooks.py    hooks in Triton's interpreter: loads, stores and products of each program
    torch_hooks.py     torch operations, with a dispatch mode; copies between host and device
    meter.py           collects the counts
    call.py            begins and ends the counting of a call
    data.py            the frozen result: Traffic
    l2_model.py        a model of a GPU's L2
    versions.py        the versions of a pair at a size: exact if small, otherwise a sample of each grid's programs
    least_time.py      the least time of a traffic on a named GPU
    traffic_tables.py  tables for the console and in Markdown

(tools/counter_check.py compares the counts with a GPU's own counters.)
"""

from common.traffic.call import count, counting, traced
from common.traffic.data import Access, Kernel, Traffic

__all__ = ["Access", "Kernel", "Traffic", "count", "counting", "traced"]
