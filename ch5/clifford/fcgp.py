"""The fully connected geometric product of 2D and 3D on a GPU: its kernels, forward and backward, and their cost.

With the gate Phi, out_k = sum over the paths p to k of z_pk @ W[p], where z_pk = sum of s_ij xh_i yh_j over the terms
i j -> k of p. Every term has one x and one y, so both gates come out of the sum as a single factor:

    z_pk = Phi(x_0) Phi(y_0) * sum of s_ij x_i y_j

All blades k of an output grade c share their K_c paths (3D: 4, 6, 6, 4). So the 44 products of [B, N] by [N, N] (2D:
14) become one large product for each grade, with the blades one below another and the paths side by side. Grades c and
n - c have equally many blades and paths, so their two products run as one batched product. That fills a GPU better (one
blade of 4096 x 512 has 64 tiles of 128 x 256, and an H200 has 132 SMs). The products:

    forward         out_c = z_c @ W_c       [|c| B, K_c N] @ [K_c N, N]
    backward        dz_c  = dout_c @ W_c^T  [|c| B, N] @ [N, K_c N]
                    dW_c  = z_c^T @ dout_c  [K_c N, |c| B] @ [|c| B, N]      as many FLOPs each as the forward

3D at B = 4096, N = 512: 44 * 2 * B * N * N = 94.5 GFLOP forward, three times that with the backward. Beside it, with
u the bytes of x (64 MiB of float32), z is 44 / 8 = 5.5 u (2D: 14 / 4 = 3.5 u):

    forward     read x and y twice, write and read z, write out, normalize it     4 + 11 + 1 + 2 = 18 u
    backward    dout 3, z 4 + 5.5 + 5.5, dz 5.5 + 5.5, read dout twice, read x and y, write dx and dy     35 u

In float32 that is 78 FLOPs a byte forward and 80 backward. An H200's ridge (datasheet) is at 14 without tensor cores
and at 103 with TF32. So z in memory costs little beside the products, which cuBLAS computes. In 16 bits it is 156 FLOPs
a byte, and the ridge is at 206: there the bytes of z begin to count, see fcgp_fused.py.

In memory at the same time, besides x, y, W, a copy of W by grades and the results, with one number an element: forward
at most 4.5 u of z (2D: 2 u); backward 5.5 u of z (2D: 3.5 u), whose place dz takes, and 1 u of dout before the
normalization, which is freed before dx and dy are made. With two numbers an element ("tf32x3"), half of the batch is
done at a time. This needs another copy of W and half a product; backward, dx and dy exist from the first half on.

`precision` says how float32 is multiplied; 16-bit tensors ignore it:

    "ieee"      float32 on the CUDA cores
    "tf32x3"    each operand as a sum of two TF32 numbers, three of their four products on the tensor cores (the
                fourth is 2^-22 of them at most): nearly float32's accuracy for 3 times the FLOPs of "tf32". Tensor
                cores cut off bits that float32 rounds, and in a long sum this adds up. So the largest of the three
                products is made of sums of at most DEPTH terms, which are added up outside, with rounding
    "tf32"      TF32 on the tensor cores: 10 bits of mantissa instead of 23
"""

from contextlib import contextmanager
from functools import cache

import torch
import triton
import triton.language as tl

from .algebra import algebra
from .reference import EPSILON, algebra_of
from .sgp import added_at, density, item, length, load_blades, phi, signed, zeros

PASSES = {2: ((0, 2), (1,)), 3: ((0, 3), (1, 2))}  # grades of as many blades, with as many paths: in one product
DEPTH = 1024  # terms of a sum that a tensor core cuts off as it goes
SPLIT_PARTS = 2  # of the batch, one after another, where z takes two numbers an element: as much for z as with one
PRODUCTS, DISTRIBUTE = 512, 256  # of a blade that a program of these kernels has: 4 and 2 a thread, of 16 and 32 blades


@cache
def paths_to(dimensions, grade):
    """The paths to an output grade, as places in W, in the order in which z has them side by side."""
    return tuple(place for place, path in enumerate(algebra(dimensions).paths) if path[2] == grade)


@cache
def layout(dimensions, grades):
    """Where z has what of these output grades: (slots, table).

    z is one vector of slots * rows * features. Grade after grade it has a matrix [blades of the grade, rows, paths to
    it, features]. The table has for each z_pk its place, (slots before its blade, paths side by side there, which of
    them), and its terms (i, j, sign); for each grade what is in its matrix.
    """
    found, slots, table = algebra(dimensions), 0, []
    sums = [dict(path) for path in found.sums(2, 0, 1)]
    for grade in grades:
        paths, first, part = paths_to(dimensions, grade), found.starts[grade], []
        for k in range(first, first + found.sizes[grade]):
            part += [((slots, len(paths), which), sums[path][k]) for which, path in enumerate(paths)]
            slots += len(paths)
        table.append(tuple(part))
    return slots, tuple(table)


# Kernels. A program of the first two has a tile (ROWS, BLOCK) of all blades: rows and features, float32


@triton.jit
def offsets_in_z(stride_slot, row, cols, features, TABLE: tl.constexpr, part: tl.constexpr, n: tl.constexpr):
    """Where z has these rows and columns of a z_pk; a slot has `stride_slot` elements."""
    wide_row = row * item(TABLE, part, n, 0, 1) + item(TABLE, part, n, 0, 2)
    return item(TABLE, part, n, 0, 0) * stride_slot + wide_row * features + cols


@triton.jit
def tf32(t):
    """float32 rounded to the nearest TF32 number: the last 13 bits of the mantissa become 0."""
    return ((t.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["batch", "rows"])
def products_kernel(
    x_ptr, y_ptr, z_ptr, low_ptr, batch, rows, features,
    D: tl.constexpr, TABLE: tl.constexpr, SPLIT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """z of `rows` of the `batch` rows, as `layout` has it. SPLIT: z rounded to TF32, and in low what that leaves."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (cols < features)
    stride_d, stride_slot = tl.cast(batch, tl.int64) * features, tl.cast(rows, tl.int64) * features
    x = load_blades(x_ptr, stride_d, row * features + cols, mask, D)
    y = load_blades(y_ptr, stride_d, row * features + cols, mask, D)
    gate = phi(x[0]) * phi(y[0])
    for part in tl.static_range(length(TABLE)):
        for n in tl.static_range(length(TABLE, part)):
            offsets = offsets_in_z(stride_slot, row, cols, features, TABLE, part, n)
            z = gate * signed(x, y, TABLE, part, n)
            if SPLIT:
                tl.store(low_ptr + offsets, z - tf32(z), mask=mask)
                z = tf32(z)
            tl.store(z_ptr + offsets, z, mask=mask)


@triton.jit(do_not_specialize=["batch", "rows"])
def distribute_kernel(
    x_ptr, y_ptr, dz_ptr, dx_ptr, dy_ptr, batch, rows, features,
    D: tl.constexpr, TABLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx and dy from dz, the gradient of z in its layout.

    With X_i = sum of s_ij dz y_j, Y_j = sum of s_ij dz x_i and S = sum of s_ij dz x_i y_j = sum of x_i X_i:
    dx_i = phi(x_0) phi(y_0) X_i, and dx_0 has density(x_0) phi(y_0) S besides, through its gate; dy likewise.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (cols < features)
    stride_d, stride_slot = tl.cast(batch, tl.int64) * features, tl.cast(rows, tl.int64) * features
    x = load_blades(x_ptr, stride_d, row * features + cols, mask, D)
    y = load_blades(y_ptr, stride_d, row * features + cols, mask, D)
    dx, dy = zeros(D, ROWS, BLOCK), zeros(D, ROWS, BLOCK)
    for part in tl.static_range(length(TABLE)):
        for n in tl.static_range(length(TABLE, part)):
            offsets = offsets_in_z(stride_slot, row, cols, features, TABLE, part, n)
            dz = tl.load(dz_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
            for term in tl.static_range(length(TABLE, part, n, 1)):
                signed_dz = item(TABLE, part, n, 1, term, 2) * dz
                dx = added_at(dx, item(TABLE, part, n, 1, term, 0), signed_dz * y[item(TABLE, part, n, 1, term, 1)])
                dy = added_at(dy, item(TABLE, part, n, 1, term, 1), signed_dz * x[item(TABLE, part, n, 1, term, 0)])
    acc = x[0] * dx[0]
    for i in tl.static_range(1, D):
        acc += x[i] * dx[i]
    gate_x, gate_y = phi(x[0]), phi(y[0])
    for i in tl.static_range(D):
        dx_i, dy_i = gate_x * gate_y * dx[i], gate_x * gate_y * dy[i]
        if i == 0:
            dx_i += density(x[0]) * gate_y * acc
            dy_i += density(y[0]) * gate_x * acc
        offsets = i * stride_d + row * features + cols
        tl.store(dx_ptr + offsets, dx_i, mask=mask)
        tl.store(dy_ptr + offsets, dy_i, mask=mask)


@triton.jit(do_not_specialize=["count"])
def split_kernel(t_ptr, high_ptr, low_ptr, count, BLOCK: tl.constexpr):
    """t rounded to TF32, and what that leaves."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(t_ptr + offsets, mask=offsets < count, other=0.0)
    tl.store(high_ptr + offsets, tf32(t), mask=offsets < count)
    tl.store(low_ptr + offsets, t - tf32(t), mask=offsets < count)


@triton.jit
def normalize_grade(
    source_ptr, out_ptr, root_ptr, stride_src, stride_d, features, epsilon, COUNT: tl.constexpr, BLOCK: tl.constexpr
):
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, features, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        for k in tl.static_range(COUNT):
            o = tl.load(source_ptr + k * stride_src + cols, mask=cols < features, other=0.0).to(tl.float32)
            squares += o * o
    root = tl.sqrt(tl.sum(squares, 0) / features + epsilon)
    tl.store(root_ptr, root)
    for first in range(0, features, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        for k in tl.static_range(COUNT):  # read again, from L1
            o = tl.load(source_ptr + k * stride_src + cols, mask=cols < features, other=0.0).to(tl.float32)
            tl.store(out_ptr + k * stride_d + cols, o / root, mask=cols < features)


@triton.jit(do_not_specialize=["rows", "batch", "epsilon"])
def normalize_kernel(
    source_ptr, out_ptr, root_ptr, rows, batch, features, epsilon, STARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """One row of one grade: out = source / root, root = sqrt(mean of the grade's squared length + epsilon).

    source has `rows` rows, out (which it may be) and root have `batch`.
    """
    row, grade = tl.program_id(0).to(tl.int64), tl.program_id(1)
    stride_src, stride_d = tl.cast(rows, tl.int64) * features, tl.cast(batch, tl.int64) * features
    for g in tl.static_range(length(STARTS) - 1):
        if grade == g:
            normalize_grade(
                source_ptr + STARTS[g] * stride_src + row * features, out_ptr + STARTS[g] * stride_d + row * features,
                root_ptr + g * tl.cast(batch, tl.int64) + row, stride_src, stride_d, features, epsilon,
                STARTS[g + 1] - STARTS[g], BLOCK,
            )  # fmt: skip


@triton.jit
def normalize_grade_backward(
    dout_ptr, out_ptr, root_ptr, dsource_ptr, stride_d, stride_src, features, COUNT: tl.constexpr, BLOCK: tl.constexpr
):
    acc = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, features, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        for k in tl.static_range(COUNT):
            g = tl.load(dout_ptr + k * stride_d + cols, mask=cols < features, other=0.0).to(tl.float32)
            acc += g * tl.load(out_ptr + k * stride_d + cols, mask=cols < features, other=0.0).to(tl.float32)
    mean, root = tl.sum(acc, 0) / features, tl.load(root_ptr)
    for first in range(0, features, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        for k in tl.static_range(COUNT):  # read again, from L1
            g = tl.load(dout_ptr + k * stride_d + cols, mask=cols < features, other=0.0).to(tl.float32)
            o = tl.load(out_ptr + k * stride_d + cols, mask=cols < features, other=0.0).to(tl.float32)
            tl.store(dsource_ptr + k * stride_src + cols, (g - o * mean) / root, mask=cols < features)


@triton.jit(do_not_specialize=["rows", "batch"])
def normalize_backward_kernel(
    dout_ptr, out_ptr, root_ptr, dsource_ptr, rows, batch, features, STARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """One row of one grade: dsource = (dout - out * mean of dout . out) / root. dsource has `rows` rows."""
    row, grade = tl.program_id(0).to(tl.int64), tl.program_id(1)
    stride_src, stride_d = tl.cast(rows, tl.int64) * features, tl.cast(batch, tl.int64) * features
    for g in tl.static_range(length(STARTS) - 1):
        if grade == g:
            normalize_grade_backward(
                dout_ptr + STARTS[g] * stride_d + row * features, out_ptr + STARTS[g] * stride_d + row * features,
                root_ptr + g * tl.cast(batch, tl.int64) + row, dsource_ptr + STARTS[g] * stride_src + row * features,
                stride_d, stride_src, features, STARTS[g + 1] - STARTS[g], BLOCK,
            )  # fmt: skip


# Their launches. A matrix is a list of its parts, [t] or [high, low]: as many as `numbers` an element


def tiles(rows, features, elements):
    """A grid of tiles (ROWS, BLOCK) of so many elements, of whole rows if these are short: (grid, constants)."""
    block = min(triton.next_power_of_2(features), elements)
    grid = triton.cdiv(rows, elements // block), triton.cdiv(features, block)
    return grid, {"ROWS": elements // block, "BLOCK": block}


def products(x, y, batch, table, z, low=None):
    """Write z, and its low part if that is wanted, of the rows x and y: (D, rows, N), parts of (D, batch, N)."""
    blades, rows, features = x.shape
    grid, tile = tiles(rows, features, PRODUCTS)
    products_kernel[grid](
        x, y, z, z if low is None else low, batch, rows, features, D=blades, TABLE=table, SPLIT=low is not None, **tile
    )


def distribute(x, y, batch, table, dz, dx, dy):
    blades, rows, features = x.shape
    grid, tile = tiles(rows, features, DISTRIBUTE)
    distribute_kernel[grid](x, y, dz, dx, dy, batch, rows, features, D=blades, TABLE=table, **tile)


def row_of_grade(t):
    """How the kernels of the normalization are launched for t (D, rows, N): (grid, constants)."""
    found, block = algebra_of(t), min(triton.next_power_of_2(t.shape[2]), 1024)
    constants = {"STARTS": (*found.starts, len(t)), "BLOCK": block, "num_warps": max(1, block // 128)}
    return (t.shape[1], len(found.starts)), constants


def normalize(source, out, root, batch):
    """Write source normalized into out, rows of (D, batch, N), and what it was divided by into root."""
    grid, constants = row_of_grade(source)
    normalize_kernel[grid](source, out, root, source.shape[1], batch, source.shape[2], EPSILON, **constants)


def normalize_backward(dout, out, root, batch):
    """The gradient of `normalize`'s source, contiguous, from that of out."""
    grid, constants = row_of_grade(out)
    dsource = out.new_empty(out.shape)
    normalize_backward_kernel[grid](dout, out, root, dsource, out.shape[1], batch, out.shape[2], **constants)
    return dsource


def numbers_of(x, precision):
    """In how many numbers an element of an operand is multiplied."""
    return 2 if precision == "tf32x3" and x.dtype == torch.float32 else 1


def split(t, numbers):
    """The parts of t: t itself, or two TF32 numbers an element."""
    if numbers == 1:
        return [t]
    high, low = torch.empty_like(t), torch.empty_like(t)
    split_kernel[(triton.cdiv(t.numel(), 1024),)](t, high, low, t.numel(), BLOCK=1024)
    return [high, low]


def multiply(left, right, out, add=False):
    """out = left @ right, or out + left @ right, of batches. Of two numbers an element low @ low is left out."""
    pairs = [(left[0], right[0])]
    if len(left) == 2:
        steps = [slice(first, first + DEPTH) for first in range(0, left[0].shape[2], DEPTH)]
        large = [(left[0][:, :, step], right[0][:, step]) for step in steps]
        pairs = [(left[1], right[0]), (left[0], right[1]), *large]  # the smallest first
    for a, b in pairs:
        if add:
            out.baddbmm_(a, b)
        else:
            torch.bmm(a, b, out=out)
        add = True


@contextmanager
def float32_in(precision, kind):
    """Within the block cuBLAS multiplies float32 as `precision` wants it: in TF32, or not.

    A setting that is right is left alone: what is once set no longer follows `torch.backends.fp32_precision`.
    """
    settings, wanted = torch.backends.cuda.matmul, "ieee" if precision == "ieee" else "tf32"
    before = settings.fp32_precision
    if kind != torch.float32 or wanted == before.replace("none", "ieee"):
        yield
        return
    settings.fp32_precision = wanted
    try:
        yield
    finally:
        settings.fp32_precision = before


def slices(batch, numbers):
    """The batch whole, or in SPLIT_PARTS that begin at multiples of 16: their rows are as aligned as the first."""
    step = batch if numbers == 1 else 16 * triton.cdiv(batch, 16 * SPLIT_PARTS)
    return [slice(first, min(first + step, batch)) for first in range(0, batch, step)]


def blades_of(t, grades):
    """For each of the grades its blades of t (D, rows, N), one below another: (grades, blades * rows, N).

    t is contiguous. What its strides say is no help: those of a dimension of size 1 may be any.
    """
    found, (_, rows, features) = algebra_of(t), t.shape
    first, last, plane = found.starts[grades[0]], found.starts[grades[-1]], rows * features
    shape = len(grades), found.sizes[grades[0]] * rows, features
    return t.as_strided(shape, ((last - first) * plane, features, 1), t.storage_offset() + first * plane)


def matrices_of(W, dimensions):
    """For each pass, and each of its grades, the matrices of the paths to it, one below another: (grades, K_c N, N)."""
    passes = PASSES[dimensions]
    paths = [[path for grade in grades for path in paths_to(dimensions, grade)] for grades in passes]
    parts = torch.cat([W[path] for each in paths for path in each]).split([len(each) * W.shape[2] for each in paths])
    return [part.unflatten(0, (len(grades), -1)) for part, grades in zip(parts, passes, strict=True)]


def right_operand(W_c, precision, numbers):
    """The parts of W_c; where it is taken as TF32, tensor cores want neighbours along the sum to be so in memory."""
    if W_c.dtype == torch.float32 and precision != "ieee":
        return [part.mT for part in split(W_c.mT.contiguous(), numbers)]
    return [W_c]


def forward(x, y, W, normalized=True, precision="ieee"):
    """(out, root): the product, and if it is normalized what was divided by, one a grade and row, else nothing.

    x, y, out: (D, B, N), W: (P, N, N), contiguous, of one type; B >= 1. root: (grades, B), or (0, B), float32.
    """
    (blades, batch, features), dimensions = x.shape, algebra_of(x).dimensions
    numbers = numbers_of(x, precision)
    out = torch.empty_like(x)
    root = x.new_empty(dimensions + 1 if normalized else 0, batch, dtype=torch.float32)
    W_c = [right_operand(each, precision, numbers) for each in matrices_of(W, dimensions)]
    with float32_in(precision, x.dtype):
        for rows in slices(batch, numbers):
            count = rows.stop - rows.start
            product = out if count == batch else x.new_empty(blades, count, features)
            for grades, right in zip(PASSES[dimensions], W_c, strict=True):
                slots, table = layout(dimensions, grades)
                z = [x.new_empty(slots * count * features) for _ in range(numbers)]
                products(x[:, rows], y[:, rows], batch, table, *z)
                into = blades_of(product, grades)
                multiply([part.view(*into.shape[:2], -1) for part in z], right, into)
                del z  # before the next pass asks for its own
            if normalized:
                normalize(product, out[:, rows], root[:, rows], batch)
            elif product is not out:
                out[:, rows] = product
    return out, root


def backward(dout, x, y, W, out, root, precision="ieee"):
    """(dx, dy, dW), from the gradient of `forward`'s out and what that returned. Equal bits in every run.

    dout, out, and what is returned: contiguous, as x, y and W are. out is read only if it was normalized.
    """
    batch, dimensions, numbers = x.shape[1], algebra_of(x).dimensions, numbers_of(x, precision)
    order = sum(PASSES[dimensions], ())  # of the grades in dz
    paths = [path for grade in order for path in paths_to(dimensions, grade)]  # in dW_c
    dW_c = torch.empty_like(W)
    with float32_in(precision, x.dtype):
        for rows in slices(batch, numbers):
            if len(root):
                dproduct = normalize_backward(dout[:, rows], out[:, rows], root[:, rows], batch)
            else:
                dproduct = dout[:, rows].contiguous()
            dz = multiply_backward(split(dproduct, numbers), x[:, rows], y[:, rows], batch, W, dW_c, add=rows.start > 0)
            del dproduct  # before there is more to keep
            if rows.start == 0:
                dx, dy = torch.empty_like(x), torch.empty_like(y)
            table = layout(dimensions, order)[1]
            distribute(x[:, rows], y[:, rows], batch, table, dz, dx[:, rows], dy[:, rows])
            del dz  # before the next part asks for its own
    return dx, dy, torch.stack([dW_c[paths.index(path)] for path in range(len(W))])


def multiply_backward(dproduct, x, y, batch, W, dW_c, add):
    """dz of the rows x and y, and dW_c written or added to. dz is where z is, of which the products are made again."""
    (_, rows, features), dimensions, numbers = x.shape, algebra_of(x).dimensions, len(dproduct)
    passes = PASSES[dimensions]
    z_sizes = [layout(dimensions, grades)[0] * rows * features for grades in passes]
    counts = [sum(len(paths_to(dimensions, grade)) for grade in grades) for grades in passes]  # of paths
    dz = x.new_empty(sum(z_sizes))
    right = matrices_of(W, dimensions)
    for grades, z_high, dW, W_c in zip(passes, dz.split(z_sizes), dW_c.split(counts), right, strict=True):
        z = [z_high, *(torch.empty_like(z_high) for _ in range(numbers - 1))]
        products(x, y, batch, layout(dimensions, grades)[1], *z)
        dout_c = [blades_of(part, grades) for part in dproduct]
        z_c = [part.view(*dout_c[0].shape[:2], -1) for part in z]
        multiply([part.mT for part in z_c], dout_c, dW.view(len(grades), -1, features), add)
        multiply(dout_c, [part.mT for part in split(W_c, numbers)], z_c[0])
        del z, z_c  # before the next pass asks for its own
    return dz
