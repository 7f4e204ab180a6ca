"""What versions in Gluon share: descriptors for TMA, barriers in shared memory, operations under one name, tiles."""

from functools import cache

import triton
from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared as fence_async_shared
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

barrier = getattr(gl, "barrier", None) or gl.thread_barrier  # of a partition's threads; Triton 3.6 has the second name
_fields = {}  # of descriptors, by shape


def tiles(x, rows, width=0):
    """A descriptor of x [batch, heads, n, d] as blocks [1, rows, width or d] of [batch * heads, n, d], swizzled.

    TMA fills what a block has beyond n or d with zeros, and stores none of it.
    """
    n, d = x.shape[-2:]
    width = width or d
    return _descriptor(x.view(-1, n, d), (1, rows, width), min(128, width * x.element_size()))


def blocks(x, rows, columns):
    """A descriptor of a matrix of 16-bit elements as blocks [rows, columns], swizzled. columns: a multiple of 64."""
    return _descriptor(x, (rows, columns), 128)


def flat(x, length=64):
    """A descriptor of x, of 4-byte elements in a row, as blocks [length]."""
    return _descriptor(x.view(-1), (length,), 0)


def _descriptor(x, block, swizzle):
    """A descriptor of x, with its block's rows swizzled over so many bytes. Those of a shape are checked once.

    TensorDescriptor checks shape, strides, block and layout whenever it is made, which takes Python some 20 us.
    """
    key = x.shape, x.stride(), x.dtype, block, swizzle, x.data_ptr() % 16
    if key not in _fields:
        layout = gl.NVMMASharedLayout(swizzle, 8 * x.element_size(), len(block))
        _fields[key] = {**vars(TensorDescriptor.from_tensor(x, [*block], layout)), "base": None}  # keeps no memory
    found = object.__new__(TensorDescriptor)
    vars(found).update(_fields[key], base=x)
    return found


@builtin
def tma_add(desc, coord, src, _semantic=None):
    """desc[coord] += src, asynchronous, as `tma.async_copy_shared_to_global` is: the compiler has this operation."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, desc.handle, coord, src.handle)


@gluon.jit
def barriers(COUNT: gl.constexpr, ARRIVALS: gl.constexpr = 1):
    """COUNT barriers. Each is complete after ARRIVALS arrivals, and all bytes that copies are expected to bring."""
    found = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        mbarrier.init(found.index(i), count=ARRIVALS)
    return found


@gluon.jit
def halves(x):
    """The left and the right half of the columns of x. No value leaves its register."""
    return x.reshape([x.shape[0], 2, x.shape[1] // 2]).permute([0, 2, 1]).split()


@gluon.jit
def parts(x):
    """x, of 64, 128 or 256 columns, in parts of 64 columns."""
    if x.shape[1] == 256:
        left, right = halves(x)
        found = halves(left) + halves(right)
    elif x.shape[1] == 128:
        found = halves(x)
    else:
        found = (x,)
    return found


@gluon.jit
def store(c_ptr, c, start_m, start_n, M, N):
    """Store c, of shared memory, in a matrix [M, N] whose rows begin anywhere: 32 lanes write 64 bytes of a row.

    TMA cannot: it stores rows that begin at multiples of 16 bytes.
    """
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    offs_m = start_m + gl.arange(0, c.shape[0], gl.SliceLayout(1, layout))[:, None]
    offs_n = start_n + gl.arange(0, c.shape[1], gl.SliceLayout(0, layout))[None, :]
    gl.store(c_ptr + offs_m.to(gl.int64) * N + offs_n, c.load(layout), mask=(offs_m < M) & (offs_n < N))


@gluon.jit
def units(tiles, GROUPS: gl.constexpr):
    """How many units of work there are.

    tiles: (tiles in a column, tiles in a row, how many of them all groups compute together; None: all of them).
    """
    num_pid_m, num_pid_n, whole = tiles
    found = num_pid_m * num_pid_n
    if whole is not None:
        found = whole + (found - whole) * GROUPS
    return found


@gluon.jit
def unit(pid, tiles, GROUP_M: gl.constexpr, GROUPS: gl.constexpr):
    """(Row, column) of a unit's tile, and the group of warps that alone computes its rows of it; -1: all groups do."""
    num_pid_m, num_pid_n, whole = tiles
    only = -1
    if whole is not None:
        rest = gl.maximum(pid - whole, 0)
        only = gl.where(pid < whole, -1, rest % GROUPS)
        pid = gl.minimum(pid, whole + rest // GROUPS)
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = gl.minimum(num_pid_m - first_pid_m, GROUP_M)  # the last group's may be lower
    pid_in_group = pid % (GROUP_M * num_pid_n)
    return first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m, only


def soonest(table, m, n, programs, in_lines):
    """((Rows, columns) of the tile that is expected to take the shortest time for [m, n], its `whole` for `units`).

    table: {tile: (elements that a program computes in a unit of time if rows are `in_lines`, and if not, ...)}. In a
    wave each program computes a tile. Small tiles have a lower rate, and waste less beyond the edges and in the last
    wave. If each group of the last wave's tiles can have a program of its own, it gets one. We expect 3/4 of a wave's
    time then, since such a program loads more bytes for each product. Where rows are not `in_lines`, it would load more
    lines yet: groups get none.
    """
    found = {}
    for (rows, columns), (near, off, *_) in table.items():
        rate = near if in_lines else off
        tiles = triton.cdiv(m, rows) * triton.cdiv(n, columns)
        rest = tiles % programs
        whole = tiles - rest if in_lines and 0 < rest * (rows // 64) <= programs else None
        waves = triton.cdiv(tiles, programs) if whole is None else whole // programs + 0.75
        found[rows, columns] = waves * rows * columns / rate, whole
    tile = min(found, key=lambda tile: found[tile][0])
    return tile, found[tile][1]


def planner(table):
    """A function that plans a product [M, N] over K by such a table, once for a shape.

    It gives: columns of a tile, the grid, numbers and constants of the kernel. table: {tile: (both rates, STAGES,
    GROUP_M, REGISTERS)}.
    """

    @cache
    def plan(M, N, K, programs, in_lines):
        (rows, columns), whole = soonest(table, M, N, programs, in_lines)
        *_, stages, group_m, registers = table[rows, columns]
        tiles = triton.cdiv(M, rows), triton.cdiv(N, columns)
        grid = (min(programs, tiles[0] * tiles[1]) if whole is None else programs,)
        return columns, grid, (*tiles, whole, triton.cdiv(K, 64)), (rows // 64, stages, group_m, registers)

    return plan
