"""The block diagram of a machine, drawn from its sheet: the size of its parts, and the rates measured between them."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from common.hardware.sheet import Sheet
from common.show.formats import bandwidth, binary, seconds

INSIDE, CACHE, MEMORY, OUTSIDE = "#FFFFFF", "#D6EBF7", "#F8E3B8", "#E4E4E4"  # light tints of the course's colours
BOX, GAP = 0.9, 0.8  # heights: a box; an arrow with its label
ONE, CHIP, EDGE = 7.4, 10.0, 14.0  # right edges: the first processor, the chip, what is outside


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
    height = 0.6 + BOX + (len(nearest) + len(shared)) * (BOX + GAP)
    figure = Figure(figsize=(8.0, 0.55 * height + 0.4), layout="constrained")
    axes = figure.subplots()
    outside = _link_texts(sheet)
    axes.set(xlim=(-0.1, (EDGE if outside else CHIP) + 0.1), ylim=(-0.1, height + 0.1), title=_title(sheet))
    axes.axis("off")
    below = height - 0.6 - BOX - len(nearest) * (BOX + GAP)
    _processors(axes, sheet, below, height)
    for place, name in enumerate([*nearest, *shared]):
        y = height - 0.5 - BOX - place * (BOX + GAP) - (name in shared) * 0.1
        _arrow(axes, (1.0, y), (1.0, y - GAP), _level_text(sheet.levels.get(name, {})))
        left, width = (0.2, ONE - 0.4) if name in nearest else (0.0, CHIP)
        text = f"{'L1 and shared memory' if name == 'L1' else name}: {binary(sizes[name])}"
        _box(axes, (left, y - GAP - BOX, width, BOX), text, MEMORY if name == "DRAM" else CACHE)
    for place, text in enumerate(outside):
        y = place * 2 * BOX
        _box(axes, (CHIP + 0.7, y, EDGE - CHIP - 0.7, 1.6 * BOX), text, OUTSIDE, fontsize=8)
        _arrow(axes, (CHIP, y + BOX / 2), (CHIP + 0.7, y + BOX / 2))
    return figure


def _title(sheet: Sheet) -> str:
    device = sheet.environment["device"]
    threads = f", {device['threads']} thread{'s' * (device['threads'] > 1)}" if device["kind"] == "cpu" else ""
    return f"{device['name']}{threads}, {sheet.environment['date'][:10]}"


def _processors(axes: Any, sheet: Sheet, bottom: float, top: float) -> None:
    """The first processor with its parts and its caches; beside it as many others as fit."""
    values = facts(sheet)
    if sheet.environment["device"]["kind"] == "cpu":
        name, count, parts = "core", values["cores"], ["registers and vector units"]
    else:
        name, count = "SM", values["streaming multiprocessors"]
        registers = binary(4 * values["registers per SM, of 32 bits"])
        parts = [f"{values['warps per SM']} warps of 32 lanes", f"registers: {registers}"]
    others = {ONE + 0.2: 2, ONE + 1.0: "...", CHIP - 0.7: count} if count > 3 else {ONE + 0.2: 2} if count == 2 else {}
    for x, text in others.items():
        _box(axes, (x, bottom, 0.7, top - bottom), str(text), INSIDE if text != "..." else "none")
    _box(axes, (0, bottom, ONE, top - bottom), "", INSIDE)
    axes.text(ONE / 2, top - 0.27, f"{name} 1 of {count}", ha="center", va="center")
    width = (ONE - 0.3) / len(parts)
    for place, text in enumerate(parts):
        _box(axes, (0.2 + place * width, top - 0.5 - BOX, width - 0.1, BOX), text, INSIDE)


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


def _box(axes: Any, place: tuple[float, float, float, float], text: str, color: str, fontsize: float = 10) -> None:
    """`place`: left, bottom, width, height."""
    x, y, width, height = place
    axes.add_patch(Rectangle((x, y), width, height, facecolor=color, edgecolor="black", linewidth=0.8))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=fontsize)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
    axes.text(start[0] + 0.25, (start[1] + end[1]) / 2, text, va="center", fontsize=9)
