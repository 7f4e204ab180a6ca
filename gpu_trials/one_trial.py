"""python one_trial.py SIZE SECONDS, from the root of the repository: checks and times `one` beside `dependent`.

A worker process runs the configurations one after the other; if one says nothing for 15 s once it is compiled, the
worker is killed (a deadlock) and a new one goes on with the next. Others compile ahead, in parallel, into Triton's cache.
"""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

SIZES = {
    "small": {"hidden": 256, "layers": 3, "heads": 4, "kv_heads": 2, "inner": 512, "vocabulary": 1000, "context": 256},
    "default": {},
    "large": {"hidden": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "width": 128, "inner": 14_336,
              "vocabulary": 128_256},
}  # fmt: skip
HALF = {"qkv": 16_384, "out": 16_384, "gate_up": 16_384, "down": 16_384}
QUARTER = {"qkv": 8192, "out": 8192, "gate_up": 16_384, "down": 16_384}
FULL = {"qkv": 32_768, "out": 32_768, "gate_up": 32_768, "down": 32_768}
RELEASE = ['counter_ptr, 1, sem="release"', 'counter_ptr, 1, sem="relaxed"']
ACQUIRE = ['counter_ptr, 0, sem="acquire"', 'counter_ptr, 0, sem="relaxed"']
NO_WAIT = ["while tl.atomic_add(counter_ptr, 0, sem=\"acquire\") < count:\n        pass", "tl.debug_barrier()"]
EXTRA = ["a = tile(w_ptr, SHAPE[0], t + 2, SHAPE)", "a = tile(w_ptr, SHAPE[0], t + 2, SHAPE)"]
def e(*a):
    return dict(zip(("qkv", "out", "gate_up", "down"), a))


BASE = {"per_sm": 2, "warps": 4, "elements": e(8192, 8192, 16_384, 16_384)}
CONFIGS = [
    BASE,
    BASE | {"elements": e(8192, 8192, 16_384, 8192)},
    BASE | {"elements": e(8192, 8192, 8192, 8192)},
    BASE | {"elements": e(4096, 4096, 8192, 8192)},
    BASE | {"elements": e(4096, 4096, 16_384, 8192)},
    BASE | {"early": 0},
    BASE | {"early": 2},
    BASE | {"elements": e(8192, 8192, 16_384, 8192), "early": 0},
    BASE | {"elements": e(8192, 8192, 16_384, 8192), "early": 2},
    BASE | {"elements": e(4096, 4096, 8192, 8192), "early": 0},
    BASE | {"per_sm": 3, "elements": e(8192, 8192, 16_384, 8192)},
    BASE | {"per_sm": 3, "elements": e(8192, 8192, 8192, 8192)},
    BASE | {"per_sm": 4, "elements": e(4096, 4096, 8192, 8192)},
    BASE | {"warps": 8, "elements": e(8192, 8192, 16_384, 8192)},
    BASE | {"diag": "no waiting at all", "replace": [NO_WAIT]},
]


def modules(config):
    """The kernel's module for a configuration, and what `step` gets."""
    import importlib.util

    sys.path[:0] = [str(Path("ch7").resolve()), str(Path(".").resolve())]
    path = Path("ch7/decode_one_kernel.py").resolve()
    if config.get("replace"):
        text = path.read_text()
        for old, new in config["replace"]:
            assert old in text, old
            text = text.replace(old, new)
        folder = Path("/tmp/one_trial_variants")
        folder.mkdir(exist_ok=True)
        path = folder / f"one_{''.join(c for c in json.dumps(config) if c.isalnum())[:60]}.py"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, {k: config[k] for k in ("per_sm", "warps", "elements", "early") if k in config}


def compile_ahead(size, config):
    import torch

    module, how = modules(config)
    import model

    import decode_kernels  # noqa: F401

    kernel = module.one

    class Ahead:
        def __getitem__(self, grid):
            return lambda *a, **k: kernel.warmup(*a, grid=grid, **k)

    module.one = Ahead()
    module.programs = lambda device, per_sm: torch.cuda.get_device_properties(0).multi_processor_count * per_sm
    d = {"hidden": 2048, "layers": 22, "heads": 32, "kv_heads": 4, "width": 64, "inner": 5632, "vocabulary": 32_000,
         "context": 1024} | SIZES[size]  # fmt: skip
    given = model.drawn(**d, device="meta")
    cache_k = given["cache_k"]
    weights = {k: v for k, v in given.items() if k.startswith("w_") and k not in ("w_cos", "w_sin")}
    made = module.made(cache_k, **weights)
    module.step(made, model.EPS, given["token"], given["position"], cache_k, given["cache_v"], given["w_cos"],
                given["w_sin"], **weights, **how)  # fmt: skip
    _ = torch


def work(size, first, budget_end):
    import torch

    sys.path[:0] = [str(Path("ch7").resolve()), str(Path(".").resolve())]
    import model
    import optimized_decode_dependent as dependent

    def say(kind, **what):
        print(json.dumps({"kind": kind, **what}), flush=True)

    def drawn(size):
        torch.manual_seed(0)
        d = {"hidden": 2048, "layers": 22, "heads": 32, "kv_heads": 4, "width": 64, "inner": 5632,
             "vocabulary": 32_000, "context": 1024} | SIZES[size]  # fmt: skip
        given = model.drawn(**d)
        last = d["context"] - 1
        steps = [(torch.randint(d["vocabulary"], (1,), device="cuda"), torch.tensor([last - 2 + i], device="cuda"))
                 for i in range(3)]  # fmt: skip
        return given, steps

    def split(given):
        weights = {k: v for k, v in given.items() if k.startswith("w_") and k not in ("w_cos", "w_sin")}
        return weights, given["w_cos"], given["w_sin"]

    def truth(given, steps):
        weights, cos, sin = split(given)
        k, v = given["cache_k"].clone(), given["cache_v"].clone()
        kept = dependent.setup(*steps[0], k, v, cos, sin, **weights)
        logits = [dependent.run(t, p, k, v, cos, sin, **kept, **weights).float().clone() for t, p in steps]
        return logits, k, v, kept

    def check(config, given, steps, want, wk, wv):
        module, how = modules(config)
        weights, cos, sin = split(given)
        k, v = given["cache_k"].clone(), given["cache_v"].clone()
        made = module.made(k, **weights)
        errors, same = [], []
        for (t, p), w in zip(steps, want):
            got = module.step(made, model.EPS, t, p, k, v, cos, sin, **weights, **how).float()
            torch.cuda.synchronize()
            errors.append(round(((got - w).abs().max() / w.square().mean().sqrt()).item(), 4))
            same.append((got.argmax() == w.argmax()).item())
        return {
            "max_error_of_rms": errors, "same_token": all(same), "counters": made["counter"].abs().sum().item(),
            "cache_error": round(max((k.float() - wk.float()).abs().max().item(),
                                     (v.float() - wv.float()).abs().max().item()), 4),
        }, (module, how, made, k, v)  # fmt: skip

    def timed(call, n=20):
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        best = []
        for _ in range(5):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(n):
                call()
            end.record()
            torch.cuda.synchronize()
            best.append(start.elapsed_time(end) / n * 1000)
        walls = []
        for _ in range(20):
            t = time.perf_counter()
            call()
            torch.cuda.synchronize()
            walls.append((time.perf_counter() - t) * 1e6)
        return {"us_in_a_row": round(sorted(best)[2], 1), "us_alone": round(sorted(walls)[10], 1)}

    smalls = drawn("small")
    small_truth = truth(*smalls)
    given, steps = drawn(size)
    want, wk, wv, kept = truth(given, steps)
    weights, cos, sin = split(given)
    while len(list(Path("/tmp/one_trial_compiled").glob(f"{size}_*"))) < len(CONFIGS):
        time.sleep(0.05)  # a clock beside compilers is wrong
    if first == 0:
        k, v = given["cache_k"].clone(), given["cache_v"].clone()
        t, p = steps[0]
        call = lambda: dependent.run(t, p, wk, wv, cos, sin, **kept, **weights)  # noqa: E731
        say("dependent", **timed(call), us_replay=timed(kept["graph"].replay)["us_in_a_row"])
        del k, v
    for i in range(first, len(CONFIGS)):
        if time.time() > budget_end:
            break
        config = CONFIGS[i]
        marker = Path(f"/tmp/one_trial_compiled/{size}_{i}")
        while not marker.exists():
            time.sleep(0.05)
        if marker.read_text():
            say("failed", i=i, config=config, why=marker.read_text()[-400:])
            continue
        say("start", i=i)
        try:
            out = {}
            if i == 0:
                out["small"], _ = check(config, *smalls, *small_truth[:3])
                say("small", **out)
            out["check"], (module, how, made, k, v) = check(config, given, steps, want, wk, wv)
            t, p = steps[2]
            call = lambda: module.step(made, model.EPS, t, p, k, v, cos, sin, **weights, **how)  # noqa: E731
            out["launch"] = timed(call)
            try:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    call()
                out["graph"] = timed(graph.replay)
            except Exception as error:  # noqa: BLE001
                out["graph_error"] = str(error)[:200]
            say("result", i=i, config=config, **out)
            del k, v, made, call
        except Exception as error:  # noqa: BLE001
            say("failed", i=i, config=config, why=f"{type(error).__name__}: {error}"[:400])
            if "CUDA" in str(error):
                os._exit(3)
    say("end")


def main(size, seconds):
    begin = time.time()
    end = begin + seconds
    folder = Path("/tmp/one_trial_compiled")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    me = [sys.executable, str(Path(__file__).resolve())]
    jobs = [("small", 0)] + [(size, i) for i in range(len(CONFIGS))]
    running, results, worker, first, started, small_ready = {}, [], None, 0, None, False
    wide = max(2, min(12, (os.cpu_count() or 2) - 3))
    while True:
        while jobs and len(running) < wide:
            job = jobs.pop(0)
            running[job] = subprocess.Popen([*me, "--compile", job[0], str(job[1])], stdout=subprocess.DEVNULL,
                                            stderr=open(folder / f"err_{job[0]}_{job[1]}", "w"))  # fmt: skip
        for job, process in list(running.items()):
            if process.poll() is not None:
                del running[job]
                error = "" if process.returncode == 0 else (folder / f"err_{job[0]}_{job[1]}").read_text()[-600:] + "!"
                if job[0] == "small":
                    small_ready = True
                    continue
                if job[1] == 0:
                    print(f"[{time.time() - begin:.0f} s] compiled the first: {error or 'ok'}", flush=True)
                (folder / f"tmp_{job[1]}").write_text(error)
                (folder / f"tmp_{job[1]}").rename(folder / f"{size}_{job[1]}")
        if worker is None:
            worker = subprocess.Popen([*me, "--work", size, str(first), str(end)], stdout=subprocess.PIPE, bufsize=0)
            heard, pending, current = time.time(), b"", None
        if select.select([worker.stdout], [], [], 0.1)[0]:
            chunk = os.read(worker.stdout.fileno(), 65536)
            pending += chunk
            heard = time.time()
            *lines, pending = pending.split(b"\n")
            for line in lines:
                said = json.loads(line)
                if said["kind"] == "start":
                    current = said["i"]
                    continue
                print(f"[{time.time() - begin:.0f} s]", json.dumps(said), flush=True)
                if said["kind"] in ("result", "failed"):
                    first, current = said["i"] + 1, None
                    if said["kind"] == "result":
                        results.append(said)
                if said["kind"] == "end":
                    end = 0
            if not chunk and worker.poll() is not None:
                if end == 0:
                    break
                print(f"worker ended: {worker.returncode}", flush=True)
                first = max(first, (current if current is not None else first) + (current is not None))
                if current is None and worker.returncode not in (3,):
                    break  # it fails outside a configuration
                worker = None
        elif current is not None and time.time() - heard > 15:
            print(f"[{time.time() - begin:.0f} s] HANGS: {CONFIGS[current]}", flush=True)
            worker.kill()
            worker.wait()
            first, worker = current + 1, None
        if time.time() > begin + seconds + 5 or first >= len(CONFIGS):
            break
    for process in [*running.values(), worker]:
        if process is not None and process.poll() is None:
            process.kill()
    good = [r for r in results if "diag" not in r["config"] and r["check"]["same_token"]]
    for r in sorted(good, key=lambda r: r.get("graph", r["launch"])["us_in_a_row"])[:3]:
        print("BEST", r.get("graph", r["launch"])["us_in_a_row"], json.dumps(r["config"]), flush=True)
    _ = started, small_ready


if __name__ == "__main__":
    if sys.argv[1] == "--compile":
        compile_ahead(sys.argv[2], CONFIGS[int(sys.argv[3])])
    elif sys.argv[1] == "--work":
        work(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        main(sys.argv[1], float(sys.argv[2]))
