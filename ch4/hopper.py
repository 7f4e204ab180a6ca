"""What versions in Gluon share: descriptors for TMA, barriers in shared memory, operations under one name, tiles."""

import triton
from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared as fence_async_shared
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

barrier = getattr(gl, "barrier", None) or gl.thread_barrier  # of a partition's threads; Triton 3.6 has the second name


def tiles(x, rows, width=0):
    """A descriptor of x [batch, heads, n, d] as blocks [1, rows, width or d] of [batch * heads, n, d], swizzled.

    TMA fills what a block has beyond n or d with zeros, and stores none of it.
    """
    n, d = x.shape[-2:]
    width = width or d
    layout = gl.NVMMASharedLayout(min(128, width * x.element_size()), 8 * x.element_size(), 3)
    return TensorDescriptor.from_tensor(x.view(-1, n, d), [1, rows, width], layout)


def blocks(x, rows, columns):
    """A descriptor of a matrix of 16-bit elements as blocks [rows, columns], swizzled. columns: a multiple of 64."""
    return TensorDescriptor.from_tensor(x, [rows, columns], gl.NVMMASharedLayout(128, 16, 2))


def flat(x, length=64):
    """A descriptor of x, of 4-byte elements in a row, as blocks [length]."""
    return TensorDescriptor.from_tensor(x.view(-1), [length], gl.NVMMASharedLayout(0, 32, 1))


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


def soonest(rates, m, n, programs):
    """The tile (rows, columns) that is expected to take the shortest time for a matrix [m, n].

    rates: {tile: elements that a program computes in a unit of time}. In a wave each program computes a tile. Small
    tiles have a lower rate, and waste less beyond the edges and in the last wave.
    """

    def time(rows, columns):
        waves = triton.cdiv(triton.cdiv(m, rows) * triton.cdiv(n, columns), programs)
        return waves * rows * columns / rates[rows, columns]

    return min(rates, key=lambda tile: time(*tile))
