"""Which arrays a file's programs load, or store to, more often than once, in sectors."""

from common.isolation import process
from common.isolation.line import Say
from common.learn.heard import DOES
from common.learn.hints import followed
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair
from common.show.formats import digits
from common.traffic.data import SECTOR
from common.traffic.meter import different

DEADLINE_S = 60.0
MORE = 1.02  # times: below it an array is not named


def repeats(pair: Pair, size: str) -> str:
    """Of the pair's variant, in a child process: `loads x 2.00 times, stores to answer 1.33 times`; else empty."""
    try:
        found: str = process.call(_repeats, pair, size, environment=INTERPRETED, deadline_s=DEADLINE_S)
    except process.Death:  # the counts are known: this would only have said of which arrays they are
        return ""
    return found


def _repeats(pair: Pair, size: str, say: Say) -> str:
    arrays, _, heard = followed(pair, size)
    named = {array.data_ptr(): name for name, array in reversed([*arrays.items()])}  # the first name of several
    said = []
    for name, array in arrays.items():
        if named[array.data_ptr()] != name or not array.numel():
            continue
        begin, end = array.data_ptr(), array.data_ptr() + array.nbytes
        for kind, does in DOES.items():
            of_kind = (each.addresses[each.mask] for each in heard.accesses if each.kind == kind)
            inside = (places[(places >= begin) & (places < end)] for places in of_kind)
            times = sum(different(places // SECTOR).size for places in inside) / -(-array.nbytes // SECTOR)
            said += [f"{does} {name} {digits(times)} times"] * (times > MORE)
    return ", ".join(said)
