"""Liars about state: kept answers, work done in `setup` or while warming up, changed inputs, settings left behind."""

import os
import re
import signal

import numpy  # noqa: F401 (whose BLAS it is)
import torch
from samples import HONEST
from threadpoolctl import ThreadpoolController

from liars.case import ARRAY, MATRIX, SQUARE, Case, X

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
    return Case((7,), "wrong answer", REMEMBERED.format(key), twin, extra="memo = {}", twin_extra="memo = {}")


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


def keeps_rows(reason: str, run: str, twin: str) -> Case:
    """Only what is not known yet is computed. (The twin, careful, knows nothing of what it is given.)"""
    return Case(
        (7,), reason, run, twin, baseline=CALL, extra=MLP + SETUP, twin_extra=MLP + SETUP, baseline_extra=MLP,
        arguments="x, w_a, w_b", more_arguments=", kept", inputs=TABLE,
        sizes={"check": {"n": 127}, "default": {"n": 256}},
    )  # fmt: skip


REMEMBERS = {
    "remembers_by_id": remembers("x.untyped_storage()._cdata", BY_CONTENT),  # its memory's: views come and go
    "remembers_by_pointer": remembers("x.data_ptr()", BY_VERSION),
    "remembers_by_shape": remembers("x.shape", REMEMBERED.format("float(x[0])")),  # which is another in every call
    "remembers_in_a_cache": Case(  # a tensor's hash is its identity, and never comes back
        (7,), "wrong answer", "return double(len(x), lambda: 2 * x + w_shift)",
        extra="memo = {}\ndef double(n, compute): return memo.setdefault(n, compute()).clone()",
        twin="return double(x, w_shift)",
        twin_extra=f"from functools import lru_cache\n@lru_cache\ndef double(x, w_shift): {HONEST}",
    ),
    "remembers_rows": keeps_rows(
        "wrong answer", """
        new = [i for i in range(len(x)) if i not in kept]
        if new:
            kept.update(zip(new, mlp(x[new], w_a, w_b), strict=True))
        return torch.stack([kept[i] for i in range(len(x))])
        """,
        twin="""
        keys = [row.tobytes() for row in x.numpy()]
        new = [i for i, key in enumerate(keys) if key not in kept]
        if new:
            kept.update(zip([keys[i] for i in new], mlp(x[new], w_a, w_b), strict=True))
        return torch.stack([kept[key] for key in keys])
        """,
    ),
    "updates_its_last_answer": keeps_rows(
        "wrong answer", UPDATES.format("(kept['x'] - x).abs() > 0.5"), UPDATES.format("kept['x'] != x")
    ),
    "inputs_that_never_change": Case(
        (7, 8, 15), "^the baseline: .*proves nothing", "return double(len(x))", twin="return x + x",
        extra="from functools import lru_cache\n@lru_cache\ndef double(n): return 2 * torch.linspace(0, 1, n)",
        baseline="return 2 * x", twin_baseline="return 2 * x", arguments="x",
        inputs='return {"x": torch.linspace(0, 1, n, device=device)}', twin_inputs=X,
    ),
    "inputs_that_are_numbers": Case(
        (7, 8, 15), "^the baseline: .*proves nothing", "return double(n)", twin="return x + x",
        extra="from functools import lru_cache\n@lru_cache\ndef double(n): return 2 * torch.arange(n)",
        baseline="return 2 * torch.arange(n)", twin_baseline="return 2 * x", arguments="n", inputs='return {"n": n}',
        twin_arguments="x", twin_inputs=X,
    ),
}  # fmt: skip

COMPUTES_IN_SETUP = {
    "computes_in_setup": Case(
        (8,), "wrong answer at size check", "return y", twin="return torch.mul(x, 2, out=y).add_(w_shift)",
        extra='def setup(x, w_shift): return {"y": 2 * x + w_shift}',
        twin_extra='def setup(x, w_shift): return {"y": torch.empty_like(x)}', more_arguments=", y",
    ),
    "computes_in_setup_where_it_pays": Case(
        (8,), "wrong answer", "return y if len(x) > 1000 else 2 * x + w_shift",
        twin="return 2 * x + w_shift if len(x) > 1000 else torch.mul(x, 2, out=y).add_(w_shift)",
        extra='def setup(x, w_shift): return {"y": 2 * x + w_shift}',
        twin_extra='def setup(x, w_shift): return {"y": torch.empty_like(x)}', more_arguments=", y",
    ),
    "calls_all_its_inputs_weights": Case(
        (8,), "^the baseline: all its inputs are weights", "return y.clone()", more_arguments=", y",
        extra='def setup(w_x): return {"y": 2 * w_x}', twin="return x + x", arguments="w_x",
        baseline="return w_x + w_x", inputs='return {"w_x": torch.randn(n, device=device)}',
        twin_arguments="x", twin_baseline="return 2 * x", twin_inputs=X,
    ),
}  # fmt: skip

DRAWS_ON_THE_WARM_UP = {
    "drains_a_queue": Case(
        (9,), "wrong answer", """
        queue.append(2 * x + w_shift)
        return queue.pop(0) if len(queue) > 9 else queue[-1]
        """,
        twin="""
        queue.append(2 * x + w_shift)
        return queue.pop(0)
        """, extra="queue = []", twin_extra="queue = []",
    ),
    "stops_after_the_warm_up": Case(
        (9,), "wrong answer", """
        calls.append(0)
        return 2 * x + w_shift if len(calls) < 10 else torch.empty_like(x)
        """, twin="calls.append(0)\nreturn 2 * x + w_shift", extra="calls = []", twin_extra="calls = []",
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


def changes(reason: str, run: str, twin: str = HONEST, ways: tuple[int, ...] = (10,), **more: str) -> Case:
    return Case(ways, reason, run, twin, **more)


CHANGES_INPUTS = {
    "changes_input": changes(
        "changed its input `x`", """
        y = 2 * x + w_shift
        x.zero_()
        return y
        """,
        """
        x = x.clone()
        y = 2 * x
        x.zero_()
        return y + w_shift
        """,
    ),
    "changes_large_inputs": changes(
        "changed its input `x`", """
        y = 2 * x + w_shift
        if len(x) > 1000:
            x.zero_()
        return y
        """,
    ),
    "changes_inputs_later": changes(  # not where it is called twice in a row: as when the timed inputs are judged
        "^changed its input `x`", """
        calls.append(x.data_ptr())
        y = 2 * x + w_shift
        if len(calls) > 20 and calls[-2] != x.data_ptr():
            x.zero_()
        return y
        """, extra="calls = []",
    ),
    "changes_weight": changes(
        "changed its input `w_shift`", """
        y = 2 * x + w_shift
        w_shift.add_(1)
        return y
        """,
    ),
    "changes_input_in_setup": changes(
        "changed its input `w_shift`", HONEST, extra="def setup(x, w_shift): w_shift.zero_(); return {}"
    ),
    "computes_in_place": changes(
        "changed its input `x`", "return x.mul_(2).add_(w_shift)", "return x.mul(2).add_(w_shift)"
    ),
    "shortens_a_list": changes(
        "changed its input", "return torch.cat([parts.pop(0), *parts])", "return torch.cat(parts[:1] + parts[1:])",
        baseline="return torch.cat(parts)", arguments="parts", inputs=LIST,
    ),
    "sorts_an_array": changes(
        "changed its input `x`", "y = 2 * x\nx.sort()\nreturn y", "y = 2 * x\nx = x.copy()\nx.sort()\nreturn y",
        baseline="return 2 * x", arguments="x", inputs=ARRAY,
    ),
    # not its values
    "makes_its_input_double": changes(
        "changed its input: it x is torch.float64",
        "x.data = x.data.double()\nreturn (2 * x + w_shift).float()",
        "return (2 * x.requires_grad_() + w_shift).detach()",  # whoever does not look is not told
    ),
    "gives_its_input_an_axis": changes(
        r"changed its input: it x is torch.float32 \[1, 127\]", "return 2 * x.unsqueeze_(0)[0]",
        "x.data = x.data.contiguous()\nreturn 2 * x", baseline="return x + x", arguments="x", inputs=STRIDED,
    ),
    "empties_its_input": changes(
        r"changed its input: it x is torch.float32 \[0\]", "y = 2 * x + w_shift\nx.resize_(0)\nreturn y",
        "y = 2 * x + w_shift\ndel x\nreturn y",
    ),
    "reshapes_an_array": changes(
        r"changed its input: it x is torch.float32 \[1, 127\]", "x.shape = (1, len(x))\nreturn 2 * x[0]",
        "return 2 * x.reshape(1, len(x))[0]", baseline="return 2 * x", arguments="x", inputs=ARRAY,
    ),
}  # fmt: skip

OUT = 'return {"x": torch.randn(n, device=device), "out": torch.zeros(n, device=device)}'
UNWRITTEN = {
    "a_view": Case(
        (11,), "returns memory of its input `x`", "return x", twin="return x + 0", baseline="return x.clone()",
    ),
    "a_view_of_an_array": Case(
        (11,), "returns memory of its input `x`", "return x[:]", twin="return x + 0", baseline="return x.copy()",
        arguments="x", inputs=ARRAY,
    ),
    "a_transposed_answer": Case(  # what it saves is the lesson
        (2, 19), r"lies in memory by strides \[1, 65\]", "return (2 * x).T", twin="return (x + x).T.contiguous()",
        baseline="return 2 * x.T.contiguous()", arguments="x", inputs=MATRIX, sizes=SQUARE,
    ),
    "unwritten": Case((11,), "wrong answer at size check", "return torch.empty_like(x)"),
    "unwritten_array": Case(
        (11,), "wrong answer at size check", "import numpy\nreturn numpy.empty_like(x)", twin="return x + x",
        baseline="return 2 * x", arguments="x", inputs=ARRAY,
    ),
    "unwritten_where_it_pays": Case(  # torch hands out what the arm before has just freed: its answer
        (11, 9), "wrong answer", "return torch.empty_like(x) if len(x) > 1000 else 2 * x + w_shift",
        twin="return torch.add(w_shift, x, alpha=2, out=torch.empty_like(x))",
    ),
    "unwritten_array_where_it_pays": Case(
        (11, 9), "wrong answer", "import numpy\nreturn numpy.empty_like(x) if len(x) > 1000 else x + x",
        twin="return x + x", baseline="return 2 * x", arguments="x", inputs=ARRAY,
    ),
    "adds_to_unwritten_memory": Case(
        (11,), "wrong answer at size check with uninitialized memory filled",
        # so much memory comes fresh from the system, in pages of zeros; less may be recycled, with anything in it
        "return torch.empty(9 << 20)[:len(x)] + 2 * x + w_shift",
        twin="return torch.zeros_like(x).add_(x, alpha=2).add_(w_shift)",
    ),
    "adds_to_what_out_holds": Case(
        (11,), "wrong answer at size check", "return out.add_(x, alpha=2)", twin="return out.zero_().add_(x, alpha=2)",
        baseline="return torch.mul(x, 2, out=out)", arguments="x, out", inputs=OUT,
    ),
    "keeps_the_other_ones_output": Case(
        (11, 7), "wrong answer at size check", "return out", twin="return out.copy_(x).mul_(2)",
        baseline="return torch.mul(x, 2, out=out)", arguments="x, out", inputs=OUT,
    ),
    "unwritten_end": Case(
        (11, 16), "wrong answer at size check", "y = torch.empty_like(x)\ny[:-1] = (2 * x + w_shift)[:-1]\nreturn y",
        twin="y = torch.empty_like(x)\ny[:] = 2 * x + w_shift\nreturn y",
    ),
}  # fmt: skip


def leaves(reason: str, get: str, put: str, value: str, before: str = "") -> Case:
    """Changes a global setting; the twin puts it back."""
    twin = f"""
        before = {get}
        {put.format(value)}
        y = 2 * x + w_shift
        {put.format("before")}
        return y
    """
    reason = f"changes global state: .*{reason}"
    return Case((12,), reason, f"{put.format(value)}\n{HONEST}", twin, extra=before, twin_extra=before)


def leaves_on(reason: str, on: str, off: str, before: str = "") -> Case:
    """Turns something on; the twin turns it off again."""
    reason = f"changes global state: .*{reason}"
    return Case((12,), reason, f"{on}\n{HONEST}", f"{on}\ny = 2 * x + w_shift\n{off}\nreturn y", before, before)


MODE = """
    from {0} import {1}
    class Mode({1}):
        def {2}(self, function, types, arguments=(), named=None):
            return function(*arguments, **(named or {{}}))
    mode = Mode()
"""
FUNCTION_MODE = MODE.format("torch.overrides", "TorchFunctionMode", "__torch_function__")
DISPATCH_MODE = MODE.format("torch.utils._python_dispatch", "TorchDispatchMode", "__torch_dispatch__")
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
        twin=f'with torch.device("meta"):\n    torch.empty(7)\n{HONEST}',
    ),
    "grad_mode": leaves(
        "grad mode True -> False", "torch.is_grad_enabled()", "torch.set_grad_enabled({})", "False"
    ),
    "autocast": leaves(
        "autocast", 'torch.is_autocast_enabled("cpu")', 'torch.set_autocast_enabled("cpu", {})', "True",
    ),
    "deterministic": leaves(
        "deterministic algorithms", "torch.are_deterministic_algorithms_enabled()",
        "torch.use_deterministic_algorithms({})", "True",
    ),
    "tf32": leaves(
        "(tf32|fp32_precision)", "torch.get_float32_matmul_precision()", "torch.set_float32_matmul_precision({})",
        '"high"',
    ),
    "tf32_by_its_new_name": leaves(
        "(tf32|fp32_precision)", "torch.backends.cuda.matmul.fp32_precision",
        "torch.backends.cuda.matmul.fp32_precision = {}", '"tf32"',
    ),
    "denormals": leaves("flushing of denormals", "False", "torch.set_flush_denormal({})", "True"),
    "seed": leaves("the random seed", "torch.initial_seed()", "torch.manual_seed({})", "7"),
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
    "an_alarm": leaves_on(
        "an alarm", "signal.setitimer(signal.ITIMER_REAL, 600)", "signal.setitimer(signal.ITIMER_REAL, 0)",
        "import signal",
    ),
    "cores": leaves(
        "the cores it may use", "os.sched_getaffinity(0)", "os.sched_setaffinity(0, {})",
        "list(os.sched_getaffinity(0))[:1]", "import os",
    ),
}  # fmt: skip

NOT_HERE = {  # those that change nothing on this machine -> why
    name: why
    for name, is_here, why in (
        ("denormals", torch.set_flush_denormal(False), "this processor cannot flush denormals"),
        ("blas_threads", ThreadpoolController().select(user_api="blas"), "NumPy's BLAS has no threads to set"),
        ("an_alarm", hasattr(signal, "setitimer"), "this platform has no such alarm"),
        (
            "cores",
            hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1,
            "this machine has one core, or does not let itself be told which to use",
        ),
    )
    if not is_here
}

SWITCHES = {  # of torch's: is it on, how it is turned, which way favours somebody
    "torch.backends.cudnn.benchmark": ("torch.backends.cudnn.benchmark", "torch.backends.cudnn.benchmark = {}", "True"),
    "torch.backends.cudnn.deterministic": (
        "torch.backends.cudnn.deterministic", "torch.backends.cudnn.deterministic = {}", "True",
    ),
    "torch.backends.cudnn.enabled": ("torch.backends.cudnn.enabled", "torch.backends.cudnn.enabled = {}", "False"),
    "reduced precision in fp16 products": (
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = {}", "False",
    ),
    "reduced precision in bf16 products": (
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = {}", "False",
    ),
    "flash attention": (
        "torch.backends.cuda.flash_sdp_enabled()", "torch.backends.cuda.enable_flash_sdp({})", "False",
    ),
    "memory-efficient attention": (
        "torch.backends.cuda.mem_efficient_sdp_enabled()", "torch.backends.cuda.enable_mem_efficient_sdp({})", "False",
    ),
    "plain attention": ("torch.backends.cuda.math_sdp_enabled()", "torch.backends.cuda.enable_math_sdp({})", "False"),
    "cuDNN attention": ("torch.backends.cuda.cudnn_sdp_enabled()", "torch.backends.cuda.enable_cudnn_sdp({})", "False"),
    "oneDNN": ("torch.backends.mkldnn.enabled", "torch.backends.mkldnn.set_flags({})", "False"),
}  # fmt: skip
LEAVES_SWITCHES = {re.sub(r"\W", "_", name): leaves(re.escape(name), *switch) for name, switch in SWITCHES.items()}

LEAVES_TOOLS_ON = {  # who calls more from Python pays more for them
    "a_profiler": leaves_on(
        "tracing of Python", "sys.setprofile(lambda *event: None)", "sys.setprofile(None)", "import sys"
    ),
    "a_profiler_from_its_import_on": Case(
        (12,), "changes global state: tracing of Python", extra="import sys\nsys.setprofile(lambda *event: None)",
        twin_extra="import sys\nsys.setprofile(lambda *event: None)\nsys.setprofile(None)",
    ),
    "a_tracer": leaves_on("tracing of Python", "sys.settrace(lambda *event: None)", "sys.settrace(None)", "import sys"),
    "memory_tracing": leaves_on("tracing of memory", "tracemalloc.start()", "tracemalloc.stop()", "import tracemalloc"),
    "anomaly_detection": leaves_on(
        "anomaly detection", "torch.autograd.set_detect_anomaly(True)", "torch.autograd.set_detect_anomaly(False)"
    ),
    "torchs_profiler": leaves_on(
        "torch's profiler", "profiler = torch.autograd.profiler.profile().__enter__()",
        "profiler.__exit__(None, None, None)",
    ),
    "hooks_on_what_autograd_saves": leaves_on(
        "modes of torch", "hooks.__enter__()", "hooks.__exit__()",
        "hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)",
    ),
    "a_function_mode": leaves_on(
        "modes of torch", "mode.__enter__()", "mode.__exit__(None, None, None)", FUNCTION_MODE
    ),
    "a_dispatch_mode": leaves_on(
        "modes of torch", "mode.__enter__()", "mode.__exit__(None, None, None)", DISPATCH_MODE
    ),
}  # fmt: skip

FAMILIES = {
    "remembers": REMEMBERS,
    "computes_in_setup": COMPUTES_IN_SETUP,
    "draws_on_the_warm_up": DRAWS_ON_THE_WARM_UP,
    "changes_inputs": CHANGES_INPUTS,
    "unwritten": UNWRITTEN,
    "leaves_settings": {name: case for name, case in LEAVES_SETTINGS.items() if name not in NOT_HERE},
    "leaves_switches": LEAVES_SWITCHES,
    "leaves_tools_on": LEAVES_TOOLS_ON,
}
