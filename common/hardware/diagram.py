"""The block diagram of a machine, drawn from its sheet: the size of its parts, and the rates measured between them."""

from typing import Any

from matplotlib.figure import Figure

from common.hardware.sheet import Sheet
from common.show.formats import bandwidth, binary, seconds
from common.show.plot import INK, new_figure

INSIDE, CACHE, MEMORY, OUTSIDE = "none", "#D6EBF7", "#F8E3B8", "#E4E4E4"  # light tints of the course's colours
BOX, STEP, EDGE = 0.9, 1.7, 0.2  # heights: a box; a box and the arrow with its label above it; around inner boxes
ONE, CHIP = 7.4, 10.0  # right edges: the first processor, the chip
ARROW = {"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0, "color": INK}


def diagram(sheet: Sheet) -> Figure:
    """Processors at the top, memory at the bottom, other devices at the right.

    Each arrow shows the measured rate of reads from the level below by all processors, and the latency of a load there.
    What the sheet lacks is left out.
    """
    device, sizes = sheet.environment["device"], {**sheet.caches, "DRAM": sheet.values["memory"]}
    figure, axes = new_figure(height=1.2 + 0.55 * STEP * len(sizes))
    threads = f", {device['threads']} thread{'s' * (device['threads'] > 1)}" if device["kind"] == "cpu" else ""
    axes.set_title(f"{device['name']}{threads}, {sheet.environment['date'][:10]}")
    axes.axis("off")
    axes.use_sticky_edges = False
    axes.margins(0.02)
    figure.set_layout_engine("constrained", w_pad=0.15)  # inches: the frame of a text is no part of its width

    def draw_box(left: float, right: float, bottom: float, text: str, colour: str, height: float = BOX) -> None:
        bar = axes.bar(left, height, right - left, bottom, align="edge", color=colour, edgecolor=INK, linewidth=0.8)
        axes.bar_label(bar, [text], label_type="center", color=INK if colour == INSIDE else "black")

    (name, count), parts = _processor(sheet)
    lowest = -STEP * (len(sizes) - 2) - EDGE  # of the processors: the last cache and the memory serve all
    draw_box(0, ONE, lowest, "", INSIDE, BOX + 0.8 - lowest)
    axes.text(ONE / 2, BOX + 0.15, f"{name} 1 of {count}", ha="center", va="bottom")
    if count > 1:
        draw_box(ONE + EDGE, CHIP, lowest, f"{count - 1} more", INSIDE, BOX + 0.8 - lowest)
    width = (ONE - EDGE) / len(parts)
    for place, text in enumerate(parts):
        draw_box(EDGE + place * width, (place + 1) * width, 0, text, INSIDE)
    for place, (level, size) in enumerate(sizes.items(), 1):
        is_inner = place < len(sizes) - 1
        bottom, left, right = -STEP * place, EDGE * is_inner, ONE - EDGE if is_inner else CHIP
        bottom -= 0 if is_inner else EDGE
        text = f"{'L1 and shared memory' if level == 'L1' else level}: {binary(size)}"
        draw_box(left, right, bottom, text, MEMORY if level == "DRAM" else CACHE)
        axes.annotate("", (1, bottom + BOX), (1, bottom + STEP), arrowprops=ARROW)
        axes.text(1.25, bottom + (BOX + STEP) / 2, _level_text(sheet.levels.get(level, {})), va="center", fontsize=9)
    if text := _link_text(sheet):
        style = {"facecolor": OUTSIDE, "boxstyle": "square,pad=0.6"}
        ends = [(right, bottom + STEP + BOX / 2) for right in (CHIP, CHIP + 0.8)]  # from the last cache
        axes.annotate(text, *ends, va="center", fontsize=8, color="black", bbox=style, arrowprops=ARROW)
    return figure


def _processor(sheet: Sheet) -> tuple[tuple[str, int], list[str]]:
    """A processor's name, how many there are, and the parts of one beside its caches."""
    values = sheet.values
    if sheet.environment["device"]["kind"] == "cpu":
        return ("core", values["cores"]), ["registers and vector units"]
    registers = f"registers: {binary(4 * values['registers per SM, of 32 bits'])}"
    return ("SM", values["streaming multiprocessors"]), [f"{values['warps per SM']} warps of 32 lanes", registers]


def _level_text(level: dict[str, Any]) -> str:
    texts = [f"read {bandwidth(level['read'])}"] if "read" in level else []
    texts += [f"{level['cycles']:.0f} cycles = {seconds(level['seconds'])}"] if "cycles" in level else []
    return ", ".join(texts)


def _link_text(sheet: Sheet) -> str:
    """The rates of the largest transfers to and from pinned memory of the host, and to the first of other GPUs."""
    names = [name for name in sheet.transfers if "pageable" not in name][:3]
    rates = [f"{name}: {bandwidth(sheet.transfers[name][-1][1])}" for name in names]
    return "\n".join([*rates, *(link.link for link in sheet.links[:1])])
