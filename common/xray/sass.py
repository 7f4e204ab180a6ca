"""A kernel's machine code: registers, spills, memory accesses by width, tensor-core instructions, barriers.

Everything is counted in the code as written. How often an instruction is executed is not known.
"""

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from common.pairs.user_error import UserError
from common.xray.capture import Launch, TritonLaunch
from common.xray.compilers import Binary, compile_for
from common.xray.occupancy import SYSTEM_SHARED_BYTES, Machine, Occupancy, occupancy

# not those under @!PT ("if not true"): they have no effect
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?!@!PT\s)(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE)
RESOURCES = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}  # bits; 32 without a suffix
TENSOR = re.compile(r"(?:[A-Z]*[HIDQO]MMA|[HIQB]GMMA|UTC[A-Z]*MMA)$")
KINDS = {  # opcode -> what it does, in the order of rows
    "LDG": "global loads", "STG": "global stores", "LDGSTS": "copies to shared memory", "UTMALDG": "TMA loads",
    "UTMASTG": "TMA stores", "UBLKCP": "bulk copies", "LDS": "shared loads", "LDSM": "shared matrix loads",
    "STS": "shared stores", "STSM": "shared matrix stores", "ATOMG": "global atomics", "REDG": "global atomics",
    "RED": "global atomics", "ATOM": "global atomics", "ATOMS": "shared atomics", "SHFL": "shuffles",
    "REDUX": "warp reductions", "BAR": "barriers", "LDL": "spill loads", "STL": "spill stores",
    "BSSY": "points where a divergent warp reconverges",
}  # fmt: skip
BY_WIDTH = ("LDG", "STG", "LDGSTS", "LDS", "STS")  # accesses whose width is shown


class NoTools(UserError):
    """The CUDA tools that read machine code are missing."""


@dataclass(frozen=True)
class Anatomy:
    """A kernel on an architecture. `counts`: (what, bits or 0) -> instructions. A wider access moves more at once."""

    kernel: str
    architecture: str
    threads: int
    registers: int
    shared_bytes: int
    stack_bytes: int
    occupancy: Occupancy
    instructions: int
    counts: dict[tuple[str, int], int]
    tensor: dict[str, int] = field(default_factory=dict)  # opcode -> instructions
    sass: str = ""
    ptx: str = ""

    @property
    def spills(self) -> int:
        return self.total("spill loads") + self.total("spill stores")

    def total(self, what: str) -> int:
        return sum(count for (kind, _), count in self.counts.items() if kind == what)

    @property
    def loads_in_a_row(self) -> int:
        """The most global loads in the code without a global store in between: they can be in flight at once."""
        order = "".join(opcode[0] for opcode in re.findall(r"\b(?:LDG|STG)\b", self.sass))
        return max(map(len, order.split("S")))

    def widest(self, what: str) -> int:
        """Bits of the widest access of this kind; 0 if there is none."""
        return max((bits for (kind, bits) in self.counts if kind == what), default=0)


def anatomy(launch: Launch, machine: Machine) -> Anatomy:
    """Compile a launch and read its machine code. Raises CompileError, NoTools.

    What fails is done once more with an empty cache: what Triton's cache holds may be damaged.
    """
    try:
        return dissect(compile_for(launch, machine), machine)
    except Exception:  # noqa: BLE001 (from a damaged file anything follows: StopIteration, KeyError)
        from unittest.mock import patch  # a slow import, and rarely needed

        with TemporaryDirectory(prefix="speed-of-light-") as folder, patch.dict(os.environ, TRITON_CACHE_DIR=folder):
            if isinstance(launch, TritonLaunch):
                launch.kernel.device_caches.clear()  # what was read of the other one
            return dissect(compile_for(launch, machine), machine)


@lru_cache(maxsize=64)  # versions may launch the same kernel, and the tools are slow
def dissect(binary: Binary, machine: Machine) -> Anatomy:
    """Read a kernel's machine code. Raises NoTools."""
    (registers, stack, static), sass = _resources(binary), _listing(binary, "-g")
    if static and machine.capability >= (9, 0):  # from here on ptxas adds the system's bytes to the kernel's
        static -= SYSTEM_SHARED_BYTES
    shared = static + binary.dynamic_shared_bytes
    opcodes = _opcodes(sass)
    return Anatomy(
        binary.name, machine.architecture, binary.threads, registers, shared, stack,
        occupancy(machine, binary.threads, registers, shared), len(opcodes), dict(_count(opcodes)),
        dict(_tensor(opcodes)), sass, binary.ptx,
    )  # fmt: skip


@lru_cache(maxsize=256)
def instruction_counts(binary: Binary) -> dict[str, int]:
    """Instructions in the code: all, by kind and bits ("global loads 128"), and of tensor cores. Raises NoTools."""
    opcodes = _opcodes(_listing(binary))
    kinds = {f"{kind} {bits}" if bits else kind: count for (kind, bits), count in sorted(_count(opcodes).items())}
    return {"all": len(opcodes), **kinds, **dict(sorted(_tensor(opcodes).items()))}


@lru_cache(maxsize=256)
def machine_code(binary: Binary) -> str:
    """The kernel's instructions without its name and source lines. Raises NoTools."""
    return "\n".join(line.strip().replace(binary.name, "") for line in _listing(binary).splitlines() if "*/" in line)


def stack_bytes(binary: Binary) -> int:
    """Bytes of a thread's stack: 0 means no spills. Faster than reading the code. Raises NoTools."""
    return _resources(binary)[1]


def _resources(binary: Binary) -> tuple[int, ...]:
    """Registers and stack bytes per thread, bytes of shared memory per block."""
    listed = RESOURCES.findall(_run(binary, "cuobjdump", "-res-usage"))
    return next(tuple(map(int, figures)) for name, *figures in listed if name == binary.name)


def _opcodes(sass: str) -> list[str]:
    return [opcode for opcode in INSTRUCTION.findall(sass) if opcode != "NOP"]  # NOP fills up the last line


def _tensor(opcodes: list[str]) -> Counter[str]:
    return Counter(opcode for opcode in opcodes if TENSOR.match(opcode.split(".")[0]))


def _count(opcodes: list[str]) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for opcode, *modifiers in (full.split(".") for full in opcodes):
        if opcode in KINDS:
            bits = next((WIDTHS[word] for word in modifiers if word in WIDTHS), 32) if opcode in BY_WIDTH else 0
            counts[KINDS[opcode], bits] += 1
    return counts


def _listing(binary: Binary, *options: str) -> str:
    """The kernel's own part of the disassembly."""
    parts = re.split(r"^//-+ (\.\S+)\s+-+$", _run(binary, "nvdisasm", "-c", *options), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[f".text.{binary.name}"].strip("\n")


def _run(binary: Binary, tool: str, *options: str) -> str:
    """The output of a tool, without the path of the file that it read. Triton's cache keeps it: tools take a second."""
    program = _tool(tool)
    of = f"{program} {os.stat(program).st_mtime_ns} {options}".encode()
    store = _store(sha256(of + binary.cubin).hexdigest())
    if store and (kept := store.get_file(f"{tool}.txt")):
        return Path(kept).read_text(encoding="utf-8")
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(binary.cubin)
        done = subprocess.run([program, *options, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoTools(f"{tool} cannot read this machine code: {done.stderr.strip().splitlines()[-1:]}")
    text = done.stdout.replace(f"{folder}/", "")
    if store:
        store.put(text, f"{tool}.txt", binary=False)
    return text


def _store(key: str) -> Any:
    """Triton's cache for a key; None without Triton, where CUDA C++ kernels can be read all the same."""
    if not find_spec("triton"):
        return None
    from triton.runtime.cache import get_cache_manager  # a slow import

    return get_cache_manager(key)


@cache
def _tool(name: str) -> str:
    """The path of a tool, from Triton or from a CUDA toolkit."""
    triton = find_spec("triton")
    in_triton = Path(str(triton.origin)).parent / "backends" / "nvidia" / "bin" if triton else Path()
    if path := which(name, path=in_triton) or which(name):
        return path
    raise NoTools(f"{name} is missing: triton (Linux) and the CUDA toolkit contain it")
