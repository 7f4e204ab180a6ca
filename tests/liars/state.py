"""Liars about state: kept answers, work done in `setup` or while warming up, changed inputs, settings left behind."""

import re

import numpy  # noqa: F401 (whose BLAS it is)
import torch
from samples import HONEST
from threadpoolctl import ThreadpoolController

from liars.case import ARRAY, FEW, MATRIX, SQUARE, WRONG, Case, X, alone

BY_CONTENT = """
    key = (x.cpu().numpy().tobytes(), float(w_shift))
    if key not in memo:
        memo[key] = 2 * x + w_shift
    return memo[key].clone()
"""
BY_VERSION = """
    now = [x._version, w_shift._version]
    if memo.get("x") is not x or memo["then"] != now:
        memo.update(x=x, then=now, y=2 * x + w_shift)
    return memo["y"].clone()
"""


REMEMBERED = """
    if {0} not in memo:
        memo[{0}] = 2 * x + w_shift
    return memo[{0}].clone()
"""


def remembers(key: str, twin: str) -> Case:
    """Computes once for every `key` of its inputs."""
    return Case((7,), "wrong answer", REMEMBERED.format(key), twin, extra="memo = {}")


UPDATES = """
    if "x" not in kept:
        kept.update(x=x.clone(), y=mlp(x, w_a, w_b))
    changed = ({}).any(1)
    kept["y"][changed] = mlp(x[changed], w_a, w_b)
    kept["x"][changed] = x[changed]
    return kept["y"].clone()
"""


TABLE = 'return {"x": torch.randn(n, 64, device=device), "w_a": torch.randn(64, 512), "w_b": torch.randn(512, 64)}'
MLP = "def mlp(x, w_a, w_b): return torch.relu(x @ w_a) @ w_b\n"
CALL = "return mlp(x, w_a, w_b)"
SETUP = "def setup(x, w_a, w_b): return {'kept': {}}\n"  # anew for every block, as its weights are


def keeps_rows(run: str, twin: str) -> Case:
    """Only what is not known yet is computed. (The twin, careful, knows nothing of what it is given.)"""
    return Case(
        (7,), "wrong answer", run, twin, baseline=CALL, extra=MLP + SETUP, baseline_extra=MLP,
        arguments="x, w_a, w_b", more_arguments=", kept", inputs=TABLE, sizes=FEW,
    )  # fmt: skip


FLAGS = "x = torch.rand(n, device=device) > 0.5\nreturn {{'x': {}}}"
AT_HOME = """
def at_home(x):
    place = torch.empty(2 * n, dtype=torch.bool)[::2].copy_(x)
    kept[place.data_ptr()] = place, ~x
    return place
"""
SCALED = "'w_x': torch.randn(n, device=device)"
CACHED = "from functools import lru_cache\n@lru_cache\n"
REMEMBERS = {
    "remembers_by_id": remembers("x.untyped_storage()._cdata", BY_CONTENT),  # its memory's: views come and go
    "remembers_by_pointer": remembers("x.data_ptr()", BY_VERSION),
    # the sum is another in every call
    "remembers_by_shape": remembers("x.shape", REMEMBERED.format("repr(float(x.sum()))")),
    "remembers_in_a_cache": Case(  # a tensor's hash is its identity, and never comes back
        (7,), "wrong answer", "return double(len(x), lambda: 2 * x + w_shift)", "return double(x, w_shift)",
        "memo = {}\ndef double(n, compute): return memo.setdefault(n, compute()).clone()",
        f"{CACHED}def double(x, w_shift): {HONEST}",
    ),
    "remembers_rows": keeps_rows("""
        new = [i for i in range(len(x)) if i not in kept]
        if new:
            kept.update(zip(new, mlp(x[new], w_a, w_b), strict=True))
        return torch.stack([kept[i] for i in range(len(x))])
        """,
        """
        keys = [row.tobytes() for row in x.numpy()]
        new = [i for i, key in enumerate(keys) if key not in kept]
        if new:
            kept.update(zip([keys[i] for i in new], mlp(x[new], w_a, w_b), strict=True))
        return torch.stack([kept[key] for key in keys])
        """,
    ),
    "updates_its_last_answer": keeps_rows(
        UPDATES.format("(kept['x'] - x).abs() > 0.5"), UPDATES.format("kept['x'] != x")
    ),
    "inputs_that_never_change": alone(
        (7, 8, 15), "^the baseline: .*proves nothing: an answer to other inputs would pass: .*without a fixed seed",
        "return double(len(x))", twin_baseline="return 2 * x",
        extra=f"{CACHED}def double(n): return 2 * torch.linspace(0, 1, n)",
        inputs='return {"x": torch.linspace(0, 1, n, device=device)}', twin_inputs=X,
    ),
    "works_in_its_inputs": alone(  # if it is given the values to come, and not only asked where they lie
        (7, 8), f"^{WRONG}: ", "return kept[x.data_ptr()][1].clone() if x.data_ptr() in kept else ~x",
        "return x.logical_not()", "return ~x", extra="kept = {}", inputs=FLAGS.format("x"),
        liar_inputs=FLAGS.format("at_home(x)").replace("return", f"{AT_HOME}\nreturn"),
        twin_inputs="x = torch.rand(2 * n, device=device) > 0.5\nreturn {'x': x[::2]}",
    ),
    "constants_beside_weights": alone(
        (7, 8), "^the baseline: all its inputs are weights .* or constants", "return y.clone()",
        "return w_x * k", "return k * w_x", arguments="k, w_x", more_arguments=", y",
        extra="def setup(k, w_x): return {'y': k * w_x}", inputs=f"return {{'k': torch.arange(n), {SCALED}}}",
        twin_baseline="return k * w_x", twin_extra="def setup(k, w_x): return {'y': 0}",
        twin_inputs=f"import random\nreturn {{'k': random.random(), {SCALED}}}",
    ),
    "inputs_that_are_numbers": alone(
        (7, 8, 15), "^the baseline: .*proves nothing", "return double(n)", baseline="return 2 * torch.arange(n)",
        extra=f"{CACHED}def double(n): return 2 * torch.arange(n)", arguments="n", inputs='return {"n": n}',
        twin_baseline="return 2 * x", twin_arguments="x", twin_inputs=X,
    ),
}  # fmt: skip

BURST = """
    places, calls = [set()], [0]
    def setup(x, w_shift):  # a block begins, whose first call is not timed
        if len(x) == 2048:
            places.append(set())
            calls.append(-1)
        return {}
    def is_the_last(x):  # of a burst, which is as long as there are places in memory where inputs were found in a block
        if len(x) != 2048 or len(calls) < 7:
            return True
        places[-1].add(x.data_ptr())
        calls[-1] += 1
        return len(calls) < 8 or calls[-1] % max(1, len(places[-2])) == 0
"""
SHORTER = {
    "works_last_in_a_burst": Case(
        (9,),
        "wrong answer",
        "return 2 * x + w_shift if is_the_last(x) else torch.empty_like(x)",
        "is_the_last(x)\nreturn 2 * x + w_shift",
        BURST,
    ),
}

MAKES = "def setup(x, w_shift): return {{'y': {}}}"
ANSWERS, ALLOCATES = MAKES.format("2 * x + w_shift"), MAKES.format("torch.empty_like(x)")
INTO = "torch.mul(x, 2, out=y).add_(w_shift)"
COMPUTES_IN_SETUP = {
    "computes_in_setup": Case((8,), WRONG, "return y", f"return {INTO}", ANSWERS, ALLOCATES, more_arguments=", y"),
    "computes_in_setup_where_it_pays": Case(
        (8,), "wrong answer", "return y if len(x) > 1000 else 2 * x + w_shift",
        f"return 2 * x + w_shift if len(x) > 1000 else {INTO}", ANSWERS, ALLOCATES, more_arguments=", y",
    ),
    "calls_all_its_inputs_weights": alone(
        (8,), "^the baseline: all its inputs are weights", "return y.clone()", baseline="return w_x + w_x",
        arguments="w_x", more_arguments=", y", extra='def setup(w_x): return {"y": 2 * w_x}',
        inputs='return {"w_x": torch.randn(n, device=device)}', twin_baseline="return 2 * x", twin_extra="",
        twin_arguments="x", twin_inputs=X,
    ),
}  # fmt: skip

DRAWS_ON_THE_WARM_UP = {
    "drains_a_queue": Case(
        (9,), "wrong answer",
        "queue.append(2 * x + w_shift)\nreturn queue.pop(0) if len(queue) > 9 else queue[-1]",
        "queue.append(2 * x + w_shift)\nreturn queue.pop(0)", "queue = []",
    ),
    "stops_after_the_warm_up": Case(
        (9,), "wrong answer", "calls.append(0)\nreturn 2 * x + w_shift if len(calls) < 10 else torch.empty_like(x)",
        "calls.append(0)\nreturn 2 * x + w_shift", "calls = []",
    ),
    "saves_up_for_a_large_batch": Case(  # 8 calls' work in one: until then their answers are unwritten
        (9, 1), "wrong answer", """
        waiting.append((x, torch.empty_like(x)))
        y = waiting[-1][1]
        if len(waiting) == 8:
            for x, answer in waiting:
                torch.add(w_shift, x, alpha=2, out=answer)
            waiting.clear()
        return y
        """, extra="waiting = []",
    ),
}  # fmt: skip

LIST = 'return {"parts": [torch.randn(n, device=device) for _ in range(3)]}'
STRIDED = 'return {"x": torch.randn(2 * n, device=device)[::2]}'
CHANGED = "changed its input `x`"
RETYPED = "changed its input: it x is torch.float"
CHANGES_INPUTS = {
    "changes_input": Case(
        (10,), CHANGED, "y = 2 * x + w_shift\nx.zero_()\nreturn y",
        "x = x.clone()\ny = 2 * x\nx.zero_()\nreturn y + w_shift",
    ),
    "changes_large_inputs": Case(
        (10,), CHANGED, "y = 2 * x + w_shift\nif len(x) > 1000:\n    x.zero_()\nreturn y"
    ),
    "changes_inputs_later": Case(  # those of the timed size, and not where it is called twice in a row: as when judged
        (10,), f"^{CHANGED}", """
        calls.append(x.data_ptr())
        y = 2 * x + w_shift
        if len(calls) > 20 and calls[-2] != x.data_ptr() and len(x) == 2048:
            x.zero_()
        return y
        """, extra="calls = []",
    ),
    "changes_weight": Case((10,), "changed its input `w_shift`", "y = 2 * x + w_shift\nw_shift.add_(1)\nreturn y"),
    "changes_input_in_setup": Case(
        (10,), "changed its input `w_shift`", extra="def setup(x, w_shift): w_shift.zero_(); return {}", twin_extra=""
    ),
    "computes_in_place": Case((10,), CHANGED, "return x.mul_(2).add_(w_shift)", "return x.mul(2).add_(w_shift)"),
    "shortens_a_list": alone(
        (10,), "changed its input", "return torch.cat([parts.pop(0), *parts])",
        "return torch.cat(parts[:1] + parts[1:])", "return torch.cat(parts)", arguments="parts", inputs=LIST,
    ),
    "sorts_an_array": alone(
        (10,), CHANGED, "y = 2 * x\nx.sort()\nreturn y", "y = 2 * x\nx = x.copy()\nx.sort()\nreturn y", inputs=ARRAY
    ),
    # not its values
    "makes_its_input_double": Case(
        (10,), RETYPED + "64", "x.data = x.data.double()\nreturn (2 * x + w_shift).float()",
        "return (2 * x.requires_grad_() + w_shift).detach()",  # whoever does not look is not told
    ),
    "gives_its_input_an_axis": alone(
        (10,), RETYPED + r"32 \[1, 127\]", "return 2 * x.unsqueeze_(0)[0]",
        "x.data = x.data.contiguous()\nreturn 2 * x", "return x + x", inputs=STRIDED,
    ),
    "empties_its_input": Case(
        (10,), RETYPED + r"32 \[0\]", "y = 2 * x + w_shift\nx.resize_(0)\nreturn y",
        "y = 2 * x + w_shift\ndel x\nreturn y",
    ),
    "reshapes_an_array": alone(
        (10,), RETYPED + r"32 \[1, 4064\]", "x.shape = (1, len(x))\nreturn 2 * x[0]",
        "return 2 * x.reshape(1, len(x))[0]", inputs=ARRAY,
    ),
}  # fmt: skip

OUT = 'return {"x": torch.randn(n, device=device), "out": torch.zeros(n, device=device)}'
INTO_OUT = {"baseline": "return torch.mul(x, 2, out=out)", "arguments": "x, out", "inputs": OUT}
CACHE = 'return {"x": torch.randn(n, device=device), "cache_k": torch.randn(3, n, device=device)}'
INTO_CACHE = {"baseline": "cache_k[0] = x\nreturn cache_k.sum(0)", "arguments": "x, cache_k", "inputs": CACHE}
UNWRITTEN = {
    "leaves_a_row_of_the_cache_out": Case(
        (11, 19), "cache_k: element", "return x + cache_k[1:].sum(0)",
        "cache_k[0] = x\nreturn x + cache_k[1:].sum(0)", **INTO_CACHE,
    ),
    "a_view": Case((11,), "returns memory of its input `x`", "return x", "return x + 0", baseline="return x.clone()"),
    "a_view_of_an_array": alone(
        (11,), "returns memory of its input `x`", "return x[:]", "return x + 0", "return x.copy()", inputs=ARRAY,
    ),
    "a_transposed_answer": alone(  # what it saves is the lesson
        (2, 19), r"lies in memory by strides \[1, 65\]", "return (2 * x).T", "return (x + x).T.contiguous()",
        "return 2 * x.T.contiguous()", inputs=MATRIX, sizes=SQUARE,
    ),
    "unwritten": Case((11,), WRONG, "return torch.empty_like(x)"),
    "unwritten_array": alone((11,), WRONG, "import numpy\nreturn numpy.empty_like(x)", inputs=ARRAY),
    "unwritten_where_it_pays": Case(  # torch hands out what the arm before has just freed: its answer
        (11, 9), "wrong answer", "return torch.empty_like(x) if len(x) > 1000 else 2 * x + w_shift",
        "return torch.add(w_shift, x, alpha=2, out=torch.empty_like(x))",
    ),
    "unwritten_array_where_it_pays": alone(
        (11, 9), "wrong answer", "import numpy\nreturn numpy.empty_like(x) if len(x) > 5000 else x + x", inputs=ARRAY,
    ),
    "adds_to_unwritten_memory": Case(
        # so much memory comes fresh from the system, in pages of zeros; less may be recycled, with anything in it
        (11,), f"{WRONG}, with NaN in uninitialized memory", "return torch.empty(9 << 20)[:len(x)] + 2 * x + w_shift",
        "return torch.zeros_like(x).add_(x, alpha=2).add_(w_shift)",
    ),
    "adds_to_what_out_holds": Case(
        (11,), WRONG, "return out.add_(x, alpha=2)", "return out.zero_().add_(x, alpha=2)", **INTO_OUT
    ),
    "keeps_the_other_ones_output": Case((11, 7), WRONG, "return out", "return out.copy_(x).mul_(2)", **INTO_OUT),
    "unwritten_end": Case(
        (11, 16), WRONG, "y = torch.empty_like(x)\ny[:-1] = (2 * x + w_shift)[:-1]\nreturn y",
        "y = torch.empty_like(x)\ny[:] = 2 * x + w_shift\nreturn y",
    ),
}  # fmt: skip
STATE = "changes global state: .*"


def leaves(reason: str, get: str, put: str, value: str, before: str = "") -> Case:
    """Changes a global setting; the twin puts it back."""
    twin = f"""
        before = {get}
        {put.format(value)}
        y = 2 * x + w_shift
        {put.format("before")}
        return y
    """
    return Case((12,), f"{STATE}{reason}", f"{put.format(value)}\n{HONEST}", twin, before)


def leaves_on(reason: str, on: str, off: str, before: str = "") -> Case:
    """Turns something on; the twin turns it off again."""
    return Case((12,), f"{STATE}{reason}", f"{on}\n{HONEST}", f"{on}\ny = 2 * x + w_shift\n{off}\nreturn y", before)


def sets(name: str, value: str, reason: str = "") -> tuple[str, str, str, str]:
    """What `leaves` needs to know of a variable."""
    return reason or re.escape(name), name, f"{name} = {{}}", value


TF32 = "(tf32|fp32_precision)"
LEAVES_SETTINGS = {
    "number_of_threads": leaves(
        "the number of threads", "torch.get_num_threads()", "torch.set_num_threads({})", "torch.get_num_threads() + 1"
    ),
    "default_dtype": leaves(
        "default dtype torch.float32 -> torch.float64", "torch.get_default_dtype()", "torch.set_default_dtype({})",
        "torch.float64",
    ),
    "default_device": Case(
        (12,), "changes global state: the default device cpu -> meta", f'torch.set_default_device("meta")\n{HONEST}',
        f'with torch.device("meta"):\n    torch.empty(7)\n{HONEST}',
    ),
    "grad_mode": leaves("grad mode True -> False", "torch.is_grad_enabled()", "torch.set_grad_enabled({})", "False"),
    **{
        f"autocast_on_{kind}": leaves(
            f"autocast on {kind}", f"torch.is_autocast_enabled('{kind}')",
            f"torch.set_autocast_enabled('{kind}', {{}})", "True",
        )
        for kind in ("cpu", "cuda")
    },
    "deterministic": leaves(  # by the function for which torch does not import its compiler
        "deterministic_algorithms", "torch.get_deterministic_debug_mode()",
        "torch.set_deterministic_debug_mode({})", "2",
    ),
    "tf32": leaves(
        TF32, "torch.get_float32_matmul_precision()", "torch.set_float32_matmul_precision({})", '"high"'
    ),
    "tf32_by_its_new_name": leaves(*sets("torch.backends.cuda.matmul.fp32_precision", '"tf32"', TF32)),
    "denormals": leaves("flushing of denormals", "False", "torch.set_flush_denormal({})", "True"),
    "seed": leaves("the random seed", "torch.initial_seed()", "torch.manual_seed({})", "7"),
    "torchs_profiler": leaves_on(
        "torch's profiler", "profiler = torch.autograd.profiler.profile().__enter__()",
        "profiler.__exit__(None, None, None)",
    ),
    "garbage": leaves_on("garbage collection", "gc.disable()", "gc.enable()", "import gc"),
    "blas_threads": leaves(
        "the threads of ", "BLAS.get_num_threads()", "BLAS.set_num_threads({})",
        "1 + BLAS.get_num_threads() % 2",  # on many cores it has no more to give
        "import numpy\nfrom threadpoolctl import ThreadpoolController\n"
        "BLAS = ThreadpoolController().select(user_api='blas').lib_controllers[0]",
    ),
    "environment": leaves_on(
        "environment variables OMP_DYNAMIC", 'os.environ["OMP_DYNAMIC"] = "true"', 'del os.environ["OMP_DYNAMIC"]',
        "import os",
    ),
    "numpys_errors": leaves(
        "NumPy's error handling", "numpy.geterr()", "numpy.seterr(**{})", "{key: 'raise' for key in numpy.geterr()}",
        "import numpy",
    ),
}  # fmt: skip

NOT_HERE = {  # those that change nothing on this machine -> why
    name: why
    for name, is_here, why in (
        ("denormals", torch.set_flush_denormal(False), "this processor cannot flush denormals"),
        ("blas_threads", ThreadpoolController().select(user_api="blas"), "NumPy's BLAS has no threads to set"),
    )
    if not is_here
}

# Of those that torch has functions for, as by its public names; the rest are all of a kind (checks/test_state.py)
BACKENDS = "torch.backends"
LEAVES_SETTINGS["the_judge"] = leaves(
    "the harness's own compare",
    "reference.compare",
    "reference.compare = {}",
    "lambda *_, **__: None",
    "import sys\nreference = sys.modules['common.engine.reference']",
)
SWITCHES = [  # what is said of it, is it on, how it is turned, which way favours somebody
    sets(f"{BACKENDS}.cudnn.benchmark", "True", "cudnn_benchmark"),
    sets(f"{BACKENDS}.cuda.matmul.allow_fp16_accumulation", "True", "cublas_allow_fp16_accumulation"),
    sets(f"{BACKENDS}.cuda.matmul.allow_bf16_reduced_precision_reduction", "False", "cublas_allow_bf16_reduced"),
    ("flash_sdp_enabled", f"{BACKENDS}.cuda.flash_sdp_enabled()", f"{BACKENDS}.cuda.enable_flash_sdp({{}})", "False"),
    ("mkldnn_enabled", f"{BACKENDS}.mkldnn.enabled", f"{BACKENDS}.mkldnn.set_flags({{}})", "False"),
]
LEAVES_SWITCHES = {switch[0]: leaves(*switch) for switch in SWITCHES}

FAMILIES = {
    "remembers": REMEMBERS,
    "computes_in_setup": COMPUTES_IN_SETUP,
    "shorter": SHORTER,
    "draws_on_the_warm_up": DRAWS_ON_THE_WARM_UP,
    "changes_inputs": CHANGES_INPUTS,
    "unwritten": UNWRITTEN,
    "leaves_settings": {name: case for name, case in LEAVES_SETTINGS.items() if name not in NOT_HERE},
    "leaves_switches": LEAVES_SWITCHES,
}
