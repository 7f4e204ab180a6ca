"""Pairs that misbehave: what each does, what must be said of it, and the honest twin that does the same thing rightly.

`LIARS` cost their variant alone, `DEATHS` their process; both halves compute 2 * x + w_shift unless said otherwise.
"""

from dataclasses import dataclass

from samples import HONEST, VECTOR, half


@dataclass(frozen=True)
class Case:
    """A liar and its twin, as bodies of `run` (and what stands before it: `extra`, `twin_extra`)."""

    verdict: str
    reason: str  # a regular expression
    run: str
    twin: str = HONEST
    extra: str = ""
    twin_extra: str = ""
    arguments: str = "x, w_shift"
    more_arguments: str = ""  # of liar and twin: what `setup` made
    liar_arguments: str = ""
    inputs: str = VECTOR
    liar_inputs: str = ""
    baseline: str = HONEST

    def texts(self) -> tuple[dict[str, str], str]:
        """(variant -> text, the baseline's text)."""
        liar = half(
            self.run,
            self.liar_arguments or self.arguments + self.more_arguments,
            self.liar_inputs or self.inputs,
            self.extra,
        )
        twin = half(self.twin, self.arguments + self.more_arguments, self.inputs, self.twin_extra)
        return {"liar": liar, "twin": twin}, half(self.baseline, self.arguments, self.inputs)


def leaves_behind(reason: str, get: str, put: str, value: str) -> Case:
    """Changes a global setting; the twin puts it back."""
    twin = f"""
        before = {get}
        {put.format(value)}
        y = 2 * x + w_shift
        {put.format("before")}
        return y
    """
    return Case("invalid", f"leaves global state.*{reason}", f"{put.format(value)}\n{HONEST}", twin)


def remembers(key: str, twin: str = HONEST) -> Case:
    """Computes once for every `key` of its inputs."""
    run = f"""
        if {key} not in memo:
            memo[{key}] = 2 * x + w_shift
        return memo[{key}]
    """
    return Case("invalid", "wrong answer", run, twin, extra="memo = {}", twin_extra="memo = {}")


ARRAY = 'import numpy\nreturn {"x": numpy.random.standard_normal(n).astype(numpy.float32)}'
LIST = 'return {"parts": [torch.randn(n, device=device) for _ in range(3)]}'
OUT = 'return {"x": torch.randn(n, device=device), "out": torch.empty(n, device=device)}'
BY_CONTENT = """
    key = (x.cpu().numpy().tobytes(), float(w_shift))
    if key not in memo:
        memo[key] = 2 * x + w_shift
    return memo[key]
"""
BY_VERSION = """
    now = [x._version, w_shift._version]
    if memo.get("x") is not x or memo["then"] != now:
        memo.update(x=x, then=now, y=2 * x + w_shift)
    return memo["y"]
"""

DIE = {
    "raises": Case("died", r"luck \(optimized_raises_liar.py:\d+\)$", 'raise ValueError("no such luck\\nand more")'),
    "raises_in_setup": Case("died", "KeyError: .no. .opt", HONEST, extra='def setup(x, w_shift): raise KeyError("no")'),
    "out_of_memory": Case("died", "memory", "return torch.empty(1 << 50)", f"torch.empty(1 << 20)\n{HONEST}"),
    "takes_other_arguments": Case("died", r"^TypeError: run\(\).*'w_shift'", "return x", liar_arguments="x"),
}

LEAVE_TRACES = {
    "changes_input": Case(
        "invalid",
        "changed its input `x`",
        """
        y = 2 * x + w_shift
        x.zero_()
        return y
        """,
        twin="""
        x = x.clone()
        y = 2 * x
        x.zero_()
        return y + w_shift
        """,
    ),
    "changes_large_inputs": Case(
        "invalid",
        "changed its input `x`",
        """
        y = 2 * x + w_shift
        if len(x) > 1000:
            x.zero_()
        return y
        """,
    ),
    "changes_weight": Case(
        "invalid",
        "changed its input `w_shift`",
        """
        y = 2 * x + w_shift
        w_shift.add_(1)
        return y
        """,
    ),
    "changes_input_in_setup": Case(
        "invalid", "changed its input `w_shift`", HONEST, extra="def setup(x, w_shift): w_shift.zero_(); return {}"
    ),
    "computes_in_place": Case(
        "invalid", "changed its input `x`", "return x.mul_(2).add_(w_shift)", "return x.mul(2).add_(w_shift)"
    ),
    "shortens_a_list": Case(
        "invalid",
        "changed its input",
        "return torch.cat([parts.pop(0), *parts])",
        twin="return torch.cat(parts[:1] + parts[1:])",
        baseline="return torch.cat(parts)",
        arguments="parts",
        inputs=LIST,
    ),
    "leaves_a_thread": Case(
        "invalid",
        "threads behind: sleeper",
        f"""
        import threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True, name="sleeper").start()
        {HONEST}
        """,
        twin=f"""
        import threading
        thread = threading.Thread(target=print)
        thread.start()
        thread.join()
        {HONEST}
        """,
    ),
    "returns_before_its_thread": Case(
        "invalid",
        "threads behind|wrong answer",
        """
        import threading, time
        y = torch.empty_like(x)
        def work():
            time.sleep(0.05)
            torch.add(2 * x, w_shift, out=y)
        threading.Thread(target=work).start()
        return y
        """,
        twin="""
        import threading
        y = torch.empty_like(x)
        thread = threading.Thread(target=lambda: torch.add(2 * x, w_shift, out=y))
        thread.start()
        thread.join()
        return y
        """,
    ),
    "number_of_threads": leaves_behind(
        "the number of threads", "torch.get_num_threads()", "torch.set_num_threads({})", "torch.get_num_threads() + 1"
    ),
    "default_dtype": leaves_behind(
        "default dtype torch.float32 -> torch.float64",
        "torch.get_default_dtype()",
        "torch.set_default_dtype({})",
        "torch.float64",
    ),
    "grad_mode": leaves_behind(
        "grad mode True -> False", "torch.is_grad_enabled()", "torch.set_grad_enabled({})", "False"
    ),
    "deterministic": leaves_behind(
        "deterministic algorithms",
        "torch.are_deterministic_algorithms_enabled()",
        "torch.use_deterministic_algorithms({})",
        "True",
    ),
    "tf32": leaves_behind(
        "(tf32|fp32_precision)",
        "torch.get_float32_matmul_precision()",
        "torch.set_float32_matmul_precision({})",
        '"high"',
    ),
    "tf32_by_its_new_name": leaves_behind(
        "(tf32|fp32_precision)",
        "torch.backends.cuda.matmul.fp32_precision",
        "torch.backends.cuda.matmul.fp32_precision = {}",
        '"tf32"',
    ),
}

KNOW_THE_ANSWER = {
    "remembers_by_id": remembers("id(x)", BY_CONTENT),
    "remembers_by_pointer": remembers("x.data_ptr()", BY_VERSION),
    "remembers_by_first_value": remembers("float(x[0])"),
    "remembers_by_shape": remembers("x.shape"),
    "computes_in_setup": Case(
        "invalid",
        "wrong answer at size check",
        "return y",
        twin="return torch.mul(x, 2, out=y).add_(w_shift)",
        extra='def setup(x, w_shift): return {"y": 2 * x + w_shift}',
        twin_extra='def setup(x, w_shift): return {"y": torch.empty_like(x)}',
        more_arguments=", y",
    ),
    "computes_in_setup_where_it_pays": Case(
        "invalid",
        "wrong answer in a timed round",
        "return y if len(x) > 1000 else 2 * x + w_shift",
        twin="return 2 * x + w_shift if len(x) > 1000 else torch.mul(x, 2, out=y).add_(w_shift)",
        extra='def setup(x, w_shift): return {"y": 2 * x + w_shift}',
        twin_extra='def setup(x, w_shift): return {"y": torch.empty_like(x)}',
        more_arguments=", y",
    ),
    "drains_a_queue": Case(
        "invalid",
        "wrong answer",
        """
        queue.append(2 * x + w_shift)
        return queue.pop(0) if len(queue) > 9 else queue[-1]
        """,
        twin="""
        queue.append(2 * x + w_shift)
        return queue.pop(0)
        """,
        extra="queue = []",
        twin_extra="queue = []",
    ),
    "keeps_the_other_ones_output": Case(
        "invalid",
        "wrong answer at size check",
        "return out",
        twin="return out.copy_(x).mul_(2)",
        baseline="return torch.mul(x, 2, out=out)",
        arguments="x, out",
        inputs=OUT,
    ),
}

ANSWER_SOMETHING_ELSE = {
    "zeros": Case("invalid", "wrong answer at size check", "return torch.zeros_like(x)"),
    "a_constant": Case("invalid", "wrong answer at size check", "return (2 * x + w_shift).mean().expand_as(x)"),
    "a_view": Case("invalid", "view|input", "return x", twin="return x + 0", baseline="return x.clone()"),
    "a_part_as_a_view": Case(
        "invalid", "view|input", "return x[:-1]", twin="return x[:-1] * 1", baseline="return x[:-1].clone()"
    ),
    "a_view_of_an_array": Case(
        "invalid",
        "view|input",
        "return x[:]",
        twin="return x + 0",
        baseline="return x.copy()",
        arguments="x",
        inputs=ARRAY,
    ),
    "an_array_the_wrong_way_round": Case(
        "invalid",
        "wrong answer at size check",
        "return x + x",
        twin="return (x + x)[::-1]",  # negative strides
        baseline="return (2 * x)[::-1].copy()",
        arguments="x",
        inputs=ARRAY,
    ),
    "unwritten": Case("invalid", "wrong answer", "return torch.empty_like(x)"),
    "unwritten_array": Case(
        "invalid",
        "wrong answer",
        "import numpy\nreturn numpy.empty_like(x)",
        twin="return x + x",
        baseline="return 2 * x",
        arguments="x",
        inputs=ARRAY,
    ),
    "adds_to_unwritten_memory": Case(
        "invalid",
        "wrong answer at size check with uninitialized memory filled",
        "return torch.empty_like(x).mul_(0).add_(x, alpha=2).add_(w_shift)",  # 0 * NaN is NaN
        twin="return torch.zeros_like(x).add_(x, alpha=2).add_(w_shift)",
    ),
    "unwritten_end": Case(
        "invalid",
        "wrong answer",
        """
        y = torch.empty_like(x)
        y[:-1] = (2 * x + w_shift)[:-1]
        return y
        """,
        twin="""
        y = torch.empty_like(x)
        y[:] = 2 * x + w_shift
        return y
        """,
    ),
    "works_at_round_sizes": Case(
        "invalid",
        "wrong answer at size check",
        """
        y = torch.zeros_like(x)
        n = len(x) // 8 * 8
        y[:n] = (2 * x + w_shift)[:n]
        return y
        """,
    ),
    "lower_precision": Case("invalid", "wrong answer at size check", "return (2 * x.bfloat16() + w_shift).float()"),
    "lazy": Case("invalid", "returns function, not a tensor", "return lambda: 2 * x + w_shift"),
    "lazy_tensor": Case(
        "invalid",
        "returns .*Lazy",
        "return (2 * x + w_shift).as_subclass(Lazy)",
        extra="class Lazy(torch.Tensor): pass",
    ),
    "nothing": Case("invalid", "returns NoneType, not a tensor", "2 * x + w_shift"),
    "another_shape": Case("invalid", r"shape \[1, 127\], expected \[127\]", "return (2 * x + w_shift)[None]"),
    "another_dtype": Case("invalid", "dtype torch.float64", "return (2 * x + w_shift).double()"),
    "objects": Case(
        "invalid",
        "object",
        "return (2 * x).astype(object)",
        twin="return x + x",
        baseline="return 2 * x",
        arguments="x",
        inputs=ARRAY,
    ),
    "smaller_inputs": Case(
        "invalid",
        "inputs are others than the baseline's: x is",
        HONEST,
        liar_inputs=VECTOR.replace("randn(n", "randn(n // 2"),
    ),
    "inputs_of_half_precision": Case(
        "invalid",
        "inputs are others than the baseline's: x is torch.float16",
        "return (2 * x + w_shift).float()",
        liar_inputs=VECTOR.replace("device=device)", "device=device).half()", 1),
    ),
    "inputs_of_other_names": Case(
        "invalid",
        "inputs are others than the baseline's: has",
        "return 2 * y + w_shift",
        liar_arguments="y, w_shift",
        liar_inputs=VECTOR.replace('"x"', '"y"'),
    ),
}

LIARS = {**DIE, **LEAVE_TRACES, **KNOW_THE_ANSWER, **ANSWER_SOMETHING_ELSE}


def starts_a_process(spawn: str, then: str = HONEST) -> str:
    """A half whose first call leaves a process behind and notes its number beside the file."""
    run = f"""
        if not seen:
            {spawn}
            seen.append(pid)
            with Path(__file__).with_suffix(".pid").open("a") as file:
                file.write(str(pid) + "\\n")
        {then}
    """
    return half(run, extra="import os, subprocess, time\nfrom pathlib import Path\nseen = []")


SLEEPER = 'pid = subprocess.Popen(["sleep", "600"]).pid'
ORPHANS = {
    "spawns": starts_a_process(SLEEPER),
    "forks": starts_a_process("pid = os.fork() or time.sleep(600)"),
    "spawns_and_exits": starts_a_process(SLEEPER, "os._exit(3)"),
    "spawns_and_hangs": starts_a_process(SLEEPER, "time.sleep(90)"),
}

DEATHS = {  # text of the variant, what is said
    "segfault": (half("import ctypes\nctypes.string_at(0)"), "^killed by SIGSEGV"),
    "abort": (half("import os\nos.abort()"), "^killed by SIGABRT"),
    "killed": (half("import os\nos.kill(os.getpid(), 9)"), "^killed by SIGKILL: often .* no memory left"),
    "exit": (half("import os\nos._exit(7)"), "^exited with status 7 before it was done"),
    "exit_politely": (half("raise SystemExit(3)"), "SystemExit: 3"),
    "last_words": (
        half("import os\nprint('out of\\x1b[31m ink', flush=True)\nos._exit(7)"),
        r"status 7 .*\(out of\[31m ink\)$",
    ),
    "hang": (half("import time\ntime.sleep(90)"), "^hung: no progress for"),
    "spin": (
        half("import time\nend = time.monotonic() + 90\nwhile time.monotonic() < end: pass"),
        "^hung: no progress for",
    ),
    "import": (half(extra="raise RuntimeError('at import')"), r"^RuntimeError: at import \(optimized_import.py:\d+\)$"),
    "missing_name": (half(extra="from torch import no_such_name"), "^ImportError: cannot import name"),
    "reference": (half(extra="def reference(x, w_shift): return undefined"), "^NameError: name 'undefined'"),
    "infinite_cost": (
        half(extra="def cost(x, w_shift): return {'dram_bytes': float('inf')}"),
        "cost.*dram_bytes|dram_bytes.*cost",
    ),
    "spawns_and_exits": (ORPHANS["spawns_and_exits"], "^exited with status 3"),
    "spawns_and_hangs": (ORPHANS["spawns_and_hangs"], "^hung"),
}

SKIPPED = {
    "missing_package": (half(extra="import no_such_package_here"), "^needs the package no_such_package_here$"),
    "too_large": (half(inputs='return {"x": torch.empty(n << 50), "w_shift": torch.empty(1)}'), "not fit in memory"),
    "wants_a_gpu": (half(extra='DEVICE = "cuda"'), "^needs an NVIDIA GPU$"),
}

IN_BOTH_HALVES = ("reference", "too_large", "infinite_cost")

HARMLESS = {
    "aa_first": half(),
    "zz_last": half(),
    "prints": half(f"import time\nprint('x' * (1 << 18))\ntime.sleep(2e-3)\n{HONEST}"),
    **{name: text for name, text in ORPHANS.items() if name not in DEATHS},
}
