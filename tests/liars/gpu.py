"""Liars that need a GPU: streams, graphs, CUDA's clocks, TF32, CuPy's memory, kernels compiled while the clock runs."""

from dataclasses import replace

from samples import HONEST

from liars.answer import COST, PRODUCT
from liars.case import WRONG, Case, alone

SIZES = {"check": {"n": 127}, "default": {"n": 1 << 22}}  # 16 MiB a vector
SQUARE = {"check": {"n": 128}, "check/odd": {"n": 65}, "default": {"n": 1024}}
CUPY = 'import cupy\nreturn {"x": cupy.random.standard_normal(n, dtype=cupy.float32)}'

SIDE = "def setup(x, w_shift): return {'side': torch.cuda.Stream()}"
FORK, JOIN = "side.wait_stream(torch.cuda.current_stream())", "torch.cuda.current_stream().wait_stream(side)"
ASIDE = """
y = torch.empty_like(x)
{}
with torch.cuda.stream(side):
    torch.add(w_shift, x, alpha=2, out=y)
{}
return y
"""
LAUNCHES = (
    "import triton\n@triton.jit\ndef kernel(): pass"  # whose file says that it has one: its programs are few then
)
DROPS = """
sms = torch.cuda.get_device_properties(x.device).multi_processor_count
y = torch.zeros_like(x)
whole = len(x) if len(x) < sms else len(x) // sms * sms
y[:whole] = 2 * x[:whole]
return y
"""
OTHER = "import cupy\ndef setup(x): return {'side': cupy.cuda.Stream(non_blocking=True)}"
CUPY_ASIDE = """
here = cupy.cuda.get_current_stream()
{}
with side:
    y = 2 * x
{}
return y
"""
CUPY_FORK, CUPY_JOIN = "side.wait_event(here.record())", "here.wait_event(side.record())"


def aside(reason: str, fork: str, join: str) -> Case:
    """Work on a stream of torch's that does not wait, or is not waited for."""
    run, twin = ASIDE.format(fork, join), ASIDE.format(FORK, JOIN)
    return Case((1,), reason, run, twin, SIDE, more_arguments=", side", sizes=SIZES)


def aside_in_cupy(reason: str, fork: str, join: str) -> Case:
    run, twin = CUPY_ASIDE.format(fork, join), CUPY_ASIDE.format(CUPY_FORK, CUPY_JOIN)
    return alone(
        (1,), reason, run, twin, "return x + x", extra=OTHER, more_arguments=", side", inputs=CUPY, sizes=SIZES
    )


LATE, EARLY = "on a stream that is not joined", "waits for nothing on the timed stream"
OR_WRONG = "|wrong answer"  # answers are judged before a call is traced: what nobody waits for may be read too soon
# Not so the answers of timed calls: the clock waits for all streams
WHILE_JUDGED = "if len(x) % 2 or torch.get_deterministic_debug_mode():\n    {}"
OR_TRACED = WHILE_JUDGED.replace(":", " or torch.autograd._profiler_enabled():")
LONGER = {**SIZES, "default": {"n": 1 << 26}}  # 0.1 ms for those who do not join: longer than a host takes to look
STREAMS = {
    "never_joined": aside(LATE + OR_WRONG, FORK, ""),
    "never_waits": aside(EARLY + OR_WRONG, "", JOIN),  # and so runs before the clock is started, as the L2 is flushed
    "joins_no_more": replace(aside("works on for", FORK, OR_TRACED.format(JOIN)), sizes=LONGER),
    "waits_no_more": aside(EARLY, WHILE_JUDGED.format(FORK), JOIN),
    "never_joined_in_cupy": aside_in_cupy(LATE + OR_WRONG, CUPY_FORK, ""),
    "never_waits_in_cupy": aside_in_cupy(EARLY + OR_WRONG, "", CUPY_JOIN),
    "stays_on_another_stream": Case(
        (12,), "changes global state: .*the current stream", f"{FORK}\ntorch.cuda.set_stream(side)\n{HONEST}",
        ASIDE.format(FORK, JOIN), SIDE, more_arguments=", side", sizes=SIZES,
    ),
}  # fmt: skip

CAPTURE = """
    def setup(x, w_shift):
        static, y, graph = torch.empty_like(x), torch.empty_like(x), torch.cuda.CUDAGraph()
        torch.mul(static, 2, out=y).add_(w_shift)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            {}
        return {{"static": static, "y": y, "graph": graph}}
"""
WHOLE = "torch.mul(static, 2, out=y).add_(w_shift)"
REPLAY = "static.copy_(x)\ngraph.replay()\nreturn y"


def graph(captured: str, run: str = REPLAY) -> Case:
    extras = CAPTURE.format(captured), CAPTURE.format(WHOLE)
    return Case((5,), WRONG, run, REPLAY, *extras, more_arguments=", static, y, graph", sizes=SIZES)


GRAPHS = {
    "a_graph_of_a_part": graph("torch.mul(static, 2, out=y)"),
    "a_graph_of_nothing": graph("torch.zeros(1, device=x.device)"),  # nothing of it: an empty one is warned of
    "a_graph_of_other_inputs": graph(WHOLE, "graph.replay()\nreturn y"),
}

TF32 = """
before = torch.backends.cuda.matmul.fp32_precision
torch.backends.cuda.matmul.fp32_precision = "{}"
y = x @ w_m
torch.backends.cuda.matmul.fp32_precision = before
return y
"""
FILLED = {
    "tf32_for_fp32": Case(
        (17,), "wrong answer", TF32.format("tf32"), TF32.format("ieee"), baseline="return x @ w_m",
        arguments="x, w_m", inputs=PRODUCT.format(""), sizes=SQUARE,
    ),
    "drops_what_is_left_for_its_programs": alone((16,), WRONG, DROPS, extra=LAUNCHES, sizes=SIZES),
    "unwritten_in_cupy": alone(
        (11,), "wrong answer", "return cupy.empty_like(x)", extra="import cupy", inputs=CUPY, sizes=SIZES,
    ),
    "adds_to_unwritten_memory_in_cupy": alone(
        (11,), f"{WRONG}, with NaN in uninitialized memory",
        # CuPy's pool gives it what `setup` has just given back
        "return cupy.empty(9 << 20, dtype=cupy.float32)[:len(x)] + 2 * x",
        "y = cupy.zeros_like(x)\ny += 2 * x\nreturn y",
        extra="import cupy\ndef setup(x): cupy.zeros(9 << 20, dtype=cupy.float32); return {}", twin_extra="import cupy",
        inputs=CUPY, sizes=SIZES,
    ),
}  # fmt: skip

KERNEL = """
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)
"""
TUNE = "@triton.autotune([triton.Config({{'BLOCK': 1 << k}}) for k in (9, 10)], key=['{}'], do_bench=briefly)"
BRIEFLY = """
def briefly(kernel, quantiles):
    return triton.testing.do_bench(kernel, warmup=1, rep=1, quantiles=quantiles)
"""
DENSE = "x = x.contiguous()\ny = torch.empty_like(x)\n"
LAUNCH = DENSE + "double[(triton.cdiv(len(x), 1024),)](x, y, len(x), BLOCK=1024)\nreturn y"
TUNED = (
    DENSE
    + "calls.append(0)\n"
    + ("double[lambda meta: (triton.cdiv(len(x), meta['BLOCK']),)](x, y, len(x), calls=len(calls))\nreturn y")
)
TRITON = "import triton\nimport triton.language as tl\n"


def tuned(key: str) -> str:
    """A kernel that is tuned for every value of `key`."""
    kernel = KERNEL.replace("n, BLOCK", "n, calls, BLOCK").replace(
        "@triton.jit", f"{TUNE.format(key)}\n@triton.jit(do_not_specialize=['calls'])"
    )
    return f"{TRITON}calls = []\n{BRIEFLY}{kernel}"


def compiles(reason: str, run: str, twin: str, extra: str, twin_extra: str) -> Case:
    oracle = "def reference(x): return x + x"
    extras = {"extra": extra, "twin_extra": twin_extra, "baseline_extra": oracle}
    return alone((4,), f"{reason} a Triton kernel.* inside the timed region", run, twin, sizes=SIZES, **extras)


ON_THE_CLOCK = {
    "defines_its_kernel_in_every_call": compiles("compiles", KERNEL + LAUNCH, LAUNCH, TRITON, TRITON + KERNEL),
    "tunes_in_every_call": compiles("(tunes|compiles)", TUNED, TUNED, tuned("calls"), tuned("n")),
}

LIMITS = {  # no GPU's memory is as fast as that
    "dram_bytes": {"measured": 4e12, "datasheet": 20e12, "how": "", "source": "a datasheet"}
}
IMPOSSIBLE = {
    "costs_more_than_can_be": Case(
        (24,), "^the baseline: .* below the physical limit: .* dram bytes", extra=COST.format(100),
        baseline_extra=COST.format(100), twin_extra=COST.format(2), twin_baseline=HONEST,
        twin_baseline_extra=COST.format(2), sizes=SIZES,
    ),
}  # fmt: skip

FAMILIES = {
    "streams": STREAMS,
    "graphs": GRAPHS,
    "filled": FILLED,
    "on_the_clock": ON_THE_CLOCK,
    "impossible": IMPOSSIBLE,
}
