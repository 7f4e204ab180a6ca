"""Chapter 3's kernels where no check size and no stress draw is: sizes 0, transposed arrays, infinities, 2^31 elements.

Overflow, NaN, gaps, 16-bit types and tails are the harness's own (test_pairs.py); wrong versions show it (mutants).

What is expected comes from torch in float64: the formulas from its functions, the gradients from its autograd. Without
a GPU the kernels run in Triton's interpreter, in a process of its own; with one they run there and on the GPU.
"""

from functools import partial
from importlib.util import find_spec

import edges
import pytest
import torch
from edges import INF, NAN, assert_near, module, run_here, skip_without, transposed
from torch.nn import functional

from common.pairs.pair import ROOT, discover

CH3 = ROOT / "ch3"
PAIRS = {pair.name: pair for pair in discover(CH3)}
FLOATS = ("float32", "float16", "bfloat16")
BACKWARD = ("softmax_backward", "layer_norm_backward", "rms_norm_backward")
REDUCTIONS = [(op, over) for op in ("sum", "mean", "max", "logsumexp") for over in ("rows", "columns", "all")]
each = partial(edges.each, PAIRS)

pytestmark = [
    pytest.mark.rest,  # kernels at their edges, in the interpreter
    pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton"),
]


@pytest.fixture
def near(name, version, device, call):
    """near(inputs, ...): what the version returns, after it was found near torch's own answer."""

    def answer(inputs, least=0.0, **how):
        actual = call(version, device, inputs, **how)
        assert_near(actual, expected(name, inputs), least)
        return actual

    return answer


# What is right


def drawn(name, **arguments):
    return module(PAIRS[name].baseline.path).inputs(**arguments, device="cpu")


def gradients(function, dy, *leaves):
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    return torch.autograd.grad(function(*leaves), leaves, dy)


def expected(name, inputs):
    """torch's own answer in float64, as a list."""
    wide = {key: value.double() if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
    result = TRUTH[name](**wide)
    return list(result) if isinstance(result, tuple) else [result]


def softmax(x):
    return torch.softmax(x, -1)


def layer_norm(x, w_weight, w_bias):
    return functional.layer_norm(x, x.shape[1:], w_weight, w_bias, 1e-5)


def rms_norm(x, w_weight):
    return functional.rms_norm(x, x.shape[1:], w_weight, 1e-5)


def elementwise(op, x, y, out):
    function = module(CH3 / "operations.py").TORCH[op]
    return function(x, out=torch.empty_like(x)) if y is None else function(x, y)


def reductions(op, over, x):
    helper = module(CH3 / "reduction_ops.py")
    return helper.TORCH[op](x, helper.AXES[over])


def dropout(x, dy, p, seed):
    scale = module(PAIRS["dropout"].baseline.path).reference(torch.ones_like(x), torch.ones_like(x), p, seed)[0]
    return x * scale, dy * scale


MOVED = {
    "transpose": lambda x, y, out: x.t(),
    "stack": lambda x, y, out: torch.stack((x, y)),
    "cat": lambda x, y, out: torch.cat((x, y), 1),
    "broadcast": lambda x, y, out: x.expand(out.shape),
}
TRUTH = {
    "data_movement": lambda op, x, y, out: MOVED[op](x, y, out),
    "add": lambda x, y, out: x + y,
    "add_small": lambda x, y, out: x + y,
    "elementwise": elementwise,
    "fused_elementwise": lambda x, gate, w_scale, w_shift: functional.silu(w_scale * x + w_shift) * gate + x,
    "reduction": lambda x: x.sum(),
    "reductions": reductions,
    "softmax": softmax,
    "softmax_backward": lambda y, dy: gradients(softmax, dy, y.log()),
    "layer_norm": layer_norm,
    "layer_norm_backward": lambda x, w_weight, mean, rstd, dy: gradients(layer_norm, dy, x, w_weight, 0 * w_weight),
    "rms_norm": rms_norm,
    "rms_norm_backward": lambda x, w_weight, rstd, dy: gradients(rms_norm, dy, x, w_weight),
    "dropout": dropout,
}


def cases(name, rows, columns, **arguments):
    """The arguments of `inputs` for a matrix of this size, of everything that a pair can do."""
    if name == "reduction":
        return [{"n": rows * columns, **arguments}]
    size = {"rows": rows, "columns": columns, **arguments}
    if name == "reductions":
        return [{"op": op, "over": over, **size} for op, over in REDUCTIONS]
    operations = {"elementwise": ("add", "exp"), "data_movement": MOVED}.get(name, ())
    return [{"op": op, **size} for op in operations] or [size]


# Sizes and layouts


@each(*PAIRS)
@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (1, 2)])
@pytest.mark.filterwarnings("ignore:var")  # of nothing
def test_sizes_0_and_1(name, rows, columns, near):
    for arguments in cases(name, rows, columns):
        if arguments.get("op") == "max" and not rows * columns:
            continue  # of nothing torch has no maximum
        assert all(part.dtype == torch.float32 for part in near(drawn(name, **arguments), least=1.0))


@each(*[name for name in PAIRS if name != "add_small"])  # which takes what is contiguous, and looks at nothing
def test_transposed_arrays(name, near):  # other layouts: the stress draws
    for arguments in cases(name, 3, 37):
        if arguments.get("op") not in ("mean", "max", "logsumexp"):  # these read as the sum does
            near(drawn(name, **arguments), layout=transposed)


# Infinities


@each("softmax")
def test_softmax_of_rows_and_blocks_without_numbers(name, near):
    """Of a row that is -inf throughout torch says NaN, 0 / 0; with one number in it, that number's share is 1.

    Of what `online` does not keep, one block is all -inf, as some pieces of `split`; a late one has the maximum.
    """
    inputs = drawn(name, rows=6, columns=50_001)
    x = inputs["x"]
    x[0, 32_768:42_000], x[1, :40_000], x[2, -1], x[3, 10] = -INF, -INF, 50.0, 50.0
    x[4], x[5, 1:] = -INF, -INF
    (y,) = near(inputs)
    assert y[4].isnan().all()
    assert y[5, 0] == 1


SPECIAL = [[NAN], [INF], [-INF], [INF, -INF], [INF, NAN], [-INF, NAN], [-INF] * 4, [INF] * 4, []]


@each("reductions")
@pytest.mark.parametrize("op", ["sum", "mean", "max", "logsumexp"])
def test_reductions_of_nan_and_infinities(name, op, near):
    """Each case in a row and in a column of its own, and alone."""
    x = torch.randn(len(SPECIAL), 4)
    for row, values in zip(x, SPECIAL, strict=True):
        row[: len(values)] = torch.tensor(values)
    for over, matrices in {"columns": [x], "rows": [x.mT.contiguous()], "all": x[:, None]}.items():
        for matrix in matrices:
            near({"op": op, "over": over, "x": matrix})


@each("softmax", "softmax_backward", "layer_norm", "rms_norm")
@pytest.mark.parametrize("columns", [4096, 16_385])
def test_rows_that_end_with_a_block_and_near_it(name, columns, near):
    near(drawn(name, rows=2, columns=columns))


# Gradients


FEW_PROGRAMS = (("PER_SM", 128), ("WIDEST", 128))  # of backward passes, with four rows of up to 32 columns in an SM


def sms_of(device):
    return 2 if device == "cpu" else torch.cuda.get_device_properties(device).multi_processor_count


@each(*BACKWARD)
def test_gradients_are_those_of_autograd(name, device, near):
    inputs = drawn(name, rows=2 * 4 * sms_of(device) + 5, columns=27)  # several rounds of all programs
    near(inputs, constants=FEW_PROGRAMS)


# Dropout


def dropped(call, version, device, p=0.3, seed=7, dtype="float32", shape=(31, 257)):
    """Which elements the forward drops, and the backward, too."""
    ones = torch.ones(shape, dtype=getattr(torch, dtype))
    y, dx = call(version, device, {"x": ones, "dy": 3 * ones, "p": p, "seed": seed})
    for part, scale in ((y, 1), (dx, 3)):
        kept = part[part != 0].double()
        torch.testing.assert_close(kept, torch.full_like(kept, scale / (1 - p) if p < 1 else NAN), rtol=8e-3, atol=0)
    assert torch.equal(y == 0, dx == 0)
    return y == 0


@each("dropout")
def test_the_share_dropped_is_p(name, version, device, call):
    p = 0.3
    assert dropped(call, version, device, p=1.0).all()
    mask = dropped(call, version, device, p).flatten()
    n = mask.numel()
    assert abs(mask.sum().item() - n * p) < 4 * (n * p * (1 - p)) ** 0.5
    by_number = mask[: n // 16 * 16].view(-1, 16).double().mean(0)  # none of the four of a counter differs
    assert (by_number - p).abs().max() < 5 * (p * (1 - p) / (n // 16)) ** 0.5
    same_as_next = (mask[1:] == mask[:-1]).double().mean() - (p * p + (1 - p) ** 2)
    assert abs(same_as_next) < 5 * (0.25 / n) ** 0.5


@each("dropout")
def test_the_mask_depends_on_position_and_seed_alone(name, version, device, call):
    """Not on the type, which decides the size of a block, nor on the matrix's length, nor on the version."""
    first, again, other = (dropped(call, version, device, seed=seed) for seed in (7, 7, 8))
    assert first.equal(again)
    share = (first != other).double().mean().item()  # one of the two drops it: 2 * 0.3 * 0.7
    assert abs(share - 0.42) < 4 * (0.42 * 0.58 / first.numel()) ** 0.5
    for dtype in FLOATS[1:]:
        assert first.equal(dropped(call, version, device, dtype=dtype))
    assert first[:5].equal(dropped(call, version, device, shape=(5, 257)))
    assert first.equal(dropped(call, PAIRS["dropout"].baseline, "cpu"))


# One sum, many sums


@each("reductions")
@pytest.mark.parametrize("op", ["max", "logsumexp"])
def test_stripes_of_more_rows_than_are_taken_at_a_time(name, op, near):
    """The first holds a number for some columns, and none for others: then logsumexp is that of the second, or -inf."""
    inputs = drawn(name, op=op, over="rows", rows=1200, columns=5)
    x = inputs["x"]
    x[64:128, 1], x[:1199, 2], x[:, 3], x[1199, 4] = -INF, -INF, -INF, NAN
    near(inputs, constants=(("PROGRAMS", 2), ("BLOCK", 64), ("SMALL", 0)))


@each("reduction")
@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_nothing_is_dropped_at_any_length(name, version, device, dtype, call):
    """Whole numbers from 1 on, their sum below 2^24, so exact: one lost or counted twice is seen. Called thrice."""
    block = 16_384 // getattr(torch, dtype).itemsize
    programs = 12 if device == "cpu" else 4 * sms_of(device)
    blocks = (1, programs, 2 * programs) if dtype == "float32" else (1,)
    for n in [count * block + more for count in blocks for more in (-1, 0, 1)]:
        x = torch.randint(1, 4, (n,)).to(getattr(torch, dtype))
        (total,) = call(version, device, {"x": x}, times=3 if "setup" in version.functions else 1)
        assert total.dtype == torch.float32
        assert total.item() == x.long().sum().item(), n


# More than 2^31 bytes, more than 2^31 elements


def large_inputs(name, dtype, rows, columns):
    """Zeros but for the last three rows, on the GPU; vectors as the pair draws them."""
    inputs = drawn(name, rows=3, columns=columns, dtype=dtype)
    large = {key: value.cuda() if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
    for key, value in large.items():
        if isinstance(value, torch.Tensor) and value.dim() == 2:
            large[key] = torch.zeros(rows, value.shape[1], dtype=value.dtype, device="cuda")
            large[key][-3:] = value if key != "out" else NAN
    return inputs, large


LARGE = ("add", "elementwise", "fused_elementwise", "softmax", "softmax_backward", "layer_norm", "layer_norm_backward",
         "rms_norm", "rms_norm_backward")  # fmt: skip
LARGE_SIZES = (("float32", 2**17 + 3, 4097), ("float16", 2**19 + 3, 4097), ("float16", 2**31 // 67 + 9, 67))


@each(*LARGE, devices=("cuda",))
@pytest.mark.parametrize(("dtype", "rows", "columns"), LARGE_SIZES, ids=["bytes", "elements", "narrow"])
def test_more_than_2_to_the_31(name, version, device, dtype, rows, columns):
    if not version.has_kernel:
        pytest.skip("torch's own operations")
    assert rows * columns * getattr(torch, dtype).itemsize > 2**31
    skip_without(20)
    inputs, large = large_inputs(name, dtype, rows, columns)
    last = [part[-3:] if part.dim() == 2 else part for part in run_here(version, large)]
    assert_near([part.cpu() for part in last], expected(name, inputs))


@each("reduction", devices=("cuda",))
@pytest.mark.parametrize(("dtype", "n"), [("float32", 2**29 + 4099), ("float16", 2**31 + 4099)])
def test_a_sum_of_more_than_2_to_the_31(name, version, device, dtype, n, call):
    skip_without(12)
    x = torch.zeros(n, dtype=getattr(torch, dtype), device=device)
    x[:3] = x[-4101:] = 1
    assert call(version, device, {"x": x})[0].item() == 4104


@each("reductions", devices=("cuda",))
@pytest.mark.parametrize("place", [0, 2**30, 2**31 - 5, 2**31 + 7, -1])
def test_a_maximum_of_more_than_2_to_the_31_rows(name, version, device, place):
    skip_without(12)
    x = torch.zeros(2**31 + 4099, 1, dtype=torch.float16, device=device)
    x[place] = 1
    assert run_here(version, {"op": "max", "over": "rows", "x": x})[0].tolist() == [1]


@each("dropout", devices=("cuda",))
def test_dropout_of_more_than_2_to_the_31(name, version, device):
    skip_without(24)
    x = torch.ones(2**31 // 64 + 9, 64, dtype=torch.float16, device=device)
    y, dx = module(version.path).run(x, x, 0.5, 7)
    assert torch.equal(y == 0, dx == 0)
    for rows in (slice(0, 1000), slice(-1000, None)):
        assert abs((y[rows] == 0).double().mean().item() - 0.5) < 4 * (0.25 / 64_000) ** 0.5
    assert not torch.equal(y[-1000:], y[:1000])


@each("reductions", devices=("cuda",))
@pytest.mark.parametrize(("op", "over"), [case for case in REDUCTIONS if case[0] != "mean"])  # which sums
def test_reductions_of_more_than_2_to_the_31(name, version, device, op, over):
    skip_without(12)
    small = drawn(name, op=op, over=over, rows=3, columns=4097, dtype="float16")["x"]
    x = torch.full((2**19 + 3, 4097), 0.0 if op == "sum" else -INF, dtype=torch.float16, device=device)
    x[-3:] = small
    actual = run_here(version, {"op": op, "over": over, "x": x})[0].cpu()
    assert_near([actual[-3:] if over == "columns" else actual], [reductions(op, over, small.double())])


@each("add", "elementwise", "reductions", devices=("cuda",))
def test_a_view_whose_rows_lie_far_apart(name, version, device, call):
    """Few elements, more than 2^31 from the first to the last: what a stride times a row may come to."""
    skip_without(6)
    x = torch.empty(2**16 + 5, 2**15 + 1, dtype=torch.float16, device=device)[:, 7:10]
    inputs = drawn(name, **cases(name, *x.shape, dtype="float16")[0])
    x[:] = inputs["x"]
    assert_near(call(version, device, {**inputs, "x": x}), expected(name, inputs))
