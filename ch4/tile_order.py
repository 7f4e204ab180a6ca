"""The order in which programs take tiles: `optimized_matmul_grouped.py` says what it is worth."""

import triton
import triton.language as tl


@triton.jit
def swizzle(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """(Row, column) of the tile of program `pid`: GROUP_M rows of tiles run side by side."""
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)  # the last group's may be lower
    pid_in_group = pid % (GROUP_M * num_pid_n)
    return first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m
