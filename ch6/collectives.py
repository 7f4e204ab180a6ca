"""Time every collective over sizes, with the bandwidths of nccl-tests and a fit of latency and bandwidth.

    torchrun --nproc-per-node 2 ch6/collectives.py                   NCCL with a GPU for each process, else gloo
    torchrun --nnodes 2 --nproc-per-node 8 ... ch6/collectives.py    several machines: as any program of torchrun

A time is the largest of the processes' medians. algbw = S / t, busbw = algbw x factor, where S is the size in bytes: of
one process's buffer for all_reduce, broadcast and send_recv, of all parts together for the others. The fit is
t = alpha + S / beta, with the least squares of relative errors.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from group_ops import all_gather, exchange, reduce_scatter

MULTICAST = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS")
WARM_UP, CALLS = 3, 15


def bus_factor(collective, ranks):
    """busbw / algbw, by the definitions of nccl-tests."""
    shares = {"all_reduce": 2 * (ranks - 1) / ranks}
    shares |= dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), (ranks - 1) / ranks)
    return shares.get(collective, 1.0)


def fit(sizes, seconds):
    """(alpha in seconds, beta in bytes per second) of seconds = alpha + size / beta; neither is negative."""
    s, t = np.asarray(sizes, float), np.asarray(seconds, float)
    (alpha, slope), *_ = np.linalg.lstsq(np.stack([1 / t, s / t], axis=1), np.ones_like(t), rcond=None)
    if alpha < 0:
        alpha, slope = 0.0, float((s / t).sum() / (s / t * s / t).sum())
    return float(alpha), float(1 / slope) if slope > 0 else float("inf")


def calls(size, device):
    """Collective -> a call that moves this many bytes (S)."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    x, y = (torch.zeros(size // 4, device=device) for _ in range(2))
    part = x[: len(x) // ranks]

    def send_recv():
        for work in exchange(x, (rank + 1) % ranks, y, (rank - 1) % ranks):
            work.wait()

    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_gather": lambda: all_gather(y, part),
        "reduce_scatter": lambda: reduce_scatter(torch.empty_like(part), x),
        "all_to_all": lambda: dist.all_to_all_single(y, x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "send_recv": send_recv,
    }


def seconds_of(call, device):
    """The median of several calls, each after a barrier; the largest of the processes."""
    on_gpu, found = device.type == "cuda", []
    for number in range(WARM_UP + CALLS):
        dist.all_reduce(torch.zeros(1, device=device))
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if on_gpu else (None, None)
        begin = time.perf_counter()
        if on_gpu:
            start.record()
        call()
        if on_gpu:
            stop.record()
            torch.cuda.synchronize()
        took = start.elapsed_time(stop) / 1e3 if on_gpu else time.perf_counter() - begin
        found += [took] * (number >= WARM_UP)
    largest = torch.tensor([statistics.median(found)], dtype=torch.float64, device=device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return largest.item()


def measure(least, most, device):
    """Collective -> [(bytes, seconds)], at sizes from `least` to `most` by factors of 4."""
    unit, found = 4 * dist.get_world_size(), {}
    for size in [least * 4**i for i in range(32) if least * 4**i <= most]:
        whole = max(1, size // unit) * unit  # so that each process has an equal part
        for name, call in calls(whole, device).items():
            found.setdefault(name, []).append((whole, seconds_of(call, device)))
    return found


def lines(found, ranks):
    """The table as text, and the fit of each collective."""
    yield f"{'collective':15} {'bytes':>12} {'time us':>10} {'algbw GB/s':>11} {'busbw GB/s':>11}"
    for name, times in found.items():
        for size, took in times:
            algbw = size / took / 1e9
            yield f"{name:15} {size:12,} {took * 1e6:10.1f} {algbw:11.3f} {algbw * bus_factor(name, ranks):11.3f}"
        alpha, beta = fit(*zip(*times, strict=True))
        yield f"{name:15} fit: alpha {alpha * 1e6:.1f} us, beta {beta / 1e9:.3f} GB/s"


def record(found, ranks, device):
    """What is kept: the machine, the times, the fits. Multicast stays as the environment has it."""
    fits = {name: fit(*zip(*times, strict=True)) for name, times in found.items()}
    return {
        "ranks": ranks,
        "backend": dist.get_backend(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "environment": {name: os.environ[name] for name in MULTICAST if name in os.environ},
        "times": found,
        "fits": {name: {"alpha_s": alpha, "beta_bytes_s": beta} for name, (alpha, beta) in fits.items()},
    }


def draw(found, path):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    for (name, times), marker in zip(found.items(), "osD^vP", strict=True):
        axes.loglog(*zip(*((size, took * 1e6) for size, took in times), strict=True), marker=marker, label=name)
    axes.set_xlabel("size S (bytes)")
    axes.set_ylabel("time (us)")
    axes.legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=int, default=1 << 10, metavar="BYTES", help="the smallest size")
    parser.add_argument("--most", type=int, metavar="BYTES", help="the largest (1 GiB with NCCL, 16 MiB with gloo)")
    parser.add_argument("--json", type=Path, metavar="F", help="write the times and fits")
    parser.add_argument("--plot", type=Path, metavar="F.png", help="draw time over size")
    args = parser.parse_args()
    if "RANK" not in os.environ:
        sys.exit(f"start it with torchrun: torchrun --nproc-per-node 2 {sys.argv[0]}")
    local, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= here
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    found, ranks = measure(args.least, args.most or (1 << 30 if on_gpu else 1 << 24), device), dist.get_world_size()
    if dist.get_rank() == 0:
        print(*lines(found, ranks), sep="\n")
        if args.json:
            args.json.write_text(json.dumps(record(found, ranks, device), indent=1))
        if args.plot:
            draw(found, args.plot)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
