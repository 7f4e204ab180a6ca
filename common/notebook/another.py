"""A chapter's ratios on a second machine, in its notebook: predicted before it was measured, then measured."""

from IPython.display import Markdown, display

from common.show import another as page


def show_another(chapter: str) -> dict[str, float]:
    """Show predicted and measured ratios of a chapter, how far all predictions are off, and the worst of all.

    One section for each machine that was predicted and measured since; a line that says so if there is none. Returns
    the newest machine's measured ratios of the chapter, by pair and variant: `coalescing optimized`.
    """
    ratios: dict[str, float] = {}
    for _, predicted, found in page.predictions({}):
        if mine := [each for each in found if each.row.chapter == chapter]:
            name, worst = predicted.environment["device"]["name"], page.table(predicted, page.worst(found))
            legend = page.EXPLAINED.format(first=predicted.environment["machine"], name=name)
            lines = [f"**{name}**, this chapter", "", *page.table(predicted, mine), "", legend, "", "All chapters:", ""]
            lines += [*page.summary(predicted, found), "", f"The {page.WORST} worst:", "", *worst]
            display(Markdown("\n".join(lines)))
            ratios = ratios or {" ".join(each.cells()[:2]): each.measured for each in mine}
    if not ratios:
        print("no machine that was predicted has been measured since")
    return ratios
