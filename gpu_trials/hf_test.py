"""On a GPU machine, from the repository's root: PYTHONPATH=site:. python hf_test.py [check|default|...]

decode's library "transformers" at the default size in bf16: answer, cache, times, CUDA graphs. At most 90 s.
"""
import faulthandler
import sys
import time
import traceback
from statistics import median

sys.path.insert(0, "ch7")
import torch
import torch._inductor.cudagraph_trees as trees

T0 = time.time()
LIMIT_S = 88
SIZE = sys.argv[1] if len(sys.argv) > 1 else "default"
graphs = {"recorded": 0, "replayed": 0}


def say(*what):
    print(f"[{time.time() - T0:5.1f} s]", *what, flush=True)


def counted(cls, name, key):
    original = getattr(cls, name)

    def call(self, *arguments, **named):
        graphs[key] += 1
        return original(self, *arguments, **named)

    setattr(cls, name, call)


def attempt(title, action):
    try:
        return action()
    except Exception as error:
        say(f"{title}: FAILED: {type(error).__name__}: {str(error)[:600]}")
        traceback.print_exc(limit=-6)


def relative(a, b):
    return float((a.double() - b.double()).square().mean().sqrt() / b.double().square().mean().sqrt())


def times(call, token, flush, count=30):
    """Microseconds: by events (the device), and by the host's clock until the answer is there; medians."""
    device, wall = [], []
    for i in range(count + 5):
        fresh = (token + 17 * i) % VOCABULARY
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call(fresh)
        end.record()
        torch.cuda.synchronize()
        start = time.perf_counter()
        call(fresh)
        torch.cuda.synchronize()
        wall.append((time.perf_counter() - start) * 1e6)
        device.append(begin.elapsed_time(end) * 1e3)
    return f"{median(device[5:]):8.1f} us by events, {median(wall[5:]):8.1f} us on the wall clock"


def kernels(call, token):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        for _ in range(3):
            call(token)
        torch.cuda.synchronize()
    names = [e.name for e in p.events() if e.device_type == torch.autograd.DeviceType.CPU]
    on_gpu = [e for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    launches = {n: names.count(n) / 3 for n in ("cudaGraphLaunch", "cudaLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernelExC")}
    busy = sum(e.time_range.elapsed_us() for e in on_gpu) / 3
    top = {}
    for e in on_gpu:
        top[e.name[:60]] = top.get(e.name[:60], 0) + e.time_range.elapsed_us() / 3
    top = sorted(top.items(), key=lambda x: -x[1])[:6]
    return f"a call: {len(on_gpu) / 3:.0f} kernels and copies, {busy:.0f} us busy, {launches}\n" + "\n".join(f"          {us:8.1f} us {n}" for n, us in top)


def other_addresses(inputs):
    """The same shapes at other addresses, with other values."""
    return {name: (x.flip(0).contiguous() if name in ("cache_k", "cache_v", "w_head") else x) for name, x in inputs.items()}


def check(title, library, inputs):
    mine = {n: (x.clone() if n.startswith("cache") else x) for n, x in inputs.items()}
    theirs = {n: (x.clone() if n.startswith("cache") else x) for n, x in inputs.items()}
    expected = baseline.run(**theirs)
    begin = time.time()
    answer = library(**mine)
    torch.cuda.synchronize()
    say(f"{title}: first call {time.time() - begin:.1f} s")
    for i in range(3):  # other tokens, and rows that are written again
        at = {"token": (inputs["token"] + 31 * i) % VOCABULARY, "position": inputs["position"] - i}
        expected, answer = baseline.run(**theirs | at).clone(), library(**mine | at)
        caches = [float((mine[n].double() - theirs[n].double()).abs().max()) for n in ("cache_k", "cache_v")]
        rows = [relative(mine[n][:, :, at["position"]], theirs[n][:, :, at["position"]]) for n in ("cache_k", "cache_v")]
        ok = answer.dtype == expected.dtype and answer.shape == expected.shape
        say(f"  logits {tuple(answer.shape)} {answer.dtype} ok={ok} relative RMS {relative(answer, expected):.2e}, "
            f"farthest {float((answer.double() - expected.double()).abs().max()):.3g} of {float(expected.abs().max()):.3g}, "
            f"argmax equal {bool(answer.argmax() == expected.argmax())}; cache farthest {caches}, new rows RMS {rows}")
    return mine


def main():
    global baseline, VOCABULARY
    import baseline_decode as baseline
    import transformers_step
    from compiled import compiled
    import transformers

    say("torch", torch.__version__, "transformers", transformers.__version__, torch.cuda.get_device_name())
    torch.manual_seed(0)
    inputs = baseline.inputs(**baseline.SIZES[SIZE], device="cuda")
    VOCABULARY = len(inputs["w_head"])
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    position = inputs["position"]
    counted(trees.CUDAGraphNode, "__init__", "recorded")
    counted(trees.CUDAGraphNode, "run", "replayed")
    skipped = torch._dynamo.utils.counters["inductor"]

    def modes():
        for mode in ("reduce-overhead", None):
            transformers_step.compiled = lambda f, like, options=(), m=mode: compiled(f, like, options=options if m else ())
            transformers_step._bound.clear()
            before = dict(graphs)
            kept = check(f"mode {mode or 'default'}", baseline.library_transformers, inputs)
            call = lambda token: baseline.library_transformers(**kept | {"token": token, "position": position})
            say(f"  {times(call, inputs['token'], flush)}")
            say(f"  {attempt('profile', lambda: kernels(call, inputs['token']))}")
            used = {k: graphs[k] - before[k] for k in graphs}
            say(f"  CUDA graphs: {used}, skips {skipped['cudagraph_skips']}; dynamo {dict(torch._dynamo.utils.counters['stats'])}")
            if mode:
                others = other_addresses(inputs)
                check("  other addresses (should take no compile)", baseline.library_transformers, others)
                say(f"  dynamo {dict(torch._dynamo.utils.counters['stats'])}, graphs {graphs}, "
                    f"memory {torch.cuda.memory_allocated() / 2**30:.2f} GiB")
                del others

    def rival():
        own = {n: (x.clone() if n.startswith("cache") else x) for n, x in inputs.items()}
        call = lambda token: baseline.library_compiled(**own | {"token": token, "position": position})
        call(inputs["token"])
        say(f"library_compiled: {times(call, inputs['token'], flush)}")

    attempt("transformers", modes)
    attempt("rival", rival)
    say("done")


faulthandler.dump_traceback_later(LIMIT_S, exit=True)  # also where C++ or a kernel hangs
attempt("test", main)
