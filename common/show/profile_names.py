"""The names in a profile: what was called, how often, and how long it took, as a table for a terminal."""

from collections import defaultdict

from common.pairs.user_error import USUAL_WIDTH, printable
from common.record.profile_file import Profile, spans
from common.show.formats import seconds
from common.show.timeline_text import timeline_text

ROWS = 12
HEADINGS = ("called", "in all", "share", "name")
CALLED, TIME = 8, 10  # columns of the terminal
BACKWARD = "autograd::engine::evaluate_function: "  # before the name of an operation's backward pass


def totals(profile: Profile) -> dict[str, tuple[int, float]]:
    """Name -> (calls, seconds) of annotations, and of operators that no other operator called; the longest first.

    Some contain others: an annotation those that run in it.
    """
    found = defaultdict[str, list[float]](list)
    for event in spans(profile.traceEvents, "user_annotation", "cpu_op", "kernel", "gpu_memcpy", "gpu_memset"):
        if not event.args.get("depth"):
            found[event.name].append(1e-6 * event.dur)
    of_all = {name: (len(times), sum(times)) for name, times in found.items()}
    return dict(sorted(of_all.items(), key=lambda item: -item[1][1]))


def profile_text(profile: Profile, width: int | None) -> str:
    """The timeline, and the names that took most of it."""
    width, whole = width or USUAL_WIDTH, profile.about.profiled_s
    rows = [HEADINGS]
    for name, (calls, time) in [*totals(profile).items()][:ROWS]:
        rows.append((f"{calls}", seconds(time), f"{time / whole:.0%}", printable(name.replace(BACKWARD, "backward: "))))
    lines = [f"{a:>{CALLED}}  {b:>{TIME}}  {c:>6}  {name}"[:width] for a, b, c, name in rows]
    return "\n".join([timeline_text(profile, width), "What is named in it; some of these contain others:", *lines, ""])
