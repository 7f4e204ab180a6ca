"""Time every collective over sizes, with the bandwidths of nccl-tests and a fit of latency and bandwidth.

    torchrun --nproc-per-node 2 ch6/collectives.py                   NCCL with a GPU for each process, else gloo
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29533 ch6/collectives.py
                                                                     two machines: on each of them; HOST is one

A time is the largest of the processes' medians. algbw = S / t, busbw = algbw x factor, where S is the size in bytes: of
one process's buffer for all_reduce, broadcast and send_recv, of all parts together for the others. The fit is
t = alpha + S / beta, with the least squares of relative errors.

exit status of a process: 0 done; 2 usage, or a file that cannot be written; 130 interrupted
"""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program

# isort: split
# after `common`, which says what to do where packages are missing
import torch
import torch.distributed as dist
from alpha_beta import fit
from group_ops import all_gather, exchange, reduce_scatter

from common.record.files import check_writable, write_text

MULTICAST = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS")
WARM_UP, CALLS = 3, 15
ISSUED = 1_000_000  # cycles: half a millisecond, for the host to issue a call. Its time is left out, as in the pairs


def bus_factor(collective, ranks):
    """busbw / algbw, by the definitions of nccl-tests."""
    shares = {"all_reduce": 2 * (ranks - 1) / ranks}
    shares |= dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), (ranks - 1) / ranks)
    return shares.get(collective, 1.0)


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
    """The median of several calls, each after a barrier; the largest of the processes.

    On GPUs the host issues the barrier and the call while the device sleeps. The sleep comes first: it is a number of
    cycles, and GPUs whose clocks differ do not wake together.
    """
    on_gpu, found = device.type == "cuda", []
    for number in range(WARM_UP + CALLS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if on_gpu else (None, None)
        if on_gpu:
            torch.cuda._sleep(ISSUED)
        dist.all_reduce(torch.zeros(1, device=device))
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


def sizes(least, most, ranks):
    """Bytes from `least` to `most` by factors of 4, each a multiple of 4 * ranks: every process has an equal part."""
    return sorted({max(1, least * 4**i // (4 * ranks)) * 4 * ranks for i in range(32) if least * 4**i <= most})


def measure(least, most, device):
    """Collective -> [(bytes, seconds)] at these sizes."""
    found = {}
    for size in sizes(least, most, dist.get_world_size()):
        for name, call in calls(size, device).items():
            found.setdefault(name, []).append((size, seconds_of(call, device)))
    return found


def lines(found, ranks):
    """The table as text, and the fit of each collective."""
    yield f"{'collective':15} {'bytes':>12} {'time us':>10} {'algbw GB/s':>11} {'busbw GB/s':>11}"
    for name, times in found.items():
        for size, took in times:
            algbw = size / took / 1e9
            yield f"{name:15} {size:12,} {took * 1e6:10.1f} {algbw:11.3f} {algbw * bus_factor(name, ranks):11.3f}"
        alpha, beta = fit(*zip(*times, strict=True))
        both = f"alpha {alpha * 1e6:.1f} us, beta {beta / 1e9:.3f} GB/s"
        yield f"{name:15} fit: {both if math.isfinite(beta) else 'none, as more bytes took no more time'}"


def name_of(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def record(found, ranks, device):
    """What is kept: the machine, the times, the fits that there are. Multicast stays as the environment has it."""
    fits = {name: fit(*zip(*times, strict=True)) for name, times in found.items()}
    fits = {name: each if math.isfinite(each[1]) else (None, None) for name, each in fits.items()}
    return {
        "ranks": ranks,
        "backend": dist.get_backend(),
        "device": name_of(device),
        "torch": torch.__version__,
        "environment": {name: os.environ[name] for name in MULTICAST if name in os.environ},
        "times": found,
        "fits": {name: {"alpha_s": alpha, "beta_bytes_s": beta} for name, (alpha, beta) in fits.items()},
    }


def draw(found, path):
    """Raises RecordError."""
    from common.show.plot import legend, new_figure, save, style

    figure, axes = new_figure()
    for place, (name, times) in enumerate(found.items()):
        axes.loglog(*zip(*((size, took * 1e6) for size, took in times), strict=True), label=name, **style(place))
    axes.set(xlabel="size S (bytes)", ylabel="time (us)")
    legend(axes)
    save(figure, path)


def arguments(on_gpu):
    """Raises UsageError."""
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    parser = program.Parser("collectives.py", description=__doc__)
    parser.add_argument("--least", type=int, default=1 << 10, metavar="BYTES", help="the smallest size")
    largest, said = 1 << 30 if on_gpu else 1 << 24, "the largest (1 GiB with NCCL, 16 MiB with gloo)"
    parser.add_argument("--most", type=int, default=largest, metavar="BYTES", help=said)
    parser.add_argument("--json", type=Path, metavar="F", help="write the times and fits")
    parser.add_argument("--plot", type=program.picture_path, metavar="F.png", help="draw time over size")
    args = parser.parse_args()
    if ranks < 2:
        raise program.UsageError(f"needs two processes or more: torchrun --nproc-per-node 2 {sys.argv[0]}")
    if args.least < 1 or len(sizes(args.least, args.most, ranks)) < 2:
        need = f"a fit needs two sizes, by factors of 4 and from 1 byte on, that {ranks} processes can divide"
        parser.error(f"--least {args.least} --most {args.most}: {need}")
    return args


def run():
    """Raises UserError."""
    rank, here = (int(os.environ.get(name, otherwise)) for name, otherwise in (("RANK", 0), ("LOCAL_WORLD_SIZE", 1)))
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= here
    try:
        args = arguments(on_gpu)
    except program.UsageError:
        time.sleep(10 if rank else 0)  # process 0 says it: torchrun ends all processes as soon as one has failed
        raise
    for path in filter(None, () if rank else (args.json, args.plot)):
        check_writable(path)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    if rank == 0:
        print(f"{dist.get_world_size()} processes, {dist.get_backend()}, {name_of(device)}", flush=True)
    found, ranks = measure(args.least, args.most, device), dist.get_world_size()
    if rank == 0:
        print(*lines(found, ranks), sep="\n")
        if args.json:
            write_text(args.json, json.dumps(record(found, ranks, device), indent=1))
        if args.plot:
            draw(found, args.plot)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    program.finish(lambda: program.status_of("collectives.py", run))
