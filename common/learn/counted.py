"""The gates that need no GPU: the traffic that a kernel asks for, and the machine code that it is compiled to."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from common.learn.gate import Gate
from common.pairs.pair import Pair
from common.show.formats import digits
from common.traffic.data import SECTOR, Traffic
from common.traffic.versions import Counted, count_pair
from common.xray.occupancy import MACHINES
from common.xray.picture import xray

Gates = Mapping[str, float]  # of an exercise: gate -> the most, or of `load_bits` the least
FOR = ("sm_80", "sm_90")  # an A100 and an H100, for which the code is compiled
LOADS = ("global loads", "copies to shared memory")
TORCH = 0.1  # the most of all sectors that torch's operations may ask for: zeros for a sum, no more
USED = 0.9  # of each sector: a kernel below it reads what it does not use


def traffic(wanted: Gates, pair: Pair) -> Iterator[Gate]:
    if not {"sectors", "launches", "l2"} & wanted.keys():
        return
    size = "count" if "count" in pair.sizes else pair.check_sizes[-1]
    machine = MACHINES["sm_90"]
    if "l2_kib" in wanted:  # in proportion to the size `count`
        machine = replace(machine, l2_bytes=int(wanted["l2_kib"]) << 10, sms=int(wanted.get("sms", machine.sms)))
    ours, own = count_pair(pair, size, machine, models_l2="l2" in wanted)
    if not own.traffic or not ours.traffic:
        yield Gate("traffic", False if own.failed else None, f"not counted at size {size}: {own.reason or ours.reason}")
        return
    by_torch = sum(k.read_sectors + k.written_sectors for k in own.traffic.kernels if k.name.startswith("torch."))
    if by_torch > TORCH * own.traffic.sectors and "torch" not in wanted:
        names = ", ".join(k.name for k in own.traffic.kernels if k.name.startswith("torch."))
        text = f"{by_torch / own.traffic.sectors:.0%} of the traffic is torch's own ({names}): the kernel has to do it"
        yield Gate("traffic", False, text)
        return
    yield _sectors(own, own.traffic, ours.traffic, wanted)


def _sectors(own: Counted, found: Traffic, ours: Traffic, wanted: Gates) -> Gate:
    """Launches, then sectors over the least, then what an L2 would leave to the memory."""
    if found.launches > wanted.get("launches", found.launches):
        enough = f"{wanted['launches']} {'is' if wanted['launches'] == 1 else 'are'} enough"
        text = f"{_launches(found)}, where {enough}"
        return Gate("traffic", False, f"{text}: {', '.join(kernel.name for kernel in found.kernels)}")
    times = found.sectors * SECTOR / own.unit
    text = f"traffic {digits(times)}x of the least ({found.sectors:,.0f} sectors), {_launches(found)}"
    if times > wanted.get("sectors", times):
        useful = found.asked_bytes / found.sector_bytes
        why = f"reads and writes {digits(found.asked_bytes / own.unit)}x of the bytes that are needed"
        why = why if useful > USED else f"uses only {useful:.0%} of each sector: are the lanes of a warp side by side?"
        return Gate("traffic", False, f"{text}; at most {digits(wanted['sectors'])}x passes. It {why}")
    if "l2" in wanted and found.dram_bytes and ours.dram_bytes:
        of_ours = found.dram_bytes / ours.dram_bytes
        text += f"; behind a modelled L2 {digits(of_ours)}x of the solution's"
        if of_ours > wanted["l2"]:
            return Gate(
                "traffic",
                False,
                f"{text}, where {digits(wanted['l2'])}x passes: does what is used again come "
                "while the cache still has it, and which tiles run side by side?",
            )
    return Gate("traffic", True, text)


def _launches(found: Traffic) -> str:
    return f"{found.launches} launch{'es' * (found.launches != 1)}"


def code(wanted: Gates, pair: Pair) -> Iterator[Gate]:
    if not {"spills", "load_bits"} & wanted.keys():
        return
    said = []
    for picture in xray(Pair(pair.chapter, pair.name, pair.variants[0], (), pair.sizes), FOR):
        if picture.reason or not picture.kernels:
            yield Gate("code", False if picture.failed else None, f"{picture.architecture}: {picture.reason}")
            return
        spills = sum(kernel.spills for kernel in picture.kernels)
        bits = max(kernel.widest(what) for kernel in picture.kernels for what in LOADS)
        if spills > wanted.get("spills", spills):
            text = f"{spills} spills on {picture.architecture}: the block holds more values than there are registers"
            yield Gate("code", False, text)
            return
        if bits < wanted.get("load_bits", bits):
            text = (
                f"the widest load on {picture.architecture} has {bits} bits, where {wanted['load_bits']} are possible"
            )
            yield Gate("code", False, f"{text}: do neighbouring elements belong to one thread?")
            return
        said.append(f"{picture.architecture}: loads of {bits} bits, {spills} spills")
    yield Gate("code", True, "; ".join(said))
