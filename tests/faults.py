"""Pairs that take their process with them, leave others behind, or never end; what must be said of each."""

from samples import HONEST, version

# Notes the number of a process that is left behind, in a file beside the pair's; `once` is for the first call only.
NOTES = """
    import ctypes, os, signal, subprocess, threading, time
    from pathlib import Path
    seen = []
    def once():
        return not seen and not seen.append(True)
    def note(pid):
        with Path(__file__).with_suffix(".pid").open("a") as file:
            file.write(f"{pid}\\n")
"""
STARTS = {  # ways to leave a process behind
    "child": 'note(subprocess.Popen(["sleep", "600"]).pid)',
    "fork": """
        pid = os.fork()
        if not pid:
            time.sleep(600)
        note(pid)
    """,
    "session": 'note(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)',
    "daemon": """
        pid = os.fork()
        if not pid:  # as daemons do: a session of its own, then a parent that goes
            os.setsid()
            if not os.fork():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                note(os.getpid())
                time.sleep(600)
            os._exit(0)
        os.waitpid(pid, 0)
        while not Path(__file__).with_suffix(".pid").exists():
            time.sleep(0.01)
    """,
}


def leaves(start: str, then: str = HONEST) -> str:
    """A version whose first call leaves a process behind."""
    lines = [line.strip("\n") for line in STARTS[start].splitlines() if line.strip()]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return version("\n".join(["if once():", *("    " + line[indent:] for line in lines), then]), extra=NOTES)


def first(action: str, **options: str) -> str:
    """A version whose first call does this."""
    return version(f"if once():\n    {action}\n{HONEST}", extra=NOTES, **options)


def stuck_when_timed(file: object) -> str:
    """A version whose first call that is timed in a block makes this file, and does not return."""
    frames = "frame.f_code.co_name for frame, _ in traceback.walk_stack(sys._getframe())"
    timed = f'{{"_sample_block", "sample"}} <= {{{frames}}}'
    stuck = f"if {timed}:\n    open({str(file)!r}, 'w').close()\n    time.sleep(600)"
    return version(f"{stuck}\n{HONEST}", extra="import sys, time, traceback")


LEFT_BEHIND = {  # verdict `invalid`; a pattern of its reason
    **{start: (leaves(start), "leaks processes") for start in STARTS},
    "thread": (first("threading.Thread(target=time.sleep, args=(600,)).start()"), "leaks threads"),
}

HUNG = {
    "hang_in_c": first("ctypes.PyDLL(None).pause()"),  # and keeps the interpreter's lock
    "hang_stopped": first("os.kill(os.getpid(), signal.SIGSTOP)"),
    "hang_at_import": version(extra="import time\ntime.sleep(600)"),
    "hang_beside_daemon": leaves("daemon", "time.sleep(600)"),
}

DEATHS = {  # text of the variant, what is said
    "segfault": (version("import ctypes\nctypes.string_at(0)"), "^killed by SIGSEGV"),
    "killed": (version("import os\nos.kill(os.getpid(), 9)"), "^killed by SIGKILL: often .* no memory left"),
    "killed_by_a_nameless_signal": (version("import os\nos.kill(os.getpid(), 40)"), "^killed by signal 40"),
    "exit_politely": (version("raise SystemExit(3)"), "SystemExit: 3"),
    "last_words": (
        version("import os\nprint('out of\\x1b[31m ink', flush=True)\nos._exit(7)"),
        r"^exited with status 7 before it was done \(out of\[31m ink\)$",
    ),
    "prints_without_end": (
        version("import os, time\nwhile True: os.write(1, bytes(1 << 18)); time.sleep(1e-3)"),
        "^printed more than 96 MiB$",
    ),
    "closes_its_descriptors": (
        version("import os\nos.closerange(3, 1000)"),
        "^(closed its pipe or wrote to it|exited with status)",
    ),
    "fills_memory": (
        version("""
            import resource  # what is tested is not the machine: half a GiB is left
            pages = int(open("/proc/self/statm").read().split()[0])
            most = pages * resource.getpagesize() + (1 << 29)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
            return [bytearray(1 << 26) for _ in range(1 << 10)]
        """),
        "^MemoryError",
    ),
    "says_what_cannot_be_printed": (
        version("raise ValueError('\\ud800\\x1b[2J no\\tluck')"),
        r"^ValueError: \[2J noluck \(",
    ),
    "import": (
        version(extra="raise RuntimeError('at import')"),
        r"^RuntimeError: at import \(optimized_import.py:\d+\)$",
    ),
    "reference": (version(extra="def reference(x, w_shift): return undefined"), "^NameError: name 'undefined'"),
    "exit_beside_daemon": (leaves("daemon", "os._exit(3)"), "^exited with status 3"),
    "segfault_beside_session": (leaves("session", "ctypes.string_at(0)"), "^killed by SIGSEGV"),
    **{name: (text, "^hung: no progress for") for name, text in HUNG.items()},
}

SKIPPED = {
    "missing_package": (version(extra="import msvcrt"), "^needs the package msvcrt$"),  # of Windows alone
    "too_large": (version(inputs='return {"x": torch.empty(n << 50), "w_shift": torch.empty(1)}'), "not fit in memory"),
    "wants_a_gpu": (version(extra='DEVICE = "cuda"'), "^needs an NVIDIA GPU$"),
}

IN_BOTH_VERSIONS = ("reference", "too_large")

HARMLESS = {
    "zz_last": version(),
    "prints": version(f"""
        import os, time
        os.write(1, bytes(range(256)) * 128)  # with others of its kind some megabytes, not a line of them text
        os.write(2, b"x" * (1 << 15))
        time.sleep(2e-3)
        {HONEST}
    """),
}

ORPHANS = [name for name in (*LEFT_BEHIND, *DEATHS) if any(start in name for start in STARTS)]
