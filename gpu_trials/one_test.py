"""Run from the repository's root on a GPU machine: PYTHONPATH=site:. python one_test.py. At most about 60 s."""
import os, subprocess, sys, time, traceback

BASE = {"WARPS": 16}
VARIANTS = {  # name -> (module constants, text replacements in the kernel)
    "plain": ({}, []),
    "watch first": ({}, [("if (n > 12)", "if (n > 1)")]),
    "watch 8": ({}, [("if (n > 12)", "if (n > 8)")]),
    "chunk 2048": ({}, [("CHUNK = 4096", "CHUNK = 2048")]),
    "12 warps": ({"WARPS": 12}, []),
    "8 warps": ({"WARPS": 8}, []),
    "2 slots": ({}, [("at_most(16, (LIMIT", "at_most(2, (LIMIT")]),
    "no prefetch": ({}, [('asm volatile("prefetch.global.L2 [%0];" ::"l"(p));', "")]),
    "no attention": ({}, [("if (share.part < PARTS) attend(", "if (share.part < 0) attend("),
                          ("if (share.head < KV) merge(words, tag, share.head);",
                           "for (int o = ring.warp * CTAS + blockIdx.x; o < ROWS; o += ALL) if (ring.lane == 0) send(words + Y + o, tag, 0.f);")]),
}
SIZES = {
    "check": dict(hidden=72, layers=2, heads=3, kv_heads=1, inner=40, vocabulary=101, context=127, dtype="float32"),
    "check/first": dict(hidden=64, layers=1, heads=2, kv_heads=2, width=32, inner=65, vocabulary=64, context=1, dtype="float32"),
    "check/129": dict(hidden=130, layers=1, heads=6, kv_heads=2, width=32, inner=257, vocabulary=67, context=129, dtype="float16"),
    "count": dict(hidden=256, layers=2, heads=4, kv_heads=2, inner=512, vocabulary=512, context=256, dtype="float16"),
    "bf16": dict(hidden=512, layers=3, heads=8, kv_heads=2, width=128, inner=1536, vocabulary=4000, context=700, dtype="bfloat16"),
    "default": {},
    "large": dict(hidden=4096, layers=32, kv_heads=8, width=128, inner=14336, vocabulary=128256),
}


def setup_module(variant):
    sys.path.insert(0, "ch7")
    import decode_one_kernel as kernel
    constants, edits = VARIANTS[variant]
    for name, value in (BASE | constants).items():
        setattr(kernel, name, value)
    for old, new in edits:
        if old not in kernel.PARTS + kernel.STEP:
            raise ValueError(f"{variant}: text not found: {old}")
        kernel.PARTS, kernel.STEP = kernel.PARTS.replace(old, new), kernel.STEP.replace(old, new)
    import optimized_decode_one
    return kernel, optimized_decode_one


def rel(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


def truth(model, torch, x, token, n):
    k, v = x["cache_k"].double(), x["cache_v"].double()
    w = {name: t.double() for name, t in x.items() if name.startswith("w_") and name not in ("w_cos", "w_sin")}

    def attend(layer, q, key, value):
        k[layer, :, n], v[layer, :, n] = key, value
        return model.attention(q, k[layer, :, : n + 1], v[layer, :, : n + 1])

    return model.step(attend, token, x["w_cos"][n].double(), x["w_sin"][n].double(), k.shape[3], torch.float64, **w), k, v


def checks(variant="plain"):
    import torch
    _, one = setup_module(variant)
    import model
    for name in ("check", "check/first", "check/129", "count", "bf16"):
        torch.manual_seed(0)
        x = one.inputs(**SIZES[name], device="cuda")
        state = one.setup(**{k: t for k, t in x.items()})
        for i in range(4):  # several steps of one setup: tags grow, caches keep their rows
            token = torch.randint(len(x["w_head"]), (1,), device="cuda")
            n = max(x["cache_k"].shape[2] - 1 - i, 0)
            position = torch.tensor([n], device="cuda")
            want, k, v = truth(model, torch, x, token, n)
            found = one.run(**{**x, "token": token, "position": position}, **state)
            torch.cuda.synchronize()
            print(f"{name:12} at {n:4}: logits {rel(found, want):.1e} keys {rel(x['cache_k'], k):.1e} values {rel(x['cache_v'], v):.1e}", flush=True)


def timed(variant, size, against):
    import torch
    kernel, one = setup_module(variant)
    torch.manual_seed(0)
    x = one.inputs(**SIZES[size], device="cuda")
    begin = time.perf_counter()
    state = one.setup(**x)
    x1 = {k: t for k, t in x.items()}
    logits = one.run(**x1, **state).clone()
    torch.cuda.synchronize()
    compiled = time.perf_counter() - begin

    def median_ms(module, state):
        times = []
        for _ in range(60):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)  # the launch is queued by then: the host's time does not count
            start.record(); module.run(**x, **state); end.record()
            times.append((start, end))
        torch.cuda.synchronize()
        ms = sorted(a.elapsed_time(b) for a, b in times[10:])
        return f"median {ms[len(ms) // 2]:.4f} ms, least {ms[0]:.4f}"

    print(f"{size:8} {variant:12} {median_ms(one, state)} (setup {compiled:.1f} s)", flush=True)
    if against:
        import optimized_decode_dependent as dependent
        other = dependent.setup(**x)
        want = dependent.run(**x, **other)
        torch.cuda.synchronize()
        print(f"{size:8} logits against dependent {rel(logits, want):.1e}, argmax {int(logits.argmax())} {int(want.argmax())}")
        print(f"{size:8} dependent    {median_ms(dependent, other)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        try:
            checks(sys.argv[2]) if sys.argv[1] == "checks" else timed(sys.argv[2], sys.argv[1], len(sys.argv) > 3)
        except BaseException as error:
            text = getattr(error, "get_message", lambda: traceback.format_exc())()
            print(f"FAILED {sys.argv[1:]}: {type(error).__name__}\n{str(text)[-3000:]}", flush=True)
            os._exit(1)
        os._exit(0)
    jobs = [("checks", "plain"), ("default", "plain", "against"), ("large", "plain", "against")]
    jobs += [("default", name) for name in VARIANTS if name != "plain"]
    end = time.time() + float(os.environ.get("SECONDS_IN_ALL", 58))
    for job in jobs:
        left = end - time.time()
        if left < 4:
            print("no time for", job)
            continue
        try:
            subprocess.run([sys.executable, __file__, *job], timeout=min(left, 25))
        except subprocess.TimeoutExpired:
            print("HUNG or too slow, ended:", job, flush=True)
