"""The gates that need no GPU: the traffic that a kernel asks for, and the machine code that it is compiled to."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from common.isolation import worker
from common.learn.access_trace import DOES
from common.learn.diagnosis import run_traced
from common.learn.errors import spill_advice
from common.learn.gate import Gate
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair
from common.show.formats import digits
from common.traffic.data import SECTOR, Kernel, Traffic
from common.traffic.meter import SHARE, unique_sectors
from common.traffic.versions import VersionTraffic, count_pair
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture, xray

Gates = Mapping[str, Any]  # of an exercise: gate -> the most; of `load_bits`, `programs`, `least_launches` the least
FOR = ("sm_80", "sm_90")  # an A100 and an H100, for which the code is compiled
LOADS = ("global loads", "copies to shared memory")
TORCH = 0.1  # the most of all sectors that torch's operations may ask for: zeros for a sum, no more
USED = 0.9  # of each sector: a kernel below it reads what it does not use
DEADLINE_S = 60.0  # of a look at which arrays these are, without a word
MORE = 1.02  # times: an array that is asked for less often is not named
APART = 0.6  # of each sector: below it lanes of a warp lie apart
UNORDERED = "their order, so the last bits of a sum, differs from run to run. Can a program store its own sum?"
SHARED_SUM = "at one address they wait for each other. Can a program add up in registers first?"


def traffic(wanted: Gates, pair: Pair) -> Iterator[Gate]:
    """At the size `count`, and at those of `counted_at`, where no cache is modelled. The first that fails is told."""
    if not {"sectors", "launches", "least_launches", "atomics", "programs", "l2"} & wanted.keys():
        return
    first = "count" if "count" in pair.sizes else pair.check_sizes[-1]
    others = wanted.get("counted_at", [])
    if unknown := [size for size in others if size not in pair.sizes]:
        yield Gate("traffic", False, f"counted_at: there is no size {unknown[0]}")
        return
    gate = _counted(wanted, pair, first)
    for size in others:
        if gate.passed:
            at = ", ".join(f"{name}={value}" for name, value in pair.sizes[size].items())
            other = _counted({name: most for name, most in wanted.items() if name != "l2"}, pair, size)
            before = f"{gate.text}; " if other.passed else ""
            gate = replace(other, text=f"{before}at {at}: {other.text}")
    yield gate


def _counted(wanted: Gates, pair: Pair, size: str) -> Gate:
    """What the gates say of the traffic at one size."""
    machine = MACHINES["sm_90"]
    if "l2_kib" in wanted:  # in proportion to the size `count`
        machine = replace(machine, l2_bytes=int(wanted["l2_kib"]) << 10, sms=int(wanted.get("sms", machine.sms)))
    ours, variant = count_pair(pair, size, machine, models_l2="l2" in wanted)
    if not variant.traffic or not ours.traffic:
        why = f"not counted at size {size}: {variant.reason or ours.reason}"
        return Gate("traffic", False if variant.failed else None, why)
    by_torch = sum(k.read_sectors + k.written_sectors for k in variant.traffic.kernels if k.name.startswith("torch."))
    if by_torch > TORCH * variant.traffic.sectors:
        names = ", ".join(k.name for k in variant.traffic.kernels if k.name.startswith("torch."))
        share = f"{by_torch / variant.traffic.sectors:.0%} of the traffic"
        text = f"{share} is torch's own ({names}): the kernel has to do it (at most {TORCH:.0%} may be torch's)"
        return Gate("traffic", False, text)
    return _sectors(variant, variant.traffic, ours.traffic, wanted, lambda: repeats(pair, size, variant.unit))


def _sectors(variant: VersionTraffic, traffic: Traffic, ours: Traffic, wanted: Gates, often: Callable[[], str]) -> Gate:
    """Atomic operations, launches, programs, sectors over the least, and what an L2 would leave to the memory.

    `often()`: which arrays are asked for more than once.
    """
    if traffic.total.atomics > wanted.get("atomics", traffic.total.atomics):
        names = ", ".join(kernel.name for kernel in traffic.kernels if kernel.atomics)
        text = f"{traffic.total.atomics:,.0f} atomic operations ({names}), where at most {wanted['atomics']} pass"
        return Gate("traffic", False, f"{text}: {SHARED_SUM if wanted['atomics'] else UNORDERED}")
    if traffic.launches > wanted.get("launches", traffic.launches):
        enough = f"{wanted['launches']} {'is' if wanted['launches'] == 1 else 'are'} enough"
        text = f"{_launches(traffic)}, where {enough}"
        return Gate("traffic", False, f"{text}: {', '.join(map(_launched, traffic.kernels))}")
    if traffic.launches < wanted.get("least_launches", 0):
        why = "the task needs one after the other, not all in one"
        return Gate("traffic", False, f"{_launches(traffic)}, where {wanted['least_launches']} are asked for: {why}")
    busiest = max(traffic.kernels, key=lambda of: of.read_sectors + of.written_sectors, default=Kernel("no kernel"))
    if busiest.working < wanted.get("programs", 0):  # others have next to nothing to do
        text = f"{busiest.programs:g} program{'s' * (busiest.programs != 1)} ({busiest.name})"
        if busiest.working < busiest.programs:
            text += f", of which {busiest.working:g} share the work ({SHARE:.0%} or more of what one moves on average)"
        why = "a program runs on one SM, and the others have nothing to do. How can more programs share the work?"
        return Gate("traffic", False, f"{text}, where at least {wanted['programs']} pass: {why}")
    if not variant.unit > 0:
        return Gate("traffic", False, "the least traffic is not known: `cost` of the solution has to name its bytes")
    times = traffic.sectors * SECTOR / variant.unit
    limit = "" if "sectors" in wanted else ", which this exercise does not limit"
    text = f"traffic {digits(times)}x of the least ({traffic.sectors:,.0f} sectors{limit}), {_launches(traffic)}"
    if times > wanted.get("sectors", times):
        why = _why_too_many(traffic, variant.unit, often)
        return Gate("traffic", False, f"{text}; at most {digits(wanted['sectors'])}x passes. It {why}")
    if "l2" in wanted and traffic.dram_bytes and ours.dram_bytes:
        of_ours = traffic.dram_bytes / ours.dram_bytes
        text += f"; behind a modelled L2 {digits(of_ours)}x of the solution's"
        if of_ours > wanted["l2"]:
            return Gate(
                "traffic",
                False,
                f"{text}, where {digits(wanted['l2'])}x passes: does what is used again come "
                "while the cache still has it, and which programs run side by side?",
            )
    return Gate("traffic", True, text)


def _why_too_many(traffic: Traffic, unit: float, often: Callable[[], str]) -> str:
    """Why a kernel asks for more sectors than needed: its lanes lie apart, or it asks for arrays more than once."""
    useful = traffic.requested_bytes / traffic.sector_bytes
    if useful < APART:
        return f"uses only {useful:.0%} of each sector: are the lanes of a warp side by side?"
    what = f"reads and writes {digits(traffic.requested_bytes / unit)}x of the bytes that are needed"
    what = what if useful > USED else f"uses {useful:.0%} of each sector and {what}"
    return ": it ".join(filter(None, [what, often()]))


def repeats(pair: Pair, size: str, least_bytes: float) -> str:
    """Of the pair's variant, in a child process: `loads x 2.00 times (1.50x of the least)`; else empty."""
    try:
        text: str = worker.call(_repeats, pair, size, least_bytes, environment=INTERPRETED, deadline_s=DEADLINE_S)
    except worker.ChildFailed:  # the counts are known: this would only have said of which arrays they are
        return ""
    return text


def _repeats(pair: Pair, size: str, least_bytes: float, report: worker.Report) -> str:
    arrays, _, trace = run_traced(pair, size)
    named = {array.data_ptr(): name for name, array in reversed([*arrays.items()])}  # the first name of several
    phrases = []
    for name, array in arrays.items():
        if named[array.data_ptr()] != name or not array.numel():
            continue
        begin, end = array.data_ptr(), array.data_ptr() + array.nbytes
        for kind, does in DOES.items():
            of_kind = (access.addresses[access.mask] for access in trace.accesses if access.kind == kind)
            inside = (places[(places >= begin) & (places < end)] for places in of_kind)
            times = sum(unique_sectors(places // SECTOR).size for places in inside) / -(-array.nbytes // SECTOR)
            share = times * array.nbytes / least_bytes  # a small array may be asked for often at little cost
            phrases += [f"{does} {name} {digits(times)} times ({digits(share)}x of the least)"] * (times > MORE)
    return ", ".join(phrases)


def _launched(kernel: Kernel) -> str:
    return f"{kernel.launches} times {kernel.name}" if kernel.launches > 1 else kernel.name


def _launches(traffic: Traffic) -> str:
    return f"{traffic.launches} launch{'es' * (traffic.launches != 1)}"


def code(wanted: Gates, pair: Pair) -> Iterator[Gate]:
    if not {"spills", "spills_at", "load_bits"} & wanted.keys():
        return
    if unknown := [size for size in wanted.get("spills_at", {}) if size not in pair.sizes]:
        yield Gate("code", False, f"spills_at: there is no size {unknown[0]}")
        return
    texts = []
    for size, most in {"default": wanted.get("spills"), **wanted.get("spills_at", {})}.items():
        is_default = size == "default"
        for picture in xray(Pair(pair.chapter, pair.name, pair.variants[0], (), pair.sizes), FOR, size):
            where = picture.architecture + f" at size {size}" * (not is_default)
            gate = _code(picture, where, most, wanted.get("load_bits", 0) * is_default)
            if not gate.passed:
                yield gate
                return
            texts.append(gate.text)
    yield Gate("code", True, "; ".join(texts))


def _code(picture: Picture, where: str, most: int | None, least_bits: int) -> Gate:
    """Of one architecture: at most so many spills, the widest load at least so wide."""
    if picture.reason or not picture.kernels:
        return Gate("code", False if picture.failed else None, f"{where}: {picture.reason}")
    spills = sum(kernel.spills for kernel in picture.kernels)
    bits = max(kernel.widest(what) for kernel in picture.kernels for what in LOADS)
    if most is not None and spills > most:
        text = f"{spills} spills on {where}, where at most {most} pass"
        threads = max(picture.kernels, key=lambda kernel: kernel.spills).threads
        return Gate("code", False, f"{text}: {spill_advice(threads)}")
    if bits < least_bits:
        text = f"the widest load on {where} has {bits} bits, where {least_bits} are possible"
        helps = "(A larger block, or fewer warps)"
        return Gate("code", False, f"{text}: does a thread have {least_bits // 32} neighbouring words? {helps}")
    return Gate("code", True, f"{where}: loads of {bits} bits, {spills} spills")
