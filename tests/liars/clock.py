"""Liars about the clock: unfinished work, lazy answers, compiling on the clock, recordings."""

from samples import HONEST

from liars.case import ARRAY, MATRIX, SQUARE, WRONG, Case, alone

POOL = "from concurrent.futures import ThreadPoolExecutor\n"
STEPS = """
    def steps(x, w_shift, y):
        for _ in range({}):
            torch.sin(x, out=y)
        torch.add(w_shift, x, alpha=2, out=y)
        return y
"""
FORKED = f"""
{STEPS.format(50)}
    compiled = torch.jit.script(steps)
    @torch.jit.script
    def begin(x, w_shift, y):  # without its future, nothing would be done
        future = torch.jit.fork(compiled, x, w_shift, y)
        return {{}}
"""
INTO_Y = "y = torch.empty_like(x)\n"
WATCHED = """
    def watched(x):  # while uninitialized memory is filled
        return len(x) != 2048 or torch.get_deterministic_debug_mode()
"""
SUBPROCESS, LEFT = "import subprocess\n", r"leaks processes: sleep \(\d+\)$"
UNFINISHED = {
    "leaves_a_thread": Case(
        (1,), "leaks threads: sleeper$",
        f'threading.Thread(target=time.sleep, args=(60,), daemon=True, name="sleeper").start()\n{HONEST}',
        f"thread = threading.Thread(target=print)\nthread.start()\nthread.join()\n{HONEST}", "import threading, time",
    ),
    "returns_before_its_thread": Case(
        (1,), "leaks threads: late$", """
        y = torch.empty_like(x)
        def work():
            time.sleep(60)
            torch.add(2 * x, w_shift, out=y)
        threading.Thread(target=work, daemon=True, name="late").start()
        return y
        """,
        """
        y = torch.empty_like(x)
        thread = threading.Thread(target=lambda: torch.add(2 * x, w_shift, out=y))
        thread.start()
        thread.join()
        return y
        """, "import threading, time",
    ),
    "hands_its_work_to_a_pool": Case(
        (1,), "leaks threads: worker_0$",
        "y = torch.empty_like(x)\npool.submit(torch.add, w_shift, x, alpha=2, out=y)\nreturn y",
        "with ThreadPoolExecutor(1) as pool:\n    return pool.submit(torch.add, w_shift, x, alpha=2).result()",
        f'{POOL}pool = ThreadPoolExecutor(1, "worker")\npool.submit(int).result()', POOL,  # from its import on
    ),
    "works_on_in_torchs_own_pool": Case(  # whose threads Python does not know
        (1,), "wrong answer", "y = torch.empty_like(x)\nbegin(x, w_shift, y)\nreturn y",
        "y = torch.empty_like(x)\nreturn begin(x, w_shift, y)", FORKED.format("future"),
        FORKED.format("torch.jit.wait(future)"),
    ),
    "waits_while_watched": Case(  # late by less than it takes to look for threads
        (1,), "wrong answer in a timed round", f"{INTO_Y}(compiled if watched(x) else begin)(x, w_shift, y)\nreturn y",
        f"{INTO_Y}compiled(x, w_shift, y)\nreturn y", FORKED.format("future") + WATCHED,
    ),
    "leaves_a_process": Case(
        (1,), LEFT, extra=f'{SUBPROCESS}def setup(x, w_shift): subprocess.Popen(["sleep", "60"]); return {{}}',
        twin_extra=f'{SUBPROCESS}def setup(x, w_shift): subprocess.run(["true"]); return {{}}',
    ),
    "starts_company_at_import": Case(
        (1, 22), LEFT, extra=f'{SUBPROCESS}subprocess.Popen(["sleep", "60"])',
        twin_extra=f'{SUBPROCESS}subprocess.run(["true"])',
    ),
}  # fmt: skip

PAIRS_OF_NUMBERS = 'return {"x": torch.randn(n, 2, device=device)}'
COMPLEX = "return torch.view_as_complex(2 * x).conj"
LAZY = {
    "a_function": Case((2,), "returns function, not a plain tensor", "return lambda: 2 * x + w_shift"),
    "a_generator": Case((2,), "returns generator, not a plain tensor", "yield 2 * x + w_shift"),
    "a_coroutine": Case(
        (2,), "returns coroutine, not a plain tensor", "return later(x, w_shift)",
        extra=f"async def later(x, w_shift): {HONEST}",
    ),
    "a_lazy_tensor": Case(
        (2,), r"Lazy torch.float32, not a plain tensor", "return (2 * x + w_shift).as_subclass(Lazy)",
        extra="class Lazy(torch.Tensor): pass",
    ),
    "a_masked_array": alone(
        (2,), "returns numpy.ma.*, not a plain", "import numpy\nreturn numpy.ma.masked_array(x * 2)", inputs=ARRAY,
    ),
    "conjugated_when_read": alone(
        (2,), "negated or conjugated when read", f"{COMPLEX}()", f"{COMPLEX}().resolve_conj()",
        f"{COMPLEX}_physical()", inputs=PAIRS_OF_NUMBERS,
    ),
    "one_row_shown_many_times": alone(
        (2,), "an expanded tensor", "return x.sum(0).expand(len(x), -1)",
        "return x.sum(0).expand(len(x), -1).contiguous()", "return x.sum(0).repeat(len(x), 1)",
        inputs=MATRIX, sizes=SQUARE,
    ),
    "a_sparse_layout": alone(
        (2,), "layout torch.sparse", "return (2 * x).to_sparse()", "return (2 * x).to_sparse().to_dense()"
    ),
}  # fmt: skip


EVALUATE = 'return eval("2 * x + w_shift")'
DOUBLE = "def double(x, w_shift): return 2 * x + w_shift\n"
FRESH = 'import sys\nsys.modules.pop("colorsys", None)\nimport colorsys\n'
ON_THE_CLOCK = {
    "compiles_python": Case(
        (4,), "compiles Python code.* inside the timed region", EVALUATE, "return formula(x, w_shift)",
        twin_extra='formula = eval("lambda x, w_shift: 2 * x + w_shift")',
    ),
    "scripts_every_call": Case(
        (4,), "compiles .*.* inside the timed region", f"{DOUBLE}return torch.jit.script(double)(x, w_shift)",
        "return double(x, w_shift)", twin_extra=f"@torch.jit.script\n{DOUBLE}",
    ),
    "imports_every_call": Case(
        (4,), "imports colorsys.* inside the timed region", f"{FRESH}{HONEST}", twin_extra=FRESH,
    ),
    "starts_a_compiler": Case(
        (4,), "starts true.* inside the timed region", f'subprocess.run(["true"])\n{HONEST}', extra="import subprocess",
        twin_extra='import subprocess\nsubprocess.run(["true"])',
    ),
    "keeps_a_file": Case(
        (4, 7), "writes to files inside the timed region", f"file.write_bytes(x.numpy().tobytes())\n{HONEST}",
        f"file.read_bytes()\n{HONEST}", "from pathlib import Path\nfile = Path(__file__ + '.kept')",
        "from pathlib import Path\nfile = Path(__file__)",
    ),
    "its_baseline_compiles": Case(
        (4,), "^the baseline: .*compiles Python code.* inside the timed region", baseline=EVALUATE,
        twin_baseline=HONEST,
    ),
}  # fmt: skip

# What a CUDA graph is, in plain Python: steps recorded on static buffers, played back later (gpu.py has real ones)
RECORD = """
    def setup(x, w_shift):
        static, y = torch.empty_like(x), torch.empty_like(x)
        steps = [lambda: torch.mul(static, 2, out=y), lambda: y.add_(w_shift)]
        for step in steps:
            step()
        return {{"static": static, "y": y, "steps": steps{}}}
"""
PLAY = "static.copy_(x)\nfor step in steps: step()\nreturn y"
TRACED = """
    def f(x, w): return x - {} + w
    def setup(x, w_shift): return {{"traced": torch.jit.trace(f, (x, w_shift), check_trace=False)}}
"""


def plays(ways: tuple[int, ...], steps: str, run: str = PLAY) -> Case:
    """Only these of the steps that were recorded."""
    extras = RECORD.format(steps), RECORD.format("")
    return Case(ways, WRONG, run, PLAY, *extras, more_arguments=", static, y, steps")


RECORDINGS = {
    "a_recording_of_nothing": plays((5, 11), "[:0]"),
    "a_recording_of_a_part": plays((5,), "[:1]"),
    "a_recording_of_other_inputs": plays((5, 8), "", PLAY.replace("static.copy_(x)\n", "")),
    "a_trace_that_froze_a_number": Case(  # torch.jit.trace keeps Python numbers as constants
        (5, 8), WRONG, "return traced(x, w_shift)", "return traced(x, w_shift)", TRACED.format("float(x.mean())"),
        TRACED.format("x.mean()"), more_arguments=", traced", baseline="return x - x.mean() + w_shift",
    ),
}  # fmt: skip

FAMILIES = {
    "unfinished": UNFINISHED,
    "lazy": LAZY,
    "on_the_clock": ON_THE_CLOCK,
    "recordings": RECORDINGS,
}
