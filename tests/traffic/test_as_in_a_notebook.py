"""A notebook's own module has no file. A kernel that is counted there must not give it one: children would run it."""

import subprocess
import sys

CELLS = """
import linecache

source = '''
import torch, triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 16)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))

x = torch.arange(16.0)
out = torch.empty_like(x)
'''
linecache.cache["cell"] = len(source), None, source.splitlines(True), "cell"
exec(compile(source, "cell", "exec"))

from common.isolation import worker
from common.traffic.triton_hooks import interpreter_hooks
from common.traffic.meter import Meter

with interpreter_hooks(Meter()):
    copy_kernel[(1,)](x, out)
assert out.equal(x)
print("__file__" in globals(), worker.call(id) > 0)
"""


def test_a_process_can_be_started_after_a_kernel_was_counted():
    run = subprocess.run([sys.executable, "-c", CELLS], capture_output=True, text=True, check=False)
    assert run.stdout == "False True\n", run.stderr
