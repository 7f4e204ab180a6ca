"""Compile a launch to a GPU's machine code on any machine: Triton with its compiler, CUDA C++ with NVRTC."""

from dataclasses import dataclass
from typing import Any

from common.isolation.worker import cache_hint
from common.pairs.user_error import UserError
from common.xray.capture import Launch, TritonLaunch
from common.xray.occupancy import WARP, Machine


class CompileError(UserError):
    """The compiler's error in one line."""


@dataclass(frozen=True)
class Binary:
    """A compiled kernel: an ELF image, its PTX, and from the launch threads and dynamic shared memory per block.

    ttir: Triton's first intermediate code of it; empty if it is of another language.
    """

    name: str
    cubin: bytes
    ptx: str
    threads: int
    dynamic_shared_bytes: int
    ttir: str = ""


def compile_for(launch: Launch, machine: Machine) -> Binary:
    """Compile a launch. Raises CompileError."""
    if isinstance(launch, TritonLaunch):
        return _triton(launch, machine)
    cubin, ptx = nvrtc_compile(launch.source, machine.architecture, launch.options)
    return Binary(launch.name, cubin, ptx, launch.threads, launch.dynamic_shared_bytes)


def _triton(launch: TritonLaunch, machine: Machine) -> Binary:
    try:
        with machine.as_tritons_driver():  # `warmup` compiles as for a launch and does not launch
            compiled: Any = launch.kernel.run(*launch.arguments, grid=None, warmup=True, **launch.options)
    except Exception as error:  # noqa: BLE001 (Triton's passes raise various errors)
        lines = _lines(str(error))  # Triton prints the place, the code, then the error
        ends = dict.fromkeys([lines[0], lines[-1]])
        raise CompileError(f"{launch.name} for {machine.architecture}: {' '.join(ends)}{cache_hint(error)}") from None
    threads = WARP * compiled.metadata.num_warps
    asm = compiled.asm
    return Binary(compiled.name, asm["cubin"], asm["ptx"], threads, compiled.metadata.shared, asm.get("ttir", ""))


def nvrtc_compile(source: str, architecture: str, options: tuple[str, ...] = ()) -> tuple[bytes, str]:
    """(Cubin, PTX) of a CUDA C++ source. Raises CompileError."""
    try:
        from cuda.bindings import nvrtc
    except ModuleNotFoundError:
        raise CompileError("compiling CUDA C++ needs the packages cuda-bindings and nvidia-cuda-nvrtc") from None

    def call(function: str, *arguments: Any) -> Any:
        error, *result = getattr(nvrtc, f"nvrtc{function}")(*arguments)
        if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            text = read("ProgramLog").decode() if function == "CompileProgram" else error.name
            raise CompileError(f"for {architecture}: {_lines(text)[0]}")
        return result[0] if result else None

    def read(what: str) -> bytes:
        text = b" " * call(f"Get{what}Size", program)
        call(f"Get{what}", program, text)
        return text

    program = call("CreateProgram", source.encode(), b"kernel.cu", 0, [], [])
    try:
        wanted = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info", *options]
        call("CompileProgram", program, len(wanted), [option.encode() for option in wanted])
        return read("CUBIN"), read("PTX").rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _lines(text: str) -> list[str]:
    """The lines that contain more than a position mark; at least one."""
    return [line.strip() for line in text.splitlines() if line.strip(" ^")] or ["no reason given"]
