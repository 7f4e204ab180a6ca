"""A pair's memory traffic in its notebook: counted here and now for each version, without a GPU."""

from collections.abc import Sequence
from dataclasses import replace

from IPython.display import Markdown, display

from common.notebook.cells import table
from common.notebook.gpu import gpu
from common.pairs.pair import Pair
from common.traffic import Traffic, show
from common.traffic.versions import count_pair
from common.xray.occupancy import MACHINES


def show_counts(pair: Pair, size: str = "count", labels: Sequence[str] | None = None) -> dict[str, Traffic]:
    """Show a pair's versions side by side, as multiples of the minimum work. Returns the traffic by label.

    All programs run at the sizes `count` and `check`, a sample of each grid's at other sizes. `labels`: the variants to
    count with the baseline; None for all.
    """
    variants = tuple(version for version in pair.variants if labels is None or version.label in labels)
    found = count_pair(replace(pair, variants=variants), size, MACHINES[gpu().arch])
    headings, rows = show.rows(found, {}, "")
    lines = [f"**{show.title(pair.name, size, found)}**", "", table(headings, rows).data if rows else ""]
    display(Markdown("\n".join([*lines, "", *(f"- {text}" for text in show.words(found))])))
    return {each.label: each.traffic for each in found if each.traffic}
