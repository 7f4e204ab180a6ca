"""What a program asks of the memory, counted exactly, on any machine: Triton kernels and torch operations.

    from common.traffic import count
    print(count(run, x).sectors)

Triton kernels run in its interpreter, which hands over every address of every load and store; torch operations are
counted by their shapes. Nothing changes in an answer, and no hook stays behind. A GPU's tensors are copied to the CPU
for that, and their results back. What the interpreter does not run (CUDA C++, Gluon, inline assembly) raises.

kernels.py     hooks in Triton's interpreter: what each program loads, stores, adds up
operations.py  torch's operations, by a dispatch mode; copies between host and device
meter.py       what both write to while they count
call.py        counting begins and ends
data.py        what comes out, frozen: Traffic
cache.py       a model of a GPU's L2
versions.py    the versions of a pair, at a size: exact where it is small, else a sample of each grid's programs
predict.py     the time that such a traffic takes at least, on a named GPU
show.py        tables, on the console and in Markdown

(The same counts beside a GPU's own counters: common/calibration/counters.py.)
"""

from common.traffic.call import count, counting, traced
from common.traffic.data import Access, Kernel, Traffic

__all__ = ["Access", "Kernel", "Traffic", "count", "counting", "traced"]
