"""Tests and times ch7/optimized_decode_one.py (tagged words, a producer warp, mma) on a GPU.

From the repository's root, at that design's commit: PYTHONPATH=site:. python one7_test.py [PART ...]
Parts: check default large context (default: with variants and a profile). Each is a process with a time limit; what
fails is printed. Options: --budget SECONDS (58) for all; --variants a,b,c chooses; --help lists them.
"""
import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
import traceback

PARTS = {"check": 26, "default": 45, "large": 30, "context": 25}  # seconds at most
VARIANTS = {  # module constants, replacements in the source
    "as it is": ({}, []),
    "chunk 4096": ({"CHUNK": 4096}, []),
    "warps 15": ({"WARPS": 15}, []),
    "warps 12": ({"WARPS": 12}, []),
    "warps 8": ({"WARPS": 8}, []),
    "L2 as usual": ({}, [("L2::evict_first", "L2::evict_normal")]),
    "2 shares": ({"MOST_SHARES": 2}, []),
    "poll with a pause": ({}, [("        w = look_16(at);", "        __nanosleep(50); w = look_16(at);")]),
    "chunk 1024": ({"CHUNK": 1024}, []),
}
TICKS = [  # after which text a warp's clock is read, and what it has done since
    ("        norm(words, tag - 1, norms + 2 * layer * H, s.a, s);", "wait x, norm"),
    ("            if (lane == 0) put(qkv_words + row, packed(y, tag));\n        });", "qkv rows"),
    ("            attend(p, layer, item, position, tag, s);\n        }", "attend"),
    ("        merge(p, tag, s.b);", "wait parts, merge"),
    ("            keep(x_mid, i, row, s.x[i][warp] + y, tag);\n        });", "out rows"),
    ("        norm(x_mid, tag, norms + (2 * layer + 1) * H, s.a, s);", "wait x_mid, norm"),
    ("packed(gate / (1 + __expf(-gate)) * up, tag));\n        });", "gate, up rows"),
    ("{ s.b[at] = narrow(e); });\n        sync();", "wait inner"),
    ("            keep(words, i, row, s.x[i][warp] + y, tag);\n        });", "down rows"),
]
FIRST = ("token", "position", "cache_k", "cache_v", "w_cos", "w_sin")


def modules():
    sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), "ch7")]
    import torch

    torch.manual_seed(1)
    names = ("baseline_decode", "decode_one_kernel", "optimized_decode_one")
    return torch, *(importlib.import_module(name) for name in names)


def show(*words):
    print(*words, flush=True)


def caught(name, work):
    start = time.time()
    try:
        work()
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        show(f"FAILED {name}: {type(error).__name__}: {str(error)[:3000]}\n{text[-1500:]}")
    else:
        show(f"    ({name}: {time.time() - start:.1f} s)")


def error_of(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


def split(inputs):
    return [inputs[n] for n in FIRST], {n: v for n, v in inputs.items() if n not in FIRST}


def one_size(torch, base, one, size):
    x = base.inputs(**size, device="cuda")
    first, weights = split(x)
    state = one.setup(*first, **weights)
    wide = {n: t.double() if t.is_floating_point() else t for n, t in x.items()}
    for step in range(4):
        token = torch.randint(size["vocabulary"], (1,), device="cuda")
        position = (x["position"] - step).clamp(min=0)

        def answer(run, of, **state):
            k, v = of["cache_k"].clone(), of["cache_v"].clone()
            y = run(token, position, k, v, of["w_cos"], of["w_sin"], **split(of)[1], **state).clone()
            torch.cuda.synchronize()
            return y, k, v

        got, plain, want = answer(one.run, x, **state), answer(base.run, x), answer(base.run, wide)
        errors, theirs = ([error_of(a, b) for a, b in zip(each, want)] for each in (got, plain))
        good = all(a <= 3 * b + 1e-6 for a, b in zip(errors, theirs))
        show(f"      {'right' if good else 'WRONG'}: errors {' '.join(f'{e:.1e}' for e in errors)}; baseline's "
             f"{' '.join(f'{e:.1e}' for e in theirs)}")


def part_check():
    torch, base, _, one = modules()
    more = {
        "bf16 check": {**base.SIZES["check"], "dtype": "bfloat16"},
        "width 128, 300 keys": dict(hidden=256, layers=3, heads=8, kv_heads=2, width=128, inner=520, vocabulary=300,
                                    context=300, dtype="bfloat16"),
        "f16 count": base.SIZES["count"],
    }
    for name, size in {**{n: s for n, s in base.SIZES.items() if n.startswith("check")}, **more}.items():
        caught(name, lambda name=name, size=size: (show("  size", name), one_size(torch, base, one, size)))


def timed(torch, run, inputs, state, calls=50):
    first, weights = split(inputs)
    for _ in range(3):
        run(*first, **weights, **state)
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run(*first, **weights, **state)
        mark.record()
    torch.cuda.synchronize()
    events = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    walls = []
    for _ in range(20):
        start = time.perf_counter()
        run(*first, **weights, **state)
        torch.cuda.synchronize()
        walls.append(1e3 * (time.perf_counter() - start))
    return f"{statistics.median(events):.4f} ms (least {min(events):.4f}), wall clock {statistics.median(walls):.4f} ms"


def time_of(torch, one, x, name):
    first, weights = split(x)
    state = one.setup(*first, **weights)
    show(f"  {name}: {timed(torch, one.run, x, state)}")


def compare(torch, one, x, other_name="optimized_decode_dependent"):
    other = importlib.import_module(other_name)
    first, weights = split(x)
    answers = []
    for name, version in (("one", one), (other_name, other)):
        k, v = x["cache_k"].clone(), x["cache_v"].clone()
        state = version.setup(first[0], first[1], k, v, *first[4:], **weights)
        answers.append((version.run(first[0], first[1], k, v, *first[4:], **weights, **state).clone(), k, v))
        torch.cuda.synchronize()
        show(f"  {name}: {timed(torch, version.run, {**x, 'cache_k': k, 'cache_v': v}, state)}")
        del state
    (a, ak, av), (b, bk, bv) = answers
    show(f"  one against {other_name}: logits {error_of(a, b):.2e}, farthest {(a - b).abs().max().item():.3f}, "
         f"keys {error_of(ak, bk):.2e}, values {error_of(av, bv):.2e}, the same choice: {bool(a.argmax() == b.argmax())}")


def variants(torch, kernel, one, x):
    source, constants = kernel.SOURCE, {n: getattr(kernel, n) for n in ("WARPS", "CHUNK", "MOST_SHARES")}
    for name in os.environ["ONE_VARIANTS"].split(","):
        values, replacements = VARIANTS[name]
        for n, v in {**constants, **values}.items():
            setattr(kernel, n, v)
        kernel.SOURCE = source
        for a, b in replacements:
            if a not in kernel.SOURCE:
                show(f"  {name}: '{a}' is not in the source")
            kernel.SOURCE = kernel.SOURCE.replace(a, b)
        caught(name, lambda name=name: time_of(torch, one, x, name))
    kernel.SOURCE = source
    for n, v in constants.items():
        setattr(kernel, n, v)


def with_ticks(source):
    """The kernel with cycles of two warps of some CTAs, from part to part, over all layers."""
    begin = "    for (int layer = 0; layer < L; layer++) {\n        const u32 tag"
    end = "    if (blockIdx.x == 0 && threadIdx.x == 0) *steps"
    for text in (begin, end, *(anchor for anchor, _ in TICKS)):
        assert source.count(text) == 1, text
    for i, (anchor, _) in enumerate(TICKS):
        tick = f"\n        {{ long long now = clock64(); spent[{i}] += now - mark; mark = now; }}"
        source = source.replace(anchor, anchor + tick)
    source = source.replace(begin, "    long long spent[16] = {}, mark = clock64(), begun = mark;\n" + begin)
    names = " ".join("%lld" for _ in TICKS) + " head %lld all %lld cta %d warp %d"
    values = ", ".join(f"spent[{i}]" for i in range(len(TICKS)))
    some = "lane == 0 && (warp == 3 || warp == 12) && (blockIdx.x % 44 == 0 || blockIdx.x == CTAS - 1)"
    return source.replace(end, f'    if ({some}) printf("{names}\\n", {values}, clock64() - mark, clock64() - begun, '
                               f"(int)blockIdx.x, warp);\n" + end)


def profile(torch, kernel, one, x):
    kernel.SOURCE = with_ticks(kernel.SOURCE)
    show("  cycles of all layers:", "; ".join(name for _, name in TICKS), "(three steps; the last lines count)")
    first, weights = split(x)
    state = one.setup(*first, **weights)
    for _ in range(3):
        one.run(*first, **weights, **state)
    torch.cuda.synchronize()


def part_default():
    torch, base, kernel, one = modules()
    x = base.inputs(**base.SIZES["default"], device="cuda")
    caught("default", lambda: compare(torch, one, x))
    variants(torch, kernel, one, x)
    caught("profile", lambda: profile(torch, kernel, one, x))


def part_large():
    torch, base, kernel, one = modules()
    x = base.inputs(hidden=4096, layers=32, kv_heads=8, width=128, inner=14_336, vocabulary=128_256, device="cuda")
    caught("large", lambda: compare(torch, one, x))
    caught("large, chunk 4096", lambda: (setattr(kernel, "CHUNK", 4096), time_of(torch, one, x, "chunk 4096")))


def part_context():
    torch, base, _, one = modules()
    for context in (4096, 16_384):
        x = base.inputs(context=context, device="cuda")
        caught(f"context {context}", lambda x=x: compare(torch, one, x))


def main():
    parser = argparse.ArgumentParser(epilog="variants: " + "; ".join(VARIANTS))
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--budget", type=float, default=58)
    parser.add_argument("--variants", default=",".join(list(VARIANTS)[:6]))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        return globals()[f"part_{args.part}"]()
    end = time.time() + args.budget
    for part in args.parts or ["check", "default", "large"]:
        left = end - time.time()
        if left < 4:
            show(f"{part}: no time left")
            continue
        show(f"== {part} ({left:.0f} s left)")
        words = [sys.executable, "-u", os.path.abspath(__file__), "--part", part]
        process = subprocess.Popen(words, env={**os.environ, "ONE_VARIANTS": args.variants})
        try:
            if process.wait(timeout=min(PARTS[part], left)):
                show(f"FAILED: {part} ended with {process.returncode}")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            show(f"FAILED: {part} took longer than {min(PARTS[part], left):.0f} s: a hang, or slow to compile")


if __name__ == "__main__":
    main()
