"""Decode with every version of `decode`: tokens a second, share of the limit, and where a token's microseconds go.

The limit is the bytes that each token must read (all weights, and the keys and values so far) over the rate at which
this machine reads memory. Weights are drawn from a seed, and the choice is greedy: what is decoded means nothing, what
it takes is as with trained weights.

--check decodes 64 given tokens with each version: probabilities and choices must be those of the baseline.
--predict needs no GPU: the least time of a token on five GPUs, from their datasheets, and beside it what is recorded.
"""

import signal

if __name__ == "__main__":  # importing takes seconds, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout's `common`, whichever is installed

from common import program
from common.machine.device import datasheet, default_device, free_bytes, use_device
from common.machine.survey import survey_apart
from common.pairs.pair import class_of, discover, short
from common.pairs.user_error import UserError
from common.program import Parser, UsageError, device_name, picture_path
from common.record.files import check_writable
from common.record.store import chapter_records, current_filter
from common.show.summary import best_row

FOLDER = Path(__file__).resolve().parent
GPUS = (
    "NVIDIA B200", "NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090"
)  # fmt: skip
CHECKED, SEED, ROOM = 64, 0, 1.2  # tokens; of weights; times the bytes of the weights: buffers, and the rival's copies


def main() -> int:
    return program.status_of("generate.py", run)


def arguments() -> argparse.Namespace:
    parser = Parser("generate.py", description=__doc__)
    parser.add_argument("--size", help="of decode: benchmark.py --list -v shows them (default: default; on a CPU cpu)")
    parser.add_argument("--version", default="", metavar="NAME,...", help="static, graph, ... (default: all that run)")
    parser.add_argument("--tokens", type=int, default=256, metavar="N", help="to decode (default 256)")
    parser.add_argument("--device", type=device_name, metavar="DEV", help="cpu or cuda:N (default: the first GPU)")
    parser.add_argument("--plot", type=picture_path, metavar="F.png", help="draw the ladder")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="only compare what versions choose")
    what.add_argument("--predict", action="store_true", help="only the least time of a token on five GPUs")
    args = parser.parse_args()
    if args.tokens < 1:
        raise UsageError("--tokens: at least 1")
    return args


def run() -> int:
    """Raises UserError."""
    args = arguments()
    device = args.device or default_device()
    (pair,) = discover(FOLDER, "decode")
    size = args.size or ("default" if args.predict or device != "cpu" else "cpu")
    if size not in pair.timed_sizes:
        raise UsageError(f"no size {size}: choose one of {', '.join(pair.timed_sizes)}")
    if args.plot:
        check_writable(args.plot)  # before minutes of measuring
    sys.path.insert(0, str(FOLDER))
    import torch  # here and not above: --help and a wrong word should not wait for it

    torch.manual_seed(SEED)
    if args.predict:
        return predict(pair, size)
    survey_apart(device, with_limits=False)  # raises DeviceError where there is no such device
    use_device(device)  # with the threads that the harness uses: on a CPU all cores but one
    try:
        return decode(args, pair, size, device)
    except torch.OutOfMemoryError:
        raise UserError(f"size {size} does not fit in {device} beside what is there: choose a smaller --size") from None


def decode(args, pair, size, device):
    """Raises UserError."""
    import torch

    inputs = drawn(pair, size, device)
    context = inputs["cache_k"].shape[2]
    if args.tokens > context:
        raise UsageError(f"--tokens {args.tokens}: size {size} has room for {context}")
    decoders = make_decoders(pair, args.version, inputs, device)
    with torch.inference_mode():
        return check(decoders, inputs) if args.check else measure(args, size, decoders, inputs, device)


def shapes(pair, size):
    """The inputs without their data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return importlib.import_module("baseline_decode").inputs(**pair.sizes[size], device="cpu")


def drawn(pair, size, device):
    """The inputs of a size. Raises UserError if there is no memory for them."""
    needed, free = ROOM * sum(x.nbytes for x in shapes(pair, size).values()), free_bytes(device)
    if free is not None and needed > free:
        need, have = (f"{count / 1e9:.1f} GB" for count in (needed, free))
        raise UserError(f"size {size} needs {need}, {device} has {have} free: choose a smaller --size")
    return importlib.import_module("baseline_decode").inputs(**pair.sizes[size], device=device)


def make_decoders(pair, chosen, inputs, device):
    """The baseline and the versions that run here. Raises UsageError if one that was asked for does not."""
    import torch
    from decoding import decoder

    on_gpu, decoders, why, names = device != "cpu", [], {}, list[str]()
    capability = torch.cuda.get_device_capability(device) if on_gpu else (0, 0)
    for version in pair.versions:
        name = version.label.removeprefix("optimized/")
        needs = version.capability_needed(capability) if on_gpu else "needs a GPU"
        if needs and (on_gpu or version.needs_cuda or version.has_kernel):
            why[name] = needs
        else:
            names.append(name)
            if version is pair.baseline or not chosen or name in chosen.split(","):
                decoders.append(decoder(name, importlib.import_module(version.path.stem), inputs))
    for name in filter(None, chosen.split(",")):
        if name not in names:
            raise UsageError(f"--version {name}: {why.get(name) or 'there is none; here run ' + ', '.join(names)}")
    return decoders


def measure(args, size, decoders, inputs, device):
    """Print the table. Raises UserError."""
    import model
    from decoding import excess, seconds_per_token, waterfall

    info, limits = survey_apart(device)
    rate = limits["dram_read_bytes"]["measured"]
    least = model.cost(**inputs)["dram_read_bytes"] / rate
    start, rows = inputs["cache_k"].shape[2] - args.tokens, {}
    print(f"{info['name']}, size {size}: a token reads {least * rate / 1e9:.3g} GB, at {rate / 1e9:.4g} GB/s in "
          f"{least * 1e6:.4g} us")  # fmt: skip
    if least * rate < (info["cache_bytes"] or 0):
        print(f"its caches, {info['cache_bytes'] / 1e6:.0f} MB, may hold all of it: then memory is not the limit")
    for each in decoders:
        seconds = seconds_per_token(each, inputs["token"], start, args.tokens)
        rows[each.label] = seconds
        parts = waterfall(each, inputs["token"], start, seconds) if args.tokens >= 8 else {}
        print(
            f"\n{each.label:12} {1 / seconds:10.1f} tokens/s  {seconds * 1e6:9.1f} us  {least / seconds:6.1%} of limit"
        )
        for part, us in parts.items():
            print(f"    {part:24} {us:9.1f} us  {us / seconds / 1e6:6.1%}")
        if parts and (remark := excess(parts, seconds)):
            print(f"    {remark}")
    if args.plot:
        draw(rows, least, f"{info['name']}, size {size}", args.plot)
    return 0


def draw(rows, least, title, path):
    """Raises UserError if the picture cannot be written."""
    from matplotlib.figure import Figure

    from common.show.plot import save

    figure = Figure(figsize=(7, 0.5 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    axes.barh([*rows], [1 / seconds for seconds in rows.values()], color="#0072b2")
    axes.axvline(1 / least, color="#d55e00", linestyle="--", label="limit: bytes over this machine's read rate")
    axes.invert_yaxis()
    axes.set(xlabel="tokens a second", title=title)
    figure.legend(loc="outside lower center")
    save(figure, path)


def check(decoders, inputs):
    """Print how far each version is from the baseline; 1 if too far."""
    import torch
    from decoding import KL, compare

    baseline, *others = decoders
    context, limit = inputs["cache_k"].shape[2], KL[inputs["w_head"].element_size()]
    tokens = torch.randint(len(inputs["w_head"]), (min(CHECKED, context),), device=inputs["token"].device)
    failed = False
    for each in others:
        largest, wrong = compare(each, baseline, tokens, context - len(tokens))
        failed |= largest > limit or wrong > 0
        print(
            f"{each.label:12} KL at most {largest:.1e} (allowed {limit:.0e}), {wrong} of {len(tokens)} choices differ"
        )
    return int(failed)


def predict(pair, size):
    """Print the least time of a token on each GPU of GPUS, and what is recorded there. Raises RecordError."""
    import model

    count, recorded = model.cost(**shapes(pair, size))["dram_read_bytes"], fastest_recorded(pair, size)
    print(f"a token reads {count / 1e9:.3g} GB: the least time by each datasheet's bandwidth")
    for name in GPUS:
        rate = datasheet(name)[0]["dram_bytes"]
        print(f"    {name:26} {rate / 1e12:5.2f} TB/s  {count / rate * 1e3:7.3f} ms  {rate / count:8.0f} tokens/s"
              f"{recorded.get(name, '')}")  # fmt: skip
    return 0


def fastest_recorded(pair, size):
    """GPU -> the tokens a second of its fastest version, where this size is recorded of the present code."""
    is_current, texts = current_filter([pair]), {}
    for _, record in chapter_records(FOLDER.name, class_of(size)):
        for result in filter(is_current, record.pairs):
            if result.size == size and (row := best_row(result)):
                rate = 1 / result.arms[row.variant].median_s
                texts[record.environment["device"]["name"]] = f", recorded {rate:.0f} ({short(row.variant)})"
    return texts


if __name__ == "__main__":
    program.finish(main)
