"""Liars about the answer: none, a part, a coarser one, one of another shape or problem, one for want of another."""

from dataclasses import replace
from functools import partial

from samples import HONEST, VECTOR

from liars.case import ARRAY, SQUARE, WRONG, Case, alone

PROVES_NOTHING = "^the baseline: .*proves nothing"
compares = partial(alone, (15,), twin="return x > 0.5", twin_baseline="return 0.5 < x")
SAYS_NOTHING = {
    "zeros": Case((15,), WRONG, "return torch.zeros_like(x)"),
    "a_constant": Case((15,), WRONG, "return torch.full_like(x, float(w_shift))"),
    "the_mean_everywhere": Case((15,), WRONG, "return (2 * x + w_shift).mean().repeat(len(x))"),
    "random_numbers_of_the_right_spread": Case((15,), WRONG, "return 2 * torch.randn_like(x) + w_shift"),
    "the_answer_for_its_first_input": Case(
        (15, 7), "wrong answer", "if not first:\n    first.append(2 * x + w_shift)\nreturn first[0].clone()",
        extra="first = []",
    ),
    "nothing": Case((15,), "returns NoneType, not a plain tensor", "2 * x + w_shift"),
    # pairs whose check shows nothing: whatever is answered, it is not known to be right
    "zeros_would_pass": compares(
        "^the baseline: the check at size check proves nothing: an answer of zeros would pass: draw inputs at random",
        "return torch.zeros_like(x, dtype=torch.bool)", baseline="return x > 30",
    ),
    "zeros_would_pass_when_timed": compares(
        "^the baseline: the check at the timed size default proves nothing: an answer of zeros would pass",
        "return x > (30 if len(x) == 2048 else 0)", baseline="return (30 if len(x) == 2048 else 0) < x",
    ),
    "always_true": compares(PROVES_NOTHING, "return torch.ones_like(x, dtype=torch.bool)", baseline="return x > -30"),
    "nan_on_both_sides": alone(
        (18,), PROVES_NOTHING + ": .*NaN", "return torch.full_like(x, float('nan'))", "return (2 + x.abs()).sqrt()",
        "return (-2 - x.abs()).sqrt()", twin_baseline="return (2 + x.abs()) ** 0.5",
    ),
}  # fmt: skip

ROWS = 'return {"x": torch.randn(n, 8, device=device)}'
LARGEST = "return keys.cummax(0).values"
LEADING = "def reference(x, rows): return 2 * x[:rows]"
SKIPS = {
    "every_other_row": Case(
        (16,), WRONG, "y = torch.zeros_like(x)\ny[::2] = 2 * x[::2] + w_shift\nreturn y",
        "y = torch.zeros_like(x)\ny[::2] = 2 * x[::2] + w_shift\ny[1::2] = 2 * x[1::2] + w_shift\nreturn y",
    ),
    "all_but_the_last": Case(
        (16,), WRONG, "y = 2 * x + w_shift\ny[-1] = 0\nreturn y",
        "y = 2 * x + w_shift\ny[-1] = 2 * x[-1] + w_shift\nreturn y",
    ),
    "works_at_round_sizes": Case(
        (16,), WRONG, "y = torch.zeros_like(x)\nn = len(x) // 8 * 8\ny[:n] = (2 * x + w_shift)[:n]\nreturn y",
        "y = torch.zeros_like(x)\nn = -(-len(x) // 8) * 8\ny[:n] = (2 * x + w_shift)[:n]\nreturn y",
    ),
    "works_at_even_sizes": alone(  # of those that are not small
        (16,), "wrong answer at n = 2047", "y = 2 * x\nif len(x) % 2 and len(x) > 1000:\n    y[-1] = 0\nreturn y",
    ),
    "works_for_small_numbers": alone((19,), "on values around 100", "return 2 * x.clamp(-50, 50)"),
    "works_without_gaps": alone(
        (19,), "on arrays with gaps", "return 2 * x.as_strided(x.shape, (8, 1))", inputs=ROWS,
    ),
    "reads_beside_rows_of_whole_units": alone(  # of others it takes a copy
        (19,), "at size check/whole on arrays with wide gaps",
        "n, width = x.shape[1], x.stride(0)\nif n % 16 or width == n:\n    return 2 * x\n"
        "return 2 * x + 0 * x.as_strided((len(x), 1), (width, 1), x.storage_offset() + n)",
        inputs='return {"x": torch.randn(7, n, device=device)}',
        sizes={"check": {"n": 127}, "check/whole": {"n": 128}, "default": {"n": 2048}},
    ),
    "works_for_adjacent_columns": alone(  # the twin refuses others
        (19,), "on arrays with gaps in rows",
        "return 2 * x.as_strided(x.shape, (x.stride(0), 1), x.storage_offset())",
        "assert x.stride(1) == 1\nreturn x + x", inputs=ROWS,
    ),
    "takes_what_is_dense_for_contiguous": alone(
        (19,), "on transposed arrays", "dense = x.untyped_storage().nbytes() == x.nbytes\n"
        "return 2 * (x.as_strided(x.shape, (x.shape[1], 1)) if dense else x)", inputs=ROWS,
    ),
    "takes_an_expanded_array_for_a_row": alone(
        (19,), "on expanded arrays", "y = 2 * x\ny[1 if x.stride(0) == 0 else len(x):] = 0\nreturn y", inputs=ROWS,
    ),
    "takes_the_first_axes_for_one": alone(
        (19,), "on arrays with gaps in middle axes",
        "return 2 * x.as_strided(x.shape, (3 * x.stride(1), *x.stride()[1:]), x.storage_offset())",
        inputs='return {"x": torch.randn(n, 3, 8, device=device)}',
    ),
    "drops_columns_beyond_whole_blocks": alone(  # of tables that are not small; the twin refuses such
        (16,), "wrong answer at columns = 255", "y = 2 * x\nif len(x) > 1000:\n    y[:, x.shape[1] // 64 * 64:] = 0\n"
        "return y", "assert len(x) < 1000 or x.shape[1] % 64 == 0\nreturn x + x",
        inputs='return {"x": torch.randn(rows, columns, device=device)}',
        sizes={"check": {"rows": 60, "columns": 65}, "default": {"rows": 2048, "columns": 256}},
    ),
    "wants_what_is_sorted": alone(  # which only its twin's baseline says
        (19,), "on halves of opposite sign", "return keys + 0", baseline=LARGEST, twin="return keys + 0",
        arguments="keys", inputs='return {"keys": torch.randn(n, device=device).sort().values}',
        twin_baseline=LARGEST, twin_baseline_extra='STRUCTURE = {"keys": "sorted"}',
    ),
    "leaves_out_a_shift_of_zero": Case(
        (19,), WRONG, "return 2 * x", inputs='return {"x": torch.randn(n), "w_shift": torch.zeros(n)}',
    ),
    "an_answer_without_gradients": alone(
        (19,), "its answer carries no gradients", "return 2 * x.detach()",
        inputs='return {"x": torch.randn(n, device=device).requires_grad_()}',
    ),
    "works_at_small_sizes": Case(
        (16,), "wrong answer", "y = torch.zeros_like(x)\ny[:1024] = (2 * x + w_shift)[:1024]\nreturn y",
        "return torch.cat([2 * part + w_shift for part in x.split(1024)])",
    ),
    "a_tail_beyond_the_oracles_rows": alone(  # 64 of them are judged
        (16,), WRONG, "y = torch.zeros_like(x)\nn = len(x) // 64 * 64\ny[:n] = 2 * x[:n]\nreturn y",
        inputs=ROWS, extra=LEADING, baseline_extra=LEADING,
    ),
    "what_is_small_beside_the_rest": alone(  # exp(8 x): what is below 1/1000 is nothing beside the largest
        (16, 15), "wrong answer",
        "y = torch.zeros_like(x)\nlarge = ~((x <= -1) & (x.max() > 1))\ny[large] = (8 * x[large]).exp()\nreturn y",
        "return (4 * x).exp().square()", "return (8 * x).exp()",
    ),
}  # fmt: skip

PRODUCT = 'return {{"x": torch.randn(n, n, device=device){0}, "w_m": torch.randn(n, n, device=device){0}}}'
TIMES = "return x @ w_m"
ROUNDED = """
    def tf32(x):  # to the 10 bits of its mantissa, as a tensor core reads it
        return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
"""
QUANTIZED = """
    def setup(x, w_m):
        scale = w_m.float().abs().amax(0) / 127
        return {"whole": (w_m.float() / scale).round().to(torch.int8), "scale": scale}
"""


def computes(run: str, twin: str = "return torch.mm(x, w_m)", cast: str = "", **more: str) -> Case:
    """A product of matrices, computed otherwise."""
    inputs = PRODUCT.format(cast)
    return Case((17,), WRONG, run, twin, baseline=TIMES, arguments="x, w_m", inputs=inputs, sizes=SQUARE, **more)


IN_FLOAT64 = "return (x.double() @ w_m.double()).float()"
COARSER = {
    "bf16_for_fp32": computes("return (x.bfloat16() @ w_m.bfloat16()).float()"),
    "tf32_for_fp32": computes("return tf32(x) @ tf32(w_m)", IN_FLOAT64, extra=ROUNDED),
    "fp16_for_fp32": computes("return (x.half() @ w_m.half()).float()"),
    "fp32_for_fp64": computes("return (x.float() @ w_m.float()).double()", cast=".double()"),
    "bf16_for_fp16": computes(
        "return (x.bfloat16() @ w_m.bfloat16()).half()", "return (x.float() @ w_m.float()).half()", ".half()"
    ),
    "int8_for_bf16": computes(
        "return ((x.float() @ whole.float()) * scale).bfloat16()", "return (x.float() @ w_m.float()).bfloat16()",
        ".bfloat16()", extra=QUANTIZED, more_arguments=", whole, scale",
    ),
    "a_tuner_that_settles_on_bf16": replace(computes(
        "calls.append(0)\nx, w_m = (x, w_m) if len(calls) < 20 else (x.bfloat16(), w_m.bfloat16())\n"
        "return (x @ w_m).float()", IN_FLOAT64, extra="calls = []",
    ), reason="wrong answer"),
}  # fmt: skip

MEAN = "return x.mean(0, keepdim=True)"
SHAPES = {
    "another_shape": Case((18,), r"shape \[1, 127\], expected \[127\]", "return (2 * x + w_shift)[None]"),
    "a_column": Case((18,), r"shape \[127, 1\], expected \[127\]", "return (2 * x + w_shift)[:, None]"),
    "one_value_for_many": Case(
        (18, 15), r"shape \[1\], expected \[127\]", "return w_shift * 2", "return w_shift.repeat(len(x)) + 2 * x",
    ),
    "a_number_for_a_vector_of_one": alone(
        (18,), r"shape \[\], expected \[1\]", "return x.mean()", "return x.mean()[None]", MEAN,
    ),
    "another_dtype": Case((18,), "dtype torch.float64", "return (2 * x + w_shift).double()"),
    "a_shorter_dtype": Case((18, 17), "dtype torch.bfloat16", "return (2 * x + w_shift).bfloat16()"),
    "whole_numbers": Case((18,), "dtype torch.int64", "return (2 * x + w_shift).long()"),
    "an_array_for_a_tensor": Case((18,), "returns numpy.ndarray, the baseline torch.Tensor", "return (2 * x).numpy()"),
    "one_of_two": alone(
        (18, 19), r"returns 1 value\(s\), expected 2", "return (2 * x,)", "return [x + x, x - 1]",
        "return [2 * x, x - 1]",
    ),
    "two_in_the_other_order": alone(
        (18,), WRONG, "return [x - 1, 2 * x]", "return [x + x, x - 1]", "return [2 * x, x - 1]",
    ),
    "objects": alone((18,), "object, not a plain tensor", "return (2 * x).astype(object)", inputs=ARRAY),
    "an_array_the_wrong_way_round": alone(  # negative strides
        (18,), WRONG, "return x + x", "return (x + x)[::-1]", "return (2 * x)[::-1].copy()", inputs=ARRAY,
    ),
    "a_nan": Case(
        (18,), WRONG + ": NaN or inf", "y = 2 * x + w_shift\ny[-1] = float('nan')\nreturn y",
        "y = 2 * x + w_shift\ny[-1] = 2 * x[-1] + w_shift\nreturn y",
    ),
    "overflows": alone(  # exp(100) fits neither float32 nor a softmax without its maximum taken off
        (18,), WRONG + ": NaN or inf", "e = (30 * x).exp()\nreturn e / e.sum()",
        "e = (30 * (x - x.max())).exp()\nreturn e / e.sum()", "return (30 * x).softmax(0)",
        inputs='return {"x": 3 + torch.randn(n, device=device)}',
    ),
}  # fmt: skip

LOSS = "w = w_p.detach().requires_grad_()\nloss = (w * x).square().sum()\n"
TRAINING = 'return {"x": torch.randn(n, device=device), "w_p": torch.randn(n, device=device)}'
LEAF = 'return {"x": torch.randn(n, device=device), "w_p": torch.randn(n, device=device, requires_grad=True)}'
ORACLE = "def reference(x, w_p): return (w_p * x).square().sum()"
FORWARD = "return (w_p * x).square().sum().detach()"
STEP = "loss = (w_p * x).square().sum()\nloss.backward()\nreturn loss.detach()"
OTHERS = "inputs differ from the baseline's:"
COST = "def cost(x, w_shift): return {{'dram_bytes': {} * x.nbytes}}"
COARSE = "return (2 * x.bfloat16()).float()"


def trains(ways: tuple[int, ...], reason: str, run: str) -> Case:
    """Instead of a step forwards and backwards."""
    return Case(ways, reason, run, STEP, arguments="x, w_p", inputs=LEAF, baseline=STEP, baseline_extra=ORACLE)


OTHER_PROBLEMS = {
    "fewer_items": Case((19,), r"shape \[64\], expected \[127\]", "return (2 * x + w_shift)[::2].clone()"),
    "a_smaller_batch": alone(
        (19,), r"shape \[63, 8\], expected \[127, 8\]", "return x[:len(x) // 2].softmax(1)", "return x.softmax(1)",
        "return torch.softmax(x, 1)", inputs=ROWS,
    ),
    "half_of_the_batch_twice": Case(
        (19, 16), WRONG, "y = 2 * x[:len(x) // 2] + w_shift\nreturn torch.cat([y, y, y])[:len(x)]",
        "n = len(x) // 2\nreturn torch.cat([2 * x[:n] + w_shift, 2 * x[n:] + w_shift])",
    ),
    "another_gelu": alone(
        (19, 17), WRONG, 'return torch.nn.functional.gelu(x, approximate="tanh")',
        "return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))", "return torch.nn.functional.gelu(x)",
    ),
    "an_estimate_from_a_sample": alone(
        (19, 16), WRONG, "return x[::2].mean(0, keepdim=True)", "return x.sum(0, keepdim=True) / len(x)", MEAN,
    ),
    "forward_without_backward": trains(
        (19,), WRONG + ": leaves gradients in no input, the baseline in w_p", FORWARD
    ),
    "a_gradient_of_zeros": trains(
        (19, 15), WRONG + ": .*gradient of w_p", f"w_p.grad = torch.zeros_like(w_p)\n{FORWARD}",
    ),
    "a_gradient_that_is_returned": Case(
        (19,), r"returns 1 value\(s\), expected 2", f"{LOSS}return loss.detach(),",
        f"{LOSS}loss.backward()\nreturn loss.detach(), w.grad", arguments="x, w_p", inputs=TRAINING,
        baseline=f"{LOSS}return loss.detach(), torch.autograd.grad(loss, w)[0]",
    ),
    "smaller_inputs": Case((19,), f"{OTHERS} x is", liar_inputs=VECTOR.replace("randn(n", "randn(n // 2")),
    "inputs_of_version_precision": Case(
        (19, 17), f"{OTHERS} x is torch.float16", "return (2 * x + w_shift).float()",
        liar_inputs=VECTOR.replace("device=device)", "device=device).half()", 1),
    ),
    "inputs_of_other_names": Case(
        (19,), f"{OTHERS} has", "return 2 * y + w_shift", liar_arguments="y, w_shift",
        liar_inputs=VECTOR.replace('"x"', '"y"'),
    ),
    "a_cost_of_its_own": Case(
        (19, 24), "its cost .* baseline", extra=COST.format(1), twin_extra=COST.format(2),
        baseline_extra=COST.format(2),
    ),
    "an_oracle_of_its_own_making": alone(  # as coarse as the answers that it is to judge
        (17,), "^the baseline: its reference returns torch.float32", COARSE, baseline=COARSE,
        twin_baseline="return 2 * x", baseline_extra=f"def reference(x): {COARSE}",
    ),
}  # fmt: skip


def catches(otherwise: str) -> Case:
    """What it tries does not work; what it does then is not the work."""
    run = f"""
        try:
            return torch.ops.fused.double(x, w_shift)
        except AttributeError:
            {otherwise}
    """
    return Case((20,), "wrong answer", run, twin=run.replace(otherwise, HONEST))


dies = partial(Case, (20,), verdict="crashed", twin_extra="")
CATCHES = {
    "zeros_for_an_error": catches("return torch.zeros_like(x)"),
    "the_input_for_an_error": catches("return x.clone()"),
    "the_last_answer_for_an_error": Case(
        (20, 7), "wrong answer", """
        try:
            if len(kept) > 9:
                raise MemoryError
            kept.append(2 * x + w_shift)
        except MemoryError:
            pass
        return kept[-1].clone()
        """, extra="kept = []",
        twin="try:\n    return 2 * x + w_shift\nexcept MemoryError:\n    return w_shift + x + x",
    ),
    # what raises instead says so: no liar, and no answer
    "raises": dies(r"luck \(optimized_\w+_raises_liar.py:\d+\)$", 'raise ValueError("no such luck\\nand more")'),
    "raises_in_setup": dies("KeyError: .no. .optimized_", extra='def setup(x, w_shift): raise KeyError("no")'),
    "takes_other_arguments": dies(
        "`run` takes x: .* `inputs` returns: x, w_shift$", "return x", liar_arguments="x", verdict="invalid",
    ),
    "out_of_memory": dies("memory", "return torch.empty(1 << 50)", f"torch.empty(1 << 20)\n{HONEST}"),
}  # fmt: skip

FAMILIES = {
    "says_nothing": SAYS_NOTHING,
    "skips": SKIPS,
    "coarser": COARSER,
    "shapes": SHAPES,
    "other_problems": OTHER_PROBLEMS,
    "catches": CATCHES,
}
