"""The block diagram of a machine, drawn from its sheet: the size of its parts, and the rates measured between them."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from common.hardware.sheet import Sheet
from common.show.formats import bandwidth, binary, seconds

INSIDE, CACHE, MEMORY, OUTSIDE = "#FFFFFF", "#D6EBF7", "#F8E3B8", "#E4E4E4"  # light tints of the course's colours
BOX, STEP = 0.9, 1.7  # heights: a box; a box and the arrow with its label above it
ONE, CHIP = 7.4, 10.0  # right edges: the first processor, the chip
ARROW = {"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0}
Box = tuple[float, float, float, float, str, str]  # left, bottom, width, height, text, colour


def facts(sheet: Sheet) -> dict[str, Any]:
    """The sheet's facts by name; a cache by its level only (`L3`)."""
    return {fact["name"].split(", shared by")[0]: fact["value"] for fact in sheet.facts}


def caches(sheet: Sheet) -> dict[str, int]:
    """Bytes of each cache, nearest first. The last one is shared by all processors."""
    values = facts(sheet)
    if sheet.environment["device"]["kind"] == "cpu":
        return {name: size for name, size in values.items() if name[0] == "L" and name[1:2].isdigit()}
    return {"L1": values.get("L1 and shared memory per SM", values["shared memory per SM"]), "L2": values["L2"]}


def diagram(sheet: Sheet) -> Figure:
    """Processors at the top, memory at the bottom, other devices at the right.

    Each arrow shows the measured rate of reads from the level below by all processors, and the latency of a load there.
    What the sheet lacks is left out.
    """
    sizes = caches(sheet)
    nearest, shared = list(sizes)[:-1], [*list(sizes)[-1:], "DRAM"]
    sizes["DRAM"] = facts(sheet)["memory"]
    figure = Figure(figsize=(8.0, 1.2 + 0.55 * STEP * len(sizes)), layout=ConstrainedLayoutEngine(w_pad=0.15))
    axes = figure.subplots()
    axes.set_title(_title(sheet))
    axes.axis("off")
    axes.use_sticky_edges = False
    axes.margins(0.02)
    name, boxes = _processors(sheet, -STEP * len(nearest))
    for place, level in enumerate([*nearest, *shared], 1):
        y, (left, right) = -STEP * place - 0.2 * (level in shared), (0.2, ONE - 0.2) if level in nearest else (0, CHIP)
        text = f"{'L1 and shared memory' if level == 'L1' else level}: {binary(sizes[level])}"
        boxes.append((left, y, right - left, BOX, text, MEMORY if level == "DRAM" else CACHE))
        axes.annotate("", (1, y + BOX), (1, y + STEP), arrowprops=ARROW)
        axes.text(1.25, y + (BOX + STEP) / 2, _level_text(sheet.levels.get(level, {})), va="center", fontsize=9)
    axes.text(ONE / 2, BOX + 0.15, name, ha="center", va="bottom")
    for place, text in enumerate(_link_texts(sheet)):
        at, colour = y + BOX / 2 + place * STEP, {"facecolor": OUTSIDE, "boxstyle": "square,pad=0.6"}
        axes.annotate(text, (CHIP, at), (CHIP + 0.8, at), va="center", fontsize=8, bbox=colour, arrowprops=ARROW)
    lefts, bottoms, widths, heights, texts, colours = zip(*boxes, strict=True)
    bars = axes.bar(lefts, heights, widths, bottoms, align="edge", color=colours, edgecolor="black", linewidth=0.8)
    axes.bar_label(bars, texts, label_type="center")
    return figure


def _title(sheet: Sheet) -> str:
    device = sheet.environment["device"]
    threads = f", {device['threads']} thread{'s' * (device['threads'] > 1)}" if device["kind"] == "cpu" else ""
    return f"{device['name']}{threads}, {sheet.environment['date'][:10]}"


def _processors(sheet: Sheet, lowest: float) -> tuple[str, list[Box]]:
    """The first processor's name, it and its parts; beside it as many others as fit. `lowest`: of the boxes in it."""
    values = facts(sheet)
    if sheet.environment["device"]["kind"] == "cpu":
        name, count, parts = "core", values["cores"], ["registers and vector units"]
    else:
        name, count = "SM", values["streaming multiprocessors"]
        registers = binary(4 * values["registers per SM, of 32 bits"])
        parts = [f"{values['warps per SM']} warps of 32 lanes", f"registers: {registers}"]
    others = {ONE + 0.2: 2, ONE + 1.0: "...", CHIP - 0.7: count} if count > 3 else {ONE + 0.2: 2} if count == 2 else {}
    bottom, height, width = lowest - 0.2, BOX + 0.8 - lowest, (ONE - 0.3) / len(parts)
    boxes: list[Box] = [(0, bottom, ONE, height, "", INSIDE)]
    boxes += [(x, bottom, 0.7, height, str(text), "none" if text == "..." else INSIDE) for x, text in others.items()]
    boxes += [(0.2 + place * width, 0, width - 0.1, BOX, text, INSIDE) for place, text in enumerate(parts)]
    return f"{name} 1 of {count}", boxes


def _level_text(level: dict[str, Any]) -> str:
    texts = [f"read {bandwidth(level['read'])}"] if "read" in level else []
    texts += [f"{level['cycles']:.0f} cycles = {seconds(level['seconds'])}"] if "cycles" in level else []
    return ", ".join(texts)


def _link_texts(sheet: Sheet) -> list[str]:
    """Other GPUs and the host, with the rates of the largest transfers."""
    rates = {name: bandwidth(points[-1][1]) for name, points in sheet.transfers.items() if points}
    texts = []
    peers = {name: rate for name, rate in rates.items() if " to cuda:" in name}
    if peers:
        name, rate = next(iter(peers.items()))
        way = next((link["link"] for link in sheet.links), "").split(",")[0]
        texts.append(f"{len(peers)} more GPU{'s' * (len(peers) > 1)}\n{way}\n{name}: {rate}")
    if "host to device, pinned" in rates:
        to, back = rates["host to device, pinned"], rates["device to host, pinned"]
        texts.append(f"host, pinned memory\nto the GPU {to}\nfrom it {back}")
    return texts
