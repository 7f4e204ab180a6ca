"""The tables, figure and numbers of scale.py: predictions, and predictions beside measurements."""

import json
import statistics
from dataclasses import asdict

import alpha_beta
from configurations import MACHINES, MODELS, PUBLISHED, gpu_of
from scaling import ROOM, best, candidates, predict, skip_reason

from common.pairs.user_error import UserError
from common.pairs.wide_tables import TIE, print_table
from common.record.files import check_writable, write_text
from common.show.console import make_console, print_wrapped
from common.show.formats import binary, digits, seconds
from common.show.plot import INK, legend, new_figure, plain_ticks, save, style

STRATEGIES = ("data", "ZeRO-1", "ZeRO-2", "ZeRO-3", "tensor", "pipeline", "expert", "any")
HEADINGS = ("GPUs", "strategy", "step", "efficiency", "compute", "bubble", "exchanges")
LAYOUT_HEADINGS = ("GPUs", "strategy", "layout", "memory a GPU")
WAYS = ("ring", "two-level ring", "tree", "two-level tree")
ASSUMPTIONS = (
    "Computing takes a share of the datasheet's bf16 rate, equal at all sizes. Adam: 16 bytes a parameter, and an "
    "update at DRAM's rate. Stages, experts and ranks have equal work.",
    "No s x s matrix of attention is kept (FlashAttention). Tensor ranks divide norms, too (sequence parallelism). A "
    f"layout fits if it needs at most {ROOM:.0%} of a GPU's memory.",
    "Copies exchange gradients and parameters layer by layer. A step takes from as much of this hidden as possible "
    "(behind the last backward pass; ZeRO-3: behind all computing) to nothing hidden. What tensor, expert and pipeline "
    "ranks exchange is never hidden.",
    "A collective takes the fastest of ring, two-level ring and tree; two levels do not overlap. Each GPU has its own "
    "adapter. Switches slow nothing down, nothing fails, no rank is late, data is there.",
    "Efficiency is the time of the model's own FLOPs (6 a parameter and token, and all of attention) over the step's.",
    "A step also has what has no column: Adam's update, and exchanges below 0.5% of the step (--json has all).",
)
EXCHANGES = ("tensor", "expert", "stages", "data")


def show(args) -> int:
    """Print what is asked for, and write the files. Raises UserError."""
    for path in filter(None, (args.json, args.plot)):
        check_writable(path)
    console = make_console()
    if args.check is None:
        gpu, sources = gpu_of(args.machine, args.share, args.fit, args.fit_between)
        rows = predicted(args, gpu)
        said = [f"{args.model}: {MODELS[args.model].source}", *sources, *ASSUMPTIONS]
        told = {"model": args.model, "assumptions": said, "rows": [numbers(*row, gpu) for row in rows]}
        if args.plot:
            save(figure(args.model, told["rows"], gpu), args.plot)
        tables(args, rows, gpu, console)
        for text in ("assumptions", *(f"- {text}" for text in said)):
            print_wrapped(text, console)
    else:
        records = [alpha_beta.load(path) for path in args.check]
        told = {"steps": steps(console), "collectives": collectives(records, console) if records else []}
    if args.json:
        write_text(args.json, json.dumps(told, indent=1))
    return 0


def predicted(args, gpu):
    """[(GPUs, strategy, (Layout, Step) or None, why not)]. Raises UserError."""
    model, rows = MODELS[args.model], []
    strategies = ["given"] if args.layout else [each for each in STRATEGIES if each != "expert" or model.experts > 1]
    for gpus in args.gpus:
        batch = args.per_gpu * gpus if args.per_gpu else args.batch
        for strategy in strategies:
            layouts = [args.layout] if args.layout else candidates(model, gpu, strategy)
            found = best(model, layouts, gpu, gpus, batch, args.sequence or model.context)
            rows.append((gpus, strategy, found, "" if found else skip_reason(model, layouts[0], gpus, batch)))
    if not any(found for _, _, found, _ in rows):
        raise UserError(f"no layout is possible: {rows[0][-1]}")
    return rows


def tables(args, rows, gpu, console):
    model, many = MODELS[args.model], args.per_gpu or args.batch
    batch = f"{many} sequence{'s' * (many > 1)}{' a GPU' if args.per_gpu else ''}"
    work = f"a step of {batch} of {args.sequence or model.context} tokens"
    title = f"{args.model} ({model.parameters / 1e9:.1f} billion parameters) on {args.machine}, {work}"
    possible = [row for row in rows if row[2]]
    print_table(title, HEADINGS, [times_of(*row[:3]) for row in possible], console, keys=2)
    layouts = [layout_of(*row[:3], gpu) for row in possible]
    print_table("the layouts of these steps", LAYOUT_HEADINGS, layouts, console, keys=2)
    reasons = {}
    for gpus, strategy, found, reason in rows:
        if not found:
            reasons.setdefault((gpus, reason), []).append(strategy)
    for (gpus, reason), strategies in reasons.items():
        print_wrapped(f"not possible on {gpus:,} GPUs: {', '.join(strategies)}: {reason}", console)
    lines, gradients = [], 2 * model.parameters
    for gpus in args.gpus:
        for size, said in ((1e6, "1 MB"), (gradients, f"{digits(gradients / 1e9)} GB")):
            ways = alpha_beta.ways("all_reduce", size, gpus, min(gpus, gpu.links.gpus), gpu.links)
            lines.append([f"{gpus:,}", said, *(seconds(ways[way]) if way in ways else "" for way in WAYS)])
    headings = ("GPUs", "bytes", *WAYS)
    print_table("one all_reduce, of 1 MB and of all gradients", headings, lines, console, 2, whole_cells=True)


def times_of(gpus, strategy, found):
    """One row under HEADINGS. Least and longest step: with all hidden that can be, and with nothing hidden."""
    step = found[1]
    parts = [f"{name} {seconds(step.parts[name])}" for name in EXCHANGES if step.parts[name] >= 0.005 * step.seconds]
    compute = seconds(step.parts["compute"] + step.parts["recompute"])
    bubble = seconds(step.parts["bubble"]) if step.parts["bubble"] else ""
    shares = dict.fromkeys(f"{100 * step.parts['compute'] / took:.0f}" for took in (step.seconds, step.least))
    took = in_one_unit(list(dict.fromkeys(map(seconds, (step.least, step.seconds)))), " to ")
    return [f"{gpus:,}", strategy, *map(tied, (took, f"{' to '.join(shares)}%", compute, bubble)), listed(parts)]


def layout_of(gpus, strategy, found, gpu):
    """One row under LAYOUT_HEADINGS."""
    layout, step = found
    fits = "" if step.bytes <= ROOM * gpu.memory else " (too much)"
    return [f"{gpus:,}", strategy, listed(str(layout).split(", ")), tied(f"{digits(step.bytes / 1e9)} GB{fits}")]


def in_one_unit(times, between):
    """Times as text, with a unit that they share at the end alone: `38.5 to 41.3 s`."""
    numbers, units = zip(*(time.split() for time in times), strict=True)
    return f"{between.join(numbers)} {units[0]}" if len(set(units)) == 1 else between.join(times)


def tied(text):
    return text.replace(" ", TIE)


def listed(parts):
    """A cell that is broken between its parts."""
    return ", ".join(map(tied, parts))


def numbers(gpus, strategy, found, reason, gpu):
    """One row as JSON. efficiency: with nothing hidden, and with all hidden that can be."""
    if not found:
        return {"gpus": gpus, "strategy": strategy, "reason": reason}
    layout, step = found
    times = {"parts_s": step.parts, "step_s": step.seconds, "least_s": step.least}
    times["efficiency"] = [step.parts["compute"] / took for took in (step.seconds, step.least)]
    memory = {"memory_bytes": step.memory, "fits": step.bytes <= ROOM * gpu.memory}
    return {"gpus": gpus, "strategy": strategy, "layout": asdict(layout), **times, **memory}


def figure(model, rows, gpu):
    """Efficiency and memory over GPUs, a line for each strategy; a band where exchanges may be hidden or not."""
    drawn, ((above,), (below,)) = new_figure(8.0, 8.0, 2, 1, sharex=True)
    for place, strategy in enumerate(dict.fromkeys(row["strategy"] for row in rows)):
        own = [row for row in rows if row["strategy"] == strategy and "layout" in row]
        gpus = [row["gpus"] for row in own]
        low, high = ([row["efficiency"][end] for row in own] for end in (0, 1))
        above.plot(gpus, low, label=strategy, **style(place))
        above.fill_between(gpus, low, high, color=style(place)["color"], alpha=0.15)
        below.plot(gpus, [sum(row["memory_bytes"].values()) / 1e9 for row in own], label=strategy, **style(place))
    below.axhline(gpu.memory / 1e9, color=INK, linestyle=":", label="a GPU has")
    above.set(xscale="log", ylim=(0, 1), ylabel="efficiency (band: exchanges hidden)", title=f"{model}, predicted")
    below.set(yscale="log", xlabel="GPUs", ylabel="memory a GPU (GB)")
    counts = sorted({row["gpus"] for row in rows})
    below.set_xticks(counts, [f"{each:,}" for each in counts])
    below.minorticks_off()
    plain_ticks(below.yaxis)
    legend(below)
    return drawn


def steps(console):
    """Published steps beside predicted ones: the first of each source sets the share of the bf16 rate."""
    shares, lines, told = {}, [], []
    for each in PUBLISHED:
        model = MODELS[each.model]
        flops = model.flops(model.context, each.layout.recompute) * each.batch * model.context / each.gpus
        measured, is_first = flops / (each.tflops * 1e12), each.source not in shares
        if is_first:  # a step is a / share + b
            whole, half = (published(each, share).seconds for share in (1.0, 0.5))
            shares[each.source] = (half - whole) / (measured - (2 * whole - half))
        step = published(each, shares[each.source])
        error = "fitted" if is_first else f"{step.seconds / measured - 1:+.0%}"
        figures = map(tied, (seconds(step.seconds), seconds(measured), error, f"{digits(step.bytes / 1e9)} GB"))
        share, layout = f"{shares[each.source]:.3f}", listed(str(each.layout).split(", "))
        source = listed(each.source.split(", "))
        lines.append([each.model, f"{each.gpus:,}", layout, *figures, share, each.machine, source])
        times = {"predicted_s": step.seconds, "measured_s": measured, "memory_bytes": step.memory}
        told.append(asdict(each) | {"share": shares[each.source]} | times)
    columns = ("model", "GPUs", "layout", "predicted", "measured", "error", "memory", "share", "machine", "source")
    print_table("steps: predicted with nothing hidden, beside published", columns, lines, console, keys=3)
    for each in told:
        needs, has = sum(each["memory_bytes"].values()), MACHINES[each["machine"]][1]
        if needs > has:
            said = f"needs {digits(needs / 1e9)} GB by this prediction, and a GPU has {has / 1e9:.0f}"
            text = f"{each['model']} on {each['gpus']:,} GPUs {said}: the real steps ran, so it is too high"
            print_wrapped(text, console)
    return told


def published(each, share):
    model = MODELS[each.model]
    return predict(model, each.layout, gpu_of(each.machine, share)[0], each.gpus, each.batch, model.context)


def collectives(records, console):
    """Measured collectives beside those predicted from other sizes, and from fewer ranks. Raises UserError."""
    lines, told, unfitted = [], [], []
    for name, ranks, fitted, *job in alpha_beta.held_out(records):
        try:
            found = alpha_beta.beside(name, *job)
        except UserError as error:  # times in which noise is larger than what bytes cost: the others are shown
            lines.append([name, str(ranks), fitted, "no fit", "", "", ""])
            unfitted.append(str(error))
            continue
        ratios = sorted(predicted / measured for _, predicted, measured in found)
        both = [(size, in_one_unit([seconds(guess), seconds(took)], " / ")) for size, guess, took in ends(found)]
        pairs = [f"{tied(binary(size))}: {tied(times)}" for size, times in both]
        spread = tied(f"{digits(ratios[0])} to {digits(ratios[-1])}")
        lines.append([name, str(ranks), fitted, *pairs, digits(statistics.median(ratios)), spread])
        told.append({"collective": name, "ranks": ranks, "fitted": fitted, "bytes_predicted_s_measured_s": found})
    columns = ("collective", "ranks", "fitted to", "predicted / measured, smallest", "largest", "median", "from")
    print_table(f"collectives of {records[0].backend} on {records[0].device}", columns, lines, console, keys=3)
    for text in dict.fromkeys(unfitted):
        print_wrapped(text, console)
    return told


def ends(found):
    """(Bytes, predicted, median of measured) of the smallest and of the largest size."""
    for size in (min(found)[0], max(found)[0]):
        same = [each for each in found if each[0] == size]
        yield size, same[0][1], statistics.median(took for _, _, took in same)
