"""Chapter 4's wrong versions."""

from mutants import Mutant

STEPS = "range(0, K, BLOCK_K)"
WHOLE_STEPS = "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"
NO_REMAINDER = "num_pid_m * num_pid_n // tl.num_programs(0) * tl.num_programs(0), tl.num_programs(0)"
MASKED_A = "tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)"
IN_FP16 = "acc = tl.dot(a, b, acc.to(tl.float16), out_dtype=tl.float16).to(tl.float32)"
GROUP = "min(num_pid_m - first_pid_m, GROUP_M)"

MUTANTS = {
    "attention": [
        Mutant("the row's sum is not rescaled", "l_i = l_i * alpha + tl.sum(p, 1)", "l_i = l_i + tl.sum(p, 1)"),
        Mutant("columns beyond n count as scores of 0", "else (offs_n < N_CTX)[None, :]",
               "else (offs_n >= 0)[None, :]"),
        Mutant("every row sees one column too many", "start_n + offs_n <= offs_m[:, None] if CAUSAL",
               "start_n + offs_n <= offs_m[:, None] + 1 if CAUSAL", of="skipped"),
        Mutant("the last program's rows end where a block does", "hi = tl.minimum(start_m + BLOCK_M, N_CTX)",
               "hi = tl.minimum(start_m + BLOCK_M, N_CTX // BLOCK_N * BLOCK_N)", of="skipped"),
        Mutant("scaled by the padded width", "width**-0.5", "d**-0.5", of="tma"),
        Mutant("what was added is not rescaled in the loop",
               'acc * alpha[:, None], input_precision="ieee")\n    o_desc',
               'acc, input_precision="ieee")\n    o_desc', of="tma"),
        Mutant("the pending block is forgotten", "tl.where(start_n == 0, pending, start_n - BLOCK_N)",
               "tl.maximum(start_n - BLOCK_N, 0)", of="overlapped"),
        Mutant("the weights meet the next block's values", "tl.where(start_n == 0, pending, start_n - BLOCK_N)",
               "start_n", of="overlapped"),
        Mutant("gaps between rows are ignored", "if more else each.contiguous()", "if more else each",
               file="attending.py"),
    ],
    "attention_backward": [
        Mutant("no row's own key", "p = tl.where(offs_n[:, None] <= offs_m[None, :], p, 0.0)",
               "p = tl.where(offs_n[:, None] < offs_m[None, :], p, 0.0)"),
        Mutant("dk without the scale", "dk * sm_scale", "dk"),
        Mutant("dq is stored, not added", 'tl.atomic_add(dq_ptr + offsets, dq, mask=mask, sem="relaxed")',
               "tl.store(dq_ptr + offsets, dq, mask=mask)", of="one_pass"),
        Mutant("dq is summed in 16 bits", "torch.zeros_like(q, dtype=torch.float32)", "torch.zeros_like(q)",
               of="one_pass", passes="sums of nine blocks: within three times the baseline's own rounding"),
        Mutant("keys beyond n weigh something", "tl.where(start_n + BLOCK_N > N_CTX, N_CTX, 0)", "0", of="one_pass"),
        Mutant("rowsum(o * do) in 16 bits", "tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)",
               "tl.sum(o * do, 1).to(tl.float32)", file="queries.py"),
    ],
    "batched_matmul": [
        Mutant("products as far apart in y as in x", "pid_b * stride_bb", "pid_b * stride_ab"),
        Mutant("x is not masked along k: zeros of y take care of it", "(offs_m < rows) & (offs_k[None, :] < K - k)",
               "offs_m < rows"),
        Mutant("y is taken for contiguous", "*x.stride(), *y.stride()", "*x.stride(), K * N, N, 1"),
        Mutant("float32 is multiplied in float16", 'tl.dot(a, b, acc, input_precision="ieee")',
               "tl.dot(a.to(tl.float16), b.to(tl.float16), acc)"),
        Mutant("the last k % BLOCK_K are dropped", STEPS, WHOLE_STEPS),
        Mutant("blocks of k that no equal share has are dropped", "tl.cdiv(tl.cdiv(K, BLOCK_K), tl.num_programs(1))",
               "(tl.cdiv(K, BLOCK_K) // tl.num_programs(1))"),
        Mutant("each share goes on to the end of k", "K = min(K - first_k, part)", "K = K - first_k"),
        Mutant("each product's shares are where the first one's are",
               "(tl.num_programs(0) // num_tiles) * M * N", "M * N"),
    ],
    "fused_activation": [
        Mutant("activated after each step, too", "acc = tl.dot(a, b, acc)",
               "acc = activate(tl.dot(a, b, acc), ACTIVATION)"),
        Mutant("a is not masked along k: zeros of b take care of it", MASKED_A, "tl.load(a_ptrs)"),
        Mutant("the right half of a tile is not activated", "activate(acc1, ACTIVATION).to", "acc1.to", of="tma"),
        Mutant("tiles % programs are dropped", "num_pid_m * num_pid_n, tl.num_programs(0)", NO_REMAINDER,
               of="specialized"),
        Mutant("GELU by a sigmoid", "y = x * upper_tail(-x)", "y = x * tl.sigmoid(1.702 * x)", file="activations.py"),
        Mutant("GELU by a hyperbolic tangent", "y = x * upper_tail(-x)",
               "y = x * tl.sigmoid(1.5957691 * (x + 0.044715 * x * x * x))", file="activations.py", of="tma",
               passes="off by less than half an eps of float16"),
        Mutant("ReLU makes NaN 0", "tl.where(x < 0, 0.0, x)", "tl.where(x > 0, x, 0.0)", file="activations.py"),
        Mutant("columns with gaps are taken for dense", "is_whole = y.stride(1) == 1 and ", "is_whole = ",
               file="copies.py", of="specialized"),
    ],
    "matmul": [
        Mutant("a is not masked along k: zeros of b take care of it", MASKED_A, "tl.load(a_ptrs)"),
        Mutant("the last group of rows is as high as all", GROUP, "GROUP_M", of="grouped"),
        Mutant("added up in float16", "acc = tl.dot(a, b, acc)", IN_FP16, of="pipelined"),
        Mutant("sums rounded to float16 after each step", "acc = tl.dot(a, b, acc)",
               "acc = tl.dot(a, b, acc).to(tl.float16).to(tl.float32)", of="grouped"),
        Mutant("tiles % programs are dropped", "num_pid_m * num_pid_n, tl.num_programs(0)", NO_REMAINDER, of="tma"),
        Mutant("b is walked along as a is", "b_ptrs += BLOCK_K * stride_bk", "b_ptrs += BLOCK_K * N", of="pipelined"),
        Mutant("columns with gaps are taken for dense", "is_whole = y.stride(1) == 1 and ", "is_whole = ",
               file="copies.py", of="specialized"),
    ],
    "precision": [
        Mutant("every step begins with the last one's sum", "acc += tl.dot(a, b, out_dtype=tl.float16)", IN_FP16,
               of="promoted"),
        Mutant("w_b is taken for contiguous", "BLOCK_K, tl.int64) * stride_bk", "BLOCK_K, tl.int64) * N",
               of="promoted"),
        Mutant("the last group of rows is as high as all", GROUP, "GROUP_M", of="fp16"),
        Mutant("x is not masked along k: zeros of w_b take care of it", MASKED_A, "tl.load(a_ptrs)", of="fp16"),
    ],
    "split_k": [
        Mutant("partial sums in 16 bits", "torch.empty(splits, M, N, device=x.device)",
               "torch.empty(splits, M, N, dtype=x.dtype, device=x.device)"),
        Mutant("the remainder of k is nobody's", "max(triton.cdiv(steps, each), 1)", "max(steps // each, 1)"),
        Mutant("one row: what is beyond k counts", "mask=(offs_m < rows) & (k_of_a < K - k), other=0.0",
               "mask=(offs_m < rows) & (k_of_a < K - k + 1), other=0.0"),
        Mutant("sums are stored, not added", "tl.atomic_add(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & "
               '(offs_n < N), sem="relaxed")', "tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & "
               "(offs_n < N))", of="atomic"),
        Mutant("sums are added up in 16 bits", "torch.zeros(M, N, device=x.device)",
               "torch.zeros(M, N, dtype=x.dtype, device=x.device)", of="atomic"),
        Mutant("the counter is not set back", "        tl.store(arrived_ptr + pid, 0)  # for the next call\n", "",
               of="last"),
        Mutant("sums % AT_ONCE are dropped", "range(0, splits, AT_ONCE)", "range(0, splits - AT_ONCE + 1, AT_ONCE)",
               of="last"),
    ],
    "tile_size": [
        Mutant("as many programs as tiles of another size", "(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)",
               "(triton.cdiv(M, 128) * triton.cdiv(N, 128),)"),
        Mutant("the last k % BLOCK_K are dropped", STEPS, WHOLE_STEPS),
        Mutant("a is not masked along k: zeros of b take care of it", MASKED_A, "tl.load(a_ptrs)"),
        Mutant("b is walked along as if its rows were dense", "b_ptrs += BLOCK_K * stride_bk",
               "b_ptrs += BLOCK_K * N"),
        Mutant("the last group of rows is as high as all", GROUP, "GROUP_M"),
        Mutant("what a copy has beyond its matrix is 1", "other=0.0", "other=1.0", file="copies.py"),
    ],
}  # fmt: skip
