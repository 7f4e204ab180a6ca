"""Decoding with the versions of `decode`: tokens a second, where a token's time goes, and whether choices are equal."""

import os
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch

REPEATS, WARM = 3, 3  # timed passes, and tokens before the first
PROFILED = 8  # tokens
KL = {2: 1e-3, 4: 1e-6}  # bytes of a weight -> how far a version's probabilities may be from the baseline's
ROUNDINGS = 8  # of the largest logit: nearer than that, two choices are a draw
PARTS = {  # what a kernel or an operation of torch is a part of, by a word of its name
    "embed": "embedding", "project": "products", "gate_up": "products", "add": "products", "attend": "attention",
    "gemv": "products", "gemm": "products", "nvjet": "products", "cutlass": "products", "mv": "products",
    "mm": "products", "bmm": "attention",
    "softmax": "attention", "cat": "copies by cat", "index_copy": "rows of the cache",
}  # fmt: skip


@dataclass(frozen=True)
class Decoder:
    """A version with its own cache. Called with a token and a position, both [1], it returns logits [V]."""

    label: str
    step: partial


def decoder(label, module, inputs):
    own = {name: x.clone() if name.startswith("cache") else x for name, x in inputs.items()}
    state = module.setup(**own) if hasattr(module, "setup") else {}
    rest = {name: x for name, x in own.items() if name not in ("token", "position")}
    return Decoder(label, partial(module.run, **rest, **state))


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def generate(decoder, token, start, count):
    """The tokens [count] that a greedy choice makes after `token` [1] at position `start`. The host never waits."""
    token, position, chosen = token.clone(), torch.tensor([start], device=token.device), []
    for _ in range(count):
        token = decoder.step(token=token, position=position).argmax().view(1)
        chosen.append(token)
        position = position + 1
    return torch.cat(chosen)


def seconds_per_token(decoder, token, start, count):
    """The median of some passes over the same positions."""
    generate(decoder, token, start, min(WARM, count))
    passes = []
    for _ in range(REPEATS):
        synchronize(token.device)
        begin = time.perf_counter()
        generate(decoder, token, start, count)
        synchronize(token.device)
        passes.append((time.perf_counter() - begin) / count)
    return median(passes)


@contextmanager
def quiet():
    """Inside, nothing is written to stderr: the profiler says there that it begins and ends."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def part_of(name):
    words = name.lower().replace("::", " ").replace("_kernel", " ").split()
    if words == ["one"]:  # the kernel of `optimized_decode_one.py`
        return "the whole token"
    return next((part for key, part in PARTS.items() if any(key in word for word in words)), "other operations")


def waterfall(decoder, token, start, seconds):
    """Microseconds of one token by part; they add up to `seconds`, a token's time without the profiler.

    Of overlapping kernels each moment counts for the one that began first. What no kernel or operation explains is
    "between kernels" on a GPU, where nothing runs, and "Python" on a CPU. The profiler slows the host, not kernels: if
    what it saw takes longer than `seconds`, the last part is negative, and `excess` says so.
    """
    kind = token.device.type
    generate(decoder, token, start, WARM)
    with quiet(), torch.profiler.profile() as profile:
        generate(decoder, token, start, PROFILED)
        synchronize(token.device)
    parts = defaultdict(float)
    if kind == "cpu":
        for event in profile.key_averages():
            parts[part_of(event.key)] += event.self_cpu_time_total / PROFILED
    else:
        on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        done = 0.0
        for event in sorted(on_device, key=lambda event: event.time_range.start):
            begin, end = max(event.time_range.start, done), event.time_range.end
            parts[part_of(event.name)] += max(0.0, end - begin) / PROFILED
            done = max(done, end)
    rest = "between kernels" if kind == "cuda" else "Python"
    return dict(sorted(parts.items(), key=lambda part: -part[1])) | {rest: seconds * 1e6 - sum(parts.values())}


def excess(parts, seconds):
    """A line for a waterfall whose parts exceed the time; empty if they do not."""
    rest = list(parts.values())[-1]
    if rest >= 0:
        return ""
    share = -rest / (1e6 * seconds)
    return f"its parts exceed its time by {share:.0%}: the profiler slows the host, or other programs ran meanwhile"


def compare(decoder, baseline, tokens, start):
    """(Largest KL divergence from the baseline's probabilities, choices that differ and should not), teacher-forced.

    A choice may differ where the baseline's two best logits differ by fewer than ROUNDINGS of their type.
    """
    largest, wrong = 0.0, 0
    for i, token in enumerate(tokens):
        at = {"token": token.view(1), "position": torch.tensor([start + i], device=token.device)}
        expected, found = (each.step(**at).clone() for each in (baseline, decoder))
        log_p, log_q = (x.double().log_softmax(0) for x in (expected, found))
        largest = max(largest, float((log_p.exp() * (log_p - log_q)).sum()))
        first, second = expected.double().topk(2).values
        is_clear = first - second > ROUNDINGS * torch.finfo(expected.dtype).eps * expected.abs().max()
        wrong += bool(is_clear) and bool(expected.argmax() != found.argmax())
    return largest, wrong
