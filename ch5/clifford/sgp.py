"""The weighted geometric product on a GPU: one pass forward, one backward, written in Triton for both algebras.

A tensor is D * B * N * itemsize bytes, u: blade, batch row, feature. The least traffic is 3 u forward (read x and y,
write the answer) and 5 u backward (read x, y and the gradient, write dx and dy). Four things make this possible:

- A program holds whole rows of all blades in registers, so the normalization, a sum over the row, needs no second pass.
- The gate is one factor a feature, c = phi(x_0) phi(y_0), and the rest is bilinear. Let R be the sums of products of
  the ungated blades, E the gradient of c R, and X and Y the gradients of R. Then the answer is c R, and
      dx_i = c X_i,  dx_0 = c X_0 + x_0's density * phi(y_0) * S,  dy likewise with Y and the same S = sum_i x_i X_i
- Of the forward pass, only x, y and w are kept. Backward computes R again, which moves no bytes.
- The weights are stored as (P, N), so that those of one path and neighbouring features are adjacent. Forward, a program
  reads them once and keeps them in registers for all its rows. Backward there is no room: each row reads them, from L1.

A program walks over rows of its own and adds up the gradient of w, feature by feature, in registers. A second kernel
adds the programs' sums. No result depends on the order of the programs: repeated runs give equal bits.

Rows that are few, or that begin at no multiple of 16 bytes, are cut more finely: see `fine_cut`.
Rows wider than WIDEST do not fit into one program. Several programs share such a row, and a kernel before them walks
over all rows to find the sums that the normalization needs (2 u more forward, 3 u more backward).
"""

# ruff: noqa: RUF005 (Triton knows `tuple + tuple`, and no star in a tuple)

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from .reference import EPSILON, algebra_of

# What is known of the algebra when a kernel is compiled: tables as Algebra.sums makes them, and grades


@triton.constexpr_function
def length(table, *indices):
    for index in indices:
        table = table[index]
    return len(table)


@triton.constexpr_function
def item(table, *indices):
    for index in indices:
        table = table[index]
    return table


@triton.constexpr_function
def first_blade(grades, grade):
    return grades.index(grade)


@triton.constexpr_function
def blade_count(grades, grade):
    return grades.count(grade)


# Parts of kernels. A multivector is a tuple of D tiles (ROWS, BLOCK): rows and features, float32


@triton.jit
def load_blades(ptr, stride_d, offsets, mask, D: tl.constexpr):
    """All blades, `stride_d` elements apart: 0 outside, where all products are then 0, too."""
    blades = ()
    for i in tl.static_range(D):
        blades = blades + (
            tl.load(ptr + i * stride_d + offsets, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32),
        )
    return blades


@triton.jit
def zeros(COUNT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    tiles = ()
    for _ in tl.static_range(COUNT):
        tiles = tiles + (tl.zeros((ROWS, BLOCK), tl.float32),)
    return tiles


@triton.jit
def added_at(tiles, INDEX: tl.constexpr, more):
    return tiles[:INDEX] + (tiles[INDEX] + more,) + tiles[INDEX + 1 :]


@triton.jit
def signed(left, right, TABLE: tl.constexpr, path: tl.constexpr, index: tl.constexpr):
    """The sum of one blade's products of one path."""
    acc = tl.zeros_like(left[0])
    for n in tl.static_range(length(TABLE, path, index, 1)):
        product = left[item(TABLE, path, index, 1, n, 0)] * right[item(TABLE, path, index, 1, n, 1)]
        acc = acc + product if item(TABLE, path, index, 1, n, 2) > 0 else acc - product
    return acc


@triton.jit
def load_weight(w_ptr, path, columns, mask, KEEP: tl.constexpr):
    """Of one path, where w_ptr has the first: (1, BLOCK), or each row's, (ROWS, BLOCK)."""
    ptrs = w_ptr + path * columns
    return tl.load(ptrs, mask=mask, other=0.0, eviction_policy=KEEP).to(tl.float32)


@triton.jit
def load_weights(w_ptr, columns, mask, PATHS: tl.constexpr):
    weights = ()
    for path in tl.static_range(PATHS):
        weights = weights + (load_weight(w_ptr, path, columns, mask, ""),)
    return weights


@triton.jit
def weighted(left, right, weights, TABLE: tl.constexpr, D: tl.constexpr):
    """All blades of the weighted sums of a table."""
    out = zeros(D, left[0].shape[0], left[0].shape[1])
    for path in tl.static_range(length(TABLE)):
        for index in tl.static_range(length(TABLE, path)):
            products = signed(left, right, TABLE, path, index)
            out = added_at(out, item(TABLE, path, index, 0), weights[path] * products)
    return out


@triton.jit
def weighted_from(left, right, w_ptr, columns, mask, TABLE: tl.constexpr, D: tl.constexpr):
    """The same, path by path with weights that are read, from L1: 10 or 20 of them would fill the registers."""
    out = zeros(D, left[0].shape[0], left[0].shape[1])
    for path in tl.static_range(length(TABLE)):
        weight = load_weight(w_ptr, path, columns, mask, "evict_last")
        for index in tl.static_range(length(TABLE, path)):
            out = added_at(out, item(TABLE, path, index, 0), weight * signed(left, right, TABLE, path, index))
    return out


@triton.jit
def weighted_and_gradient(left, right, of, factor, dw, w_ptr, columns, mask, TABLE: tl.constexpr, D: tl.constexpr):
    """`weighted`, the gradient of the blades of `of`, and dw plus that of the weights, times `factor`.

    A weight multiplies the same sums that it multiplies in the gradient of `of`, so these are worked out once.
    """
    out = zeros(D, left[0].shape[0], left[0].shape[1])
    for path in tl.static_range(length(TABLE)):
        weight = load_weight(w_ptr, path, columns, mask, "")  # else Triton keeps what `weighted_from` has read
        acc = tl.zeros_like(left[0])
        for index in tl.static_range(length(TABLE, path)):
            products = signed(left, right, TABLE, path, index)
            acc += of[item(TABLE, path, index, 0)] * products
            out = added_at(out, item(TABLE, path, index, 0), weight * products)
        dw = added_at(dw, path, factor * acc)
    return out, dw


@triton.jit
def weighted_of(left, right, w_ptr, columns, mask, TABLE: tl.constexpr, GRADES: tl.constexpr, GRADE: tl.constexpr):
    """Of `weighted` the blades of one grade: what a path adds to is of one grade."""
    out = zeros(blade_count(GRADES, GRADE), left[0].shape[0], left[0].shape[1])
    for path in tl.static_range(length(TABLE)):
        if item(GRADES, item(TABLE, path, 0, 0)) == GRADE:
            weight = load_weight(w_ptr, path, columns, mask, "")
            for index in tl.static_range(length(TABLE, path)):
                products = signed(left, right, TABLE, path, index)
                out = added_at(out, item(TABLE, path, index, 0) - first_blade(GRADES, GRADE), weight * products)
    return out


@triton.jit
def scaled(blades, factor, D: tl.constexpr):
    out = ()
    for i in tl.static_range(D):
        out = out + (blades[i] * factor,)
    return out


@triton.jit
def store_blades(ptr, stride_d, offsets, blades, mask, FIRST: tl.constexpr, COUNT: tl.constexpr):
    for i in tl.static_range(COUNT):
        tl.store(ptr + (FIRST + i) * stride_d + offsets, blades[i], mask=mask)


@triton.jit
def before_normalization(gradient, out, squares, dots, columns, epsilon, GRADES: tl.constexpr):
    """The gradient of the sums `out` from that of these normalized."""
    inner = ()
    for i in tl.static_range(length(GRADES)):
        scale = tl.rsqrt(squares[item(GRADES, i)] / columns + epsilon)
        turned = dots[item(GRADES, i)] / columns * scale * scale * scale
        inner = inner + (gradient[i] * scale - out[i] * turned,)
    return inner


@triton.jit
def phi(t):
    return 0.5 + 0.5 * tl.erf(t * 0.7071067811865476)


@triton.jit
def density(t):
    return tl.exp(-0.5 * t * t) * 0.3989422804014327


@triton.jit
def grade_sums(left, right, GRADES: tl.constexpr):
    """For each grade the sum over its blades of left times right, feature by feature."""
    sums = ()
    for grade in tl.static_range(item(GRADES, -1) + 1):
        acc = tl.zeros_like(left[0])
        for i in tl.static_range(length(GRADES)):
            if item(GRADES, i) == grade:
                acc += left[i] * right[i]
        sums = sums + (acc,)
    return sums


@triton.jit
def add_3(a, b, c, d, e, f):
    return a + d, b + e, c + f


@triton.jit
def add_4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def add_6(a, b, c, d, e, f, g, h, i, j, k, l):  # noqa: E741
    return a + g, b + h, c + i, d + j, e + k, f + l


@triton.jit
def add_8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):  # noqa: E741
    return a + i, b + j, c + k, d + l, e + m, f + n, g + o, h + p


@triton.jit
def over_features(sums):
    """The sums over a row of 3, 4, 6 or 8 tiles, each (ROWS, 1). The warps of a row meet once for all of them."""
    if len(sums) == 3:
        return tl.reduce(sums, 1, add_3, keep_dims=True)
    elif len(sums) == 4:  # noqa: RET505 (Triton compiles what follows an `if`)
        return tl.reduce(sums, 1, add_4, keep_dims=True)
    elif len(sums) == 6:
        return tl.reduce(sums, 1, add_6, keep_dims=True)
    else:
        return tl.reduce(sums, 1, add_8, keep_dims=True)


@triton.jit
def load_sums(ptr, row, rows, GRADES: tl.constexpr):
    """What `sgp_sums_kernel` has stored of these rows: for each grade (ROWS, 1)."""
    sums = ()
    for grade in tl.static_range(item(GRADES, -1) + 1):
        sums = sums + (tl.load(ptr + grade * tl.cast(rows, tl.int64) + row, mask=row < rows, other=0.0),)
    return sums


# The kernels. Their grids are one-dimensional: the parts of a row, then groups of rows. `sums_ptr` is read where WIDE


@triton.jit(do_not_specialize=["rows"])
def sgp_kernel(
    x_ptr, y_ptr, w_ptr, bias_ptr, out_ptr, sums_ptr, rows, epsilon, columns: tl.constexpr,
    TABLE: tl.constexpr, GRADES: tl.constexpr, NORMALIZED: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    D: tl.constexpr = length(GRADES)
    parts = tl.cdiv(columns, BLOCK)
    pid = tl.program_id(0)
    part, group, groups = pid % parts, pid // parts, tl.num_programs(0) // parts
    stride_d = tl.cast(rows, tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    cols = part * BLOCK + tl.arange(0, BLOCK)[None, :]
    col_mask = cols < columns
    weights = load_weights(w_ptr + tl.broadcast_to(cols, (ROWS, BLOCK)), columns, col_mask, length(TABLE))
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + tl.broadcast_to(cols, (ROWS, BLOCK)), mask=col_mask, other=0.0).to(tl.float32)
    begin, end, step = (0, 1, 1) if STAGES == 0 else (group * ROWS, rows, groups * ROWS)
    for at in tl.range(begin, end, step, num_stages=STAGES):
        first = at if STAGES else group * ROWS
        row = first + tl.arange(0, ROWS)[:, None]
        mask = (row < rows) & col_mask
        offsets = tl.arange(0, ROWS)[:, None] * columns + cols
        start = tl.cast(first, tl.int64) * columns
        x = load_blades(x_ptr + start, stride_d, offsets, mask, D)
        y = load_blades(y_ptr + start, stride_d, offsets, mask, D)
        if first < rows:  # always: in a branch, this row's work does not keep the next row's loads from being issued
            if bias_ptr is not None:
                y = added_at(y, 0, bias)
            out = scaled(weighted(x, y, weights, TABLE, D), phi(x[0]) * phi(y[0]), D)
            if NORMALIZED:
                if WIDE:
                    squares = load_sums(sums_ptr, row, rows, GRADES)
                else:
                    squares = over_features(grade_sums(out, out, GRADES))
            for i in tl.static_range(D):
                blade = out[i]
                if NORMALIZED:
                    blade *= tl.rsqrt(squares[item(GRADES, i)] / columns + epsilon)
                tl.store(out_ptr + start + i * stride_d + offsets, blade, mask=mask)


@triton.jit(do_not_specialize=["rows"])
def sgp_backward_kernel(
    x_ptr, y_ptr, w_ptr, gradient_ptr, dx_ptr, dy_ptr, dw_ptr, sums_ptr, rows, epsilon, columns: tl.constexpr,
    TABLE: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, GRADES: tl.constexpr,
    NORMALIZED: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    D: tl.constexpr = length(GRADES)
    G: tl.constexpr = item(GRADES, -1) + 1
    parts = tl.cdiv(columns, BLOCK)
    pid = tl.program_id(0)
    part, group, groups = pid % parts, pid // parts, tl.num_programs(0) // parts
    stride_d = tl.cast(rows, tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    cols = part * BLOCK + tl.arange(0, BLOCK)[None, :]
    col_mask = cols < columns
    weights = w_ptr + tl.broadcast_to(cols, (ROWS, BLOCK))  # each row's anew: no exchange between threads
    dw = zeros(length(TABLE), ROWS, BLOCK)
    begin, end, step = (0, 1, 1) if STAGES == 0 else (group * ROWS, rows, groups * ROWS)
    for at in tl.range(begin, end, step, num_stages=STAGES):
        first = at if STAGES else group * ROWS
        row = first + tl.arange(0, ROWS)[:, None]
        mask = (row < rows) & col_mask
        offsets = tl.arange(0, ROWS)[:, None] * columns + cols
        start = tl.cast(first, tl.int64) * columns
        x = load_blades(x_ptr + start, stride_d, offsets, mask, D)
        y = load_blades(y_ptr + start, stride_d, offsets, mask, D)
        gradient = load_blades(gradient_ptr + start, stride_d, offsets, mask, D)
        if first < rows:  # always: see `sgp_kernel`; and the weights' loads are not taken for the next row's
            factor = phi(x[0]) * phi(y[0])
            if NORMALIZED:
                out = scaled(weighted_from(x, y, weights, columns, col_mask, TABLE, D), factor, D)
                if WIDE:
                    squares = load_sums(sums_ptr, row, rows, GRADES)
                    dots = load_sums(sums_ptr + tl.cast(rows, tl.int64) * G, row, rows, GRADES)
                else:
                    sums = over_features(grade_sums(out, out, GRADES) + grade_sums(gradient, out, GRADES))
                    squares, dots = sums[:G], sums[G:]
                gradient = before_normalization(gradient, out, squares, dots, columns, epsilon, GRADES)
            dx, dw = weighted_and_gradient(y, gradient, x, factor, dw, weights, columns, col_mask, LEFT, D)
            acc = tl.zeros_like(factor)
            for i in tl.static_range(D):
                acc += x[i] * dx[i]
            dx = scaled(dx, factor, D)
            dx = (dx[0] + density(x[0]) * phi(y[0]) * acc,) + dx[1:]
            store_blades(dx_ptr + start, stride_d, offsets, dx, mask, 0, D)
            for grade in tl.static_range(G):  # each is stored before the next: registers are what there is least of
                dy = weighted_of(x, gradient, weights, columns, col_mask, RIGHT, GRADES, grade)
                dy = scaled(dy, factor, blade_count(GRADES, grade))
                if grade == 0:
                    dy = (dy[0] + density(y[0]) * phi(x[0]) * acc,)
                store_blades(
                    dy_ptr + start, stride_d, offsets, dy, mask, first_blade(GRADES, grade), blade_count(GRADES, grade)
                )
    for path in tl.static_range(length(TABLE)):
        dw_ptrs = dw_ptr + (group * length(TABLE) + path) * tl.cast(columns, tl.int64) + cols
        tl.store(dw_ptrs, tl.sum(dw[path], 0, keep_dims=True), mask=col_mask)


@triton.jit
def sgp_sums_kernel(
    x_ptr, y_ptr, w_ptr, bias_ptr, gradient_ptr, sums_ptr, columns: tl.constexpr,
    TABLE: tl.constexpr, GRADES: tl.constexpr, BACKWARD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For a row and each grade: the sum of squares of the product, and backward of the product times the gradient."""
    D: tl.constexpr = length(GRADES)
    G: tl.constexpr = item(GRADES, -1) + 1
    row, rows = tl.program_id(0), tl.num_programs(0)
    stride_d, start = tl.cast(rows, tl.int64) * columns, tl.cast(row, tl.int64) * columns
    squares, dots = zeros(G, 1, BLOCK), zeros(G, 1, BLOCK)
    for first in range(0, columns, BLOCK):
        cols = first + tl.arange(0, BLOCK)[None, :]
        mask = cols < columns
        x = load_blades(x_ptr + start, stride_d, cols, mask, D)
        y = load_blades(y_ptr + start, stride_d, cols, mask, D)
        if bias_ptr is not None:
            y = added_at(y, 0, tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32))
        out = weighted_from(x, y, w_ptr + cols, columns, mask, TABLE, D)
        out = scaled(out, phi(x[0]) * phi(y[0]), D)
        squares = added(squares, grade_sums(out, out, GRADES), G)
        if BACKWARD:
            gradient = load_blades(gradient_ptr + start, stride_d, cols, mask, D)
            dots = added(dots, grade_sums(gradient, out, GRADES), G)
    store_sums(sums_ptr + row, rows, over_features(squares), G)
    if BACKWARD:
        store_sums(sums_ptr + row + G * tl.cast(rows, tl.int64), rows, over_features(dots), G)


@triton.jit
def added(left, right, COUNT: tl.constexpr):
    out = ()
    for i in tl.static_range(COUNT):
        out = out + (left[i] + right[i],)
    return out


@triton.jit
def store_sums(ptr, rows, sums, COUNT: tl.constexpr):
    for i in tl.static_range(COUNT):
        tl.store(ptr + i * tl.cast(rows, tl.int64) + tl.zeros((1, 1), tl.int32), sums[i])


@triton.jit(do_not_specialize=["programs"])
def add_kernel(parts_ptr, total_ptr, programs, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds up the programs' parts of the gradient of w, `size` numbers each."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, programs, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        mask = (row < programs) & (offsets < size)
        acc += tl.load(parts_ptr + row * tl.cast(size, tl.int64) + offsets, mask=mask, other=0.0)
    tl.store(total_ptr + offsets, tl.sum(acc, 0, keep_dims=True), mask=offsets < size)


# Their launches: shapes and types are the callers' business


@dataclass(frozen=True)
class Cut:
    """How the work is cut: a program's tile of rows and features, its warps, its loads ahead; programs an SM."""

    rows: int
    block: int
    warps: int
    stages: int
    per_sm: int


# By (D, backward, itemsize): features of a thread, stages, programs of 512 features that an SM has room for. Registers
# and shared memory decide: in float32 and for D = 8 a feature takes up to 54 registers forward, 20 of them its weights,
# and 64 backward, and a thread has 255 at most. With two stages a row is in flight to shared memory while its program
# works on another: forward 32 to 64 KiB an SM in flight are enough for an H200's memory, and more were slower.
TILE = {False: 256, True: 512}  # features of a program, of several rows where these are short; by `backward`
PART = 512  # features of a program, of rows that no program holds
WIDEST = 1024  # features of a row that one program holds
CUTS = {
    (4, False, 4): (4, 2, 2), (4, False, 2): (8, 3, 4), (4, True, 4): (4, 2, 3), (4, True, 2): (4, 2, 3),
    (8, False, 4): (4, 2, 1), (8, False, 2): (4, 3, 2), (8, True, 4): (4, 2, 2), (8, True, 2): (4, 2, 2),
}  # fmt: skip
# Backward half the features, where warps with rows of their own add up the weights' gradient, or rows are wide; and for
# D = 8 from capability 10.0 on, for which the compiler needs more registers.
HALVED = {4: (2, 1, 2), 8: (2, 1, 1)}
FEW = 512  # features for each SM: up to so many, as many programs as tiles; backward, as the parts of dw allow
ALIGNED = 16  # bytes: of rows that begin at no multiple, a thread loads single elements, and in 16 bits none ahead


def cut(blades: int, columns: int, backward: bool, itemsize: int, shared_bytes: int, capability: int = 9) -> Cut:
    """For an SM of that capability (major) and shared memory: one stage where not all programs have room for more."""
    block = block_of(columns)
    rows = max(TILE[backward] // block, 1)
    halved = backward and (rows > 1 or columns > WIDEST or (blades == 8 and capability >= 10))
    features, stages, per_sm = HALVED[blades] if halved else CUTS[blades, backward, itemsize]
    programs = max(512 * per_sm // (rows * block), 1)
    kept = stages - (itemsize == 2)  # Triton has a row less in flight where it converts what it loads
    ahead = kept * (2 + backward) * blades * rows * block * itemsize + 4096  # x, y, dout; and what threads exchange
    return Cut(
        rows, block, rows * block // (32 * features), stages if programs * ahead <= shared_bytes else 1, programs
    )


def fine_cut(columns: int, backward: bool, normalized: bool, is_few: bool) -> Cut:
    """For rows that are few or not aligned: more threads, of one or two features, wait at once; none loads ahead.

    Where no sum over a row is needed, programs of 128 features share it, and fewer than 128 lanes have no work.
    """
    block = block_of(columns) if normalized else min(block_of(columns), 128)
    rows = max(128 // block, 1)
    most = (512 if backward else 256) if is_few else 128 * backward  # of one feature a thread
    features = 1 if rows * block <= most else 2
    per_sm = (512 * features if backward else 2048) // (rows * block)
    return Cut(rows, block, rows * block // (32 * features), 1, max(per_sm, 1))


def block_of(columns: int) -> int:
    return triton.next_power_of_2(columns) if columns <= WIDEST else PART


def cut_for(x, backward: bool, normalized: bool) -> Cut:
    blades, rows, columns = x.shape
    few = fine_cut(columns, backward, normalized, is_few=True)
    if rows * triton.cdiv(columns, few.block) * few.block <= FEW * sms_of(x):
        return few
    if columns * x.element_size() % ALIGNED:
        return fine_cut(columns, backward, normalized, is_few=False)
    if x.is_cpu:
        return cut(blades, columns, backward, x.element_size(), 227 * 1024)
    gpu = torch.cuda.get_device_properties(x.device)
    shared = gpu.shared_memory_per_block_optin  # an SM has 1 KiB more
    return cut(blades, columns, backward, x.element_size(), shared, gpu.major)


def sms_of(x) -> int:
    return 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count


def programs_for(x, by: Cut) -> int:
    """How many programs walk over the rows, for each part of a row: as many as run at once, or fewer."""
    _, rows, columns = x.shape
    return min(triton.cdiv(rows, by.rows), max(sms_of(x) * by.per_sm // triton.cdiv(columns, by.block), 1))


def stages_of(rows: int, programs: int, normalized: bool, by: Cut) -> int:
    """0, no loop, where a program has one tile: then the loads of the weights and of the tile leave together.

    With a sum over the row there is a loop nevertheless: without one, the compiler loads the last blades late.
    """
    return 0 if by.stages == 1 and not normalized and programs * by.rows >= rows else by.stages


def forward(x, y, w, normalized, bias=None):
    """The product of contiguous x and y (D, B, N) of one type, weighted by w (P, N). None of them is empty.

    A bias (N), contiguous, is added to y's scalar blade as it is read.
    """
    out = torch.empty_like(x)
    _, rows, columns = x.shape
    found, by = algebra_of(x), cut_for(x, backward=False, normalized=normalized)
    wide = columns > by.block
    sums = row_sums(x, y, w, bias) if wide and normalized else None
    programs = programs_for(x, by)
    sgp_kernel[(programs * triton.cdiv(columns, by.block),)](
        x, y, w, bias, out, sums, rows, EPSILON, columns, TABLE=found.sums(2, 0, 1), GRADES=found.grades,
        NORMALIZED=normalized, WIDE=wide, ROWS=by.rows, BLOCK=by.block,
        STAGES=stages_of(rows, programs, normalized, by), num_warps=by.warps,
    )  # fmt: skip
    return out


def backward(dout, x, y, w, normalized):
    """(dx, dy, dw), from the gradient of `forward`'s answer and what it was given."""
    dx, dy, dw = torch.empty_like(x), torch.empty_like(y), torch.empty_like(w)
    _, rows, columns = x.shape
    found, by = algebra_of(x), cut_for(x, backward=True, normalized=normalized)
    wide = columns > by.block
    sums = row_sums(x, y, w, None, dout) if wide and normalized else None
    programs = min(programs_for(x, by), max(rows // 4, sms_of(x)))  # parts of dw: 5 / 8 of a tensor, or one for each SM
    parts = torch.empty(programs, *w.shape, device=x.device)
    sgp_backward_kernel[(programs * triton.cdiv(columns, by.block),)](
        x, y, w, dout, dx, dy, parts, sums, rows, EPSILON, columns,
        TABLE=found.sums(2, 0, 1), LEFT=found.sums(0, 1, 2), RIGHT=found.sums(1, 0, 2), GRADES=found.grades,
        NORMALIZED=normalized, WIDE=wide, ROWS=by.rows, BLOCK=by.block,
        STAGES=stages_of(rows, programs, normalized, by), num_warps=by.warps,
    )  # fmt: skip
    add_kernel[(triton.cdiv(w.numel(), 32),)](parts, dw, programs, w.numel(), ROWS=32, BLOCK=32, num_warps=4)
    return dx, dy, dw


def row_sums(x, y, w, bias=None, dout=None):
    """The normalization's sums, of rows wider than a program: float32 (1, grades, B), with dout (2, grades, B)."""
    backward, found = dout is not None, algebra_of(x)
    _, rows, columns = x.shape
    sums = torch.empty(1 + backward, len(found.sizes), rows, device=x.device)
    sgp_sums_kernel[(rows,)](
        x, y, w, bias, dout, sums, columns, TABLE=found.sums(2, 0, 1), GRADES=found.grades,
        BACKWARD=backward, BLOCK=PART, num_warps=8,
    )  # fmt: skip
    return sums
