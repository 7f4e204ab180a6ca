"""Seconds of collectives from links with two numbers each, alpha and beta; what scale.py computes exchanges with.

A message of S bytes takes alpha + S / beta (Hockney 1994): a latency, and a bandwidth of one direction. Links have two
levels: within a machine, and between machines, where each GPU has a network adapter of its own. A group of ranks has
`here` of them on each machine.
"""

import math
from dataclasses import dataclass

import numpy as np

from common.pairs.user_error import UserError
from common.record.files import Format

HALVES = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "all_to_all": 1,
}  # rounds in which each rank has a turn
LEAST_SIZES = 4  # of which half are fitted: two points for two numbers


@dataclass(frozen=True)
class Link:
    """alpha: seconds of a message without content. beta: bytes per second in one direction."""

    alpha: float
    beta: float


@dataclass(frozen=True)
class Links:
    """Links within a machine of `gpus` GPUs, and between machines. By collective; `send_recv` serves for all others."""

    gpus: int
    within: dict[str, Link]
    between: dict[str, Link]

    def of(self, collective):
        return [level.get(collective) or level["send_recv"] for level in (self.within, self.between)]


@dataclass(frozen=True)
class Timed:
    """A record of collectives.py. times: collective -> [(bytes, seconds)]."""

    ranks: int
    backend: str
    device: str
    times: dict[str, list[tuple[int, float]]]


def shape(collective, ranks):
    """(Messages one after the other, bytes on the busiest link / S), with S as collectives.py defines it.

    Rings for all_reduce, all_gather and reduce_scatter; all_to_all by pairs; a binomial tree for broadcast (Thakur et
    al. 2005, Optimization of Collective Communication Operations in MPICH).
    """
    if collective in HALVES:
        return HALVES[collective] * (ranks - 1), HALVES[collective] * (ranks - 1) / ranks
    rounds = math.ceil(math.log2(ranks)) if collective == "broadcast" else 1
    return rounds, rounds


def ring(collective, size, ranks, link):
    """Seconds on one level; all_reduce: 2 (n - 1) (alpha + S / (n beta))."""
    steps, share = shape(collective, ranks)
    return steps * link.alpha + share * size / link.beta


def tree(size, ranks, link):
    """Seconds of an all_reduce over two binary trees, in pieces: 2 log2(n) alpha + 2 S / beta.

    Each half of S goes up and down one tree; an inner node of one is a leaf of the other (Sanders, Speck, Traeff 2009;
    NCCL since version 2.4).
    """
    return 2 * math.ceil(math.log2(ranks)) * link.alpha + 2 * size / link.beta


def ways(collective, size, ranks, here, links):
    """Way -> seconds of a collective of `ranks` ranks, `here` of them on each machine.

    "ring": one ring over all. A datum passes every hop, so that alphas add up (as in NCCL's src/graph/tuning.cc), and
    the slower hop sets the pace: the link within, or `here` adapters at once. "two-level": rings within each machine,
    then parts of S / here between machines. Time without overlap of the levels.
    """
    within, between = links.of(collective)
    machines = math.ceil(ranks / here)
    if ranks == 1:
        return {"alone": 0.0}
    if machines == 1:
        found = {"ring": ring(collective, size, ranks, within)}
        return found | ({"tree": tree(size, ranks, within)} if collective == "all_reduce" else {})
    if collective == "all_to_all":
        near, far = here - 1, ranks - here
        content = size / ranks * (near / within.beta + far / between.beta)
        return {"pairs": near * within.alpha + far * between.alpha + content}
    alpha = within.alpha + (between.alpha - within.alpha) * machines / ranks
    beta = min(within.beta, here * between.beta) if here > 1 else between.beta
    inside = ring(collective, size, here, within)
    found = {"ring": ring(collective, size, ranks, Link(alpha, beta))}
    found["two-level ring"] = inside + ring(collective, size / here, machines, between)
    if collective == "all_reduce":
        found["two-level tree"] = inside + tree(size / here, machines, between)
    return found


def seconds(collective, size, ranks, here, links):
    """The fastest way, as a library chooses that has timed them all."""
    return min(ways(collective, size, ranks, here, links).values())


def load(path):
    """Raises RecordError."""
    return Format("a record of ch6/collectives.py", 0, dict, _read).load(path)


def _read(data):
    times = {name: [(int(size), float(took)) for size, took in rows] for name, rows in data["times"].items()}
    if type(data["ranks"]) is not int or data["ranks"] < 2:
        raise ValueError(f"ranks is {data['ranks']}: two at least")
    if "send_recv" not in times or times.keys() - HALVES.keys() - {"send_recv", "broadcast"}:
        raise ValueError(f"its collectives are {', '.join(times)}; send_recv and those of collectives.py are known")
    if min(min(point) for rows in times.values() for point in rows) <= 0:
        raise ValueError("bytes and seconds must be above 0")
    return Timed(data["ranks"], str(data["backend"]), str(data["device"]), times)


def fit(sizes, seconds):
    """(alpha in seconds, beta in bytes per second) of seconds = alpha + size / beta; neither is negative."""
    s, t = np.asarray(sizes, float), np.asarray(seconds, float)
    (alpha, slope), *_ = np.linalg.lstsq(np.stack([1 / t, s / t], axis=1), np.ones_like(t), rcond=None)
    if alpha < 0:
        alpha, slope = 0.0, float((s / t).sum() / (s / t * s / t).sum())
    return float(alpha), float(1 / slope) if slope > 0 else float("inf")


def fitted(points, collective):
    """The link that explains points (ranks, bytes, seconds) of a collective: collectives.py's fit, for each message.

    Raises UserError if there are fewer than two sizes, or if more bytes take no more time.
    """
    shapes = [shape(collective, ranks) for ranks, _, _ in points]
    sizes = [share * size / steps for (steps, share), (_, size, _) in zip(shapes, points, strict=True)]
    if len(set(sizes)) < 2:
        raise UserError(f"{collective}: a fit needs two sizes, here are {len(set(sizes))}")
    alpha, beta = fit(sizes, [took / steps for (steps, _), (_, _, took) in zip(shapes, points, strict=True)])
    if not math.isfinite(beta):
        raise UserError(f"{collective}: more bytes take no more time, so that no bandwidth can be fitted")
    return Link(alpha, beta)


def points(records, collective):
    return [(record.ranks, size, took) for record in records for size, took in record.times.get(collective, [])]


def links_of(record):
    """Collective -> its link, from all times of a record. Raises UserError."""
    return {name: fitted(points([record], name), name) for name in record.times}


def held_out(records):
    """(Collective, ranks, fitted to what, points fitted, points to predict, shared), for `beside`. Raises UserError.

    Each second size from the other sizes of as many ranks; all times of n ranks from those of fewer. These on a CPU
    also as if ranks shared its cores, so that n ranks take n times as long.
    """
    if len({(record.backend, record.device) for record in records}) > 1:
        raise UserError("the records are of different backends or devices: check those of one")
    for ranks in sorted({record.ranks for record in records}):
        same = [record for record in records if record.ranks == ranks]
        fewer = [record for record in records if record.ranks < ranks]
        known = " and ".join(map(str, sorted({record.ranks for record in fewer})))
        for name in same[0].times:
            found, before = points(same, name), points(fewer, name)
            sizes = sorted({size for _, size, _ in found})
            if len(sizes) < LEAST_SIZES:
                few = f"{name} at {ranks} ranks: {len(sizes)} sizes, and half of them are fitted"
                raise UserError(f"{few}: {LEAST_SIZES} or more are needed")
            seen, others = ([each for each in found if each[1] in sizes[start::2]] for start in (0, 1))
            yield name, ranks, "other sizes", seen, others, False
            if fewer:
                yield name, ranks, f"{known} ranks", before, found, False
            if fewer and same[0].device == "cpu":
                yield name, ranks, f"{known} ranks, which share the cores", before, found, True


def beside(collective, seen, others, is_shared):
    """[(Bytes, predicted, measured)] of points, by a fit of others. Raises UserError."""
    turns = {ranks: ranks if is_shared else 1 for ranks, _, _ in [*seen, *others]}
    link = fitted([(ranks, size, took / turns[ranks]) for ranks, size, took in seen], collective)
    return [(size, turns[ranks] * ring(collective, size, ranks, link), took) for ranks, size, took in others]
