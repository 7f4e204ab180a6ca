"""The gates of a program of torch's operations, such as a training step: what it asks of host, device and memory.

They need no GPU, and are judged at the size `count`. The first that fails is told by its effect.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.isolation import worker
from common.learn.gate import Gate
from common.pairs.pair import Pair

SHOWN = 3  # of what there is most of
DEADLINE_S = 60.0
PARTS = {  # of a call -> what is told of it
    "forward": "forward passes, and all that is no backward pass and no optimizer,",
    "backward": "backward passes",
    "optimizer": "the optimizer's steps",
}
HOST = {"waits", "copies"}
COPIES = "A copy waits for the device, too: only out of pinned memory with non_blocking it surely does not"
WANTED = {*HOST, "operations", "unused", "peak"}


def gates(wanted: Mapping[str, Any], pair: Pair) -> Iterator[Gate]:
    """`host`, `operations`, `memory`: those that the exercise limits."""
    if not WANTED & wanted.keys():
        return
    versions, with_host = [pair.variants[0], pair.baseline][: 1 + ("peak" in wanted)], bool(HOST & wanted.keys())
    try:
        work, *ours = _works_of([version.path for version in versions], pair.sizes["count"], with_host)
    except worker.ChildFailed as death:
        yield Gate("host" if with_host else "memory", False, f"its work cannot be counted: {death}")
        return
    if with_host:
        yield _host(wanted, work)
    if "operations" in wanted:
        yield _operations(wanted["operations"], work)
    if {"unused", "peak"} & wanted.keys():
        yield _memory(wanted, work, wanted["peak"] * ours[0].peak_bytes if ours else 0.0)


def _works_of(paths: list[Path], size: dict[str, Any], with_host: bool) -> Any:
    """Raises ChildFailed."""
    from common.learn.device_work import works_of  # imports torch's optimizers

    return worker.call(works_of, paths, size, with_host, deadline_s=DEADLINE_S)


def _host(wanted: Mapping[str, Any], work: Any) -> Gate:
    waits, copies = work.waits.total(), work.copies.total()
    if waits > wanted.get("waits", waits):
        why = "each time the host launches nothing more until the device has done all that it was given"
        text = f"the host waits for the device {_times(waits)} in a call, where {_most(wanted['waits'])}"
        return Gate("host", False, f"{text}: {_list(work.waits)}. So {why}")
    if copies > wanted.get("copies", copies):
        text = f"the host copies to the device {_times(copies)} in a call, where {_most(wanted['copies'])}"
        return Gate("host", False, f"{text}. Most often: {_list(work.copies)}. {COPIES}")
    text = f"in a call the host copies to the device {_times(copies)}, and waits for it {_times(waits)} beside that"
    return Gate("host", True, f"{text}. {COPIES}" if copies else text)


def _operations(wanted: Mapping[str, int], work: Any) -> Gate:
    texts = []
    for part, most in wanted.items():
        found = work.operations[part]
        if found.total() > most:
            text = f"{PARTS[part]} give the device {found.total()} operations in a call, where {_most(most)}"
            return Gate("operations", False, f"{text}. Most often: {_list(found)}")
        texts.append(f"{part} {found.total()}")
    return Gate("operations", True, f"operations of a call: {', '.join(texts)}")


def _memory(wanted: Mapping[str, Any], work: Any, most: float) -> Gate:
    unused = work.unused.total()
    if unused > wanted.get("unused", unused):
        kept = Counter({text: size for text, size in work.unused.items() if size})
        largest = ", ".join(f"{text} ({_bytes(size)})" for text, size in kept.most_common(SHOWN))
        text = f"{_bytes(unused)} are kept for a backward pass that never comes, where {_most(wanted['unused'])}"
        return Gate("memory", False, f"{text}. Most of it: {largest}")
    peak = f"at its peak a call holds {_bytes(work.peak_bytes)} of its own tensors"
    if "peak" in wanted and work.peak_bytes > most:
        largest = ", ".join(
            f"{count} of {text} ({_bytes(size)})" for text, (size, count) in [*work.at_peak.items()][:SHOWN]
        )
        return Gate("memory", False, f"{peak}, where at most {_bytes(most)} pass. The most then: {largest}")
    return Gate("memory", True, peak)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _most(limit: float) -> str:
    return f"at most {limit} pass" if limit != 1 else "at most 1 passes"


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {text}" for text, count in counts.most_common(SHOWN))


def _bytes(amount: float) -> str:
    if amount < 1000:
        return f"{amount:.0f} bytes"
    return f"{amount / 1e6:.3g} MB" if amount >= 1e6 else f"{amount / 1e3:.3g} KB"
