"""Every kernel of every chapter's pairs compiles, without a GPU: CUDA C++ with NVRTC, Triton with its own compiler."""

import re
from pathlib import Path

import pytest

from common.pair import ROOT, discover, load

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")  # A100, H100 and H200, B200
FOLDERS = sorted({path.parent for path in ROOT.glob("ch*/baseline_*.py")})
KERNELS = [(pair, half) for folder in FOLDERS for pair in discover(folder) for half in pair.halves if half.has_kernel]
CUDA = [pytest.param(half.path, id=half.path.stem) for _, half in KERNELS if "cupy" in half.imports]
TRITON = [
    pytest.param(half.path, pair.sizes["default"], id=half.path.stem)
    for pair, half in KERNELS
    if "triton" in half.imports
]


def cuda_sources(path: Path) -> list[str]:
    """The CUDA C++ texts that a file hands to CuPy, which compiles none of them before the first launch."""
    cupy = pytest.importorskip("cupy")
    found = [value for value in vars(load(path)).values() if isinstance(value, cupy.RawKernel | cupy.RawModule)]
    assert found, f"{path}: its RawKernel is not at the top level of the file: the tests cannot find it"
    return [kernel.code for kernel in found]


def nvrtc_compile(source: str, architecture: str) -> tuple[str, bytes]:
    """PTX and machine code; fails with the compiler's log."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

    def call(function, *args):
        error, *result = getattr(nvrtc, f"nvrtc{function}")(*args)
        assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, f"{error.name}\n{log()}"
        return result[0] if result else None

    def log() -> str:
        text = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode()

    program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])[1]
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
        call("CompileProgram", program, len(options), options)
        output = {}
        for kind in ("PTX", "CUBIN"):
            output[kind] = b" " * call(f"Get{kind}Size", program)
            call(f"Get{kind}", program, output[kind])
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return output["PTX"].decode(), output["CUBIN"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("path", CUDA)
def test_cuda_source_compiles(path, architecture):
    for source in cuda_sources(path):
        ptx, machine_code = nvrtc_compile(source, architecture)
        assert ".entry" in ptx
        assert machine_code.startswith(b"\x7fELF")


def test_a_wrong_cuda_source_fails_with_the_compilers_words():
    with pytest.raises(AssertionError, match="undefined"):
        nvrtc_compile('extern "C" __global__ void f(float* y) { y[0] = undeclared; }', "sm_90")


def triton_launches(path: Path, arguments: dict, monkeypatch) -> list[tuple]:
    """(kernel, positional, keyword arguments) of every launch of one call of `run`, on tensors without memory."""
    jit = pytest.importorskip("triton.runtime.jit")
    launches = []

    def record(kernel, *args, grid, warmup, **kwargs):
        launches.append((kernel, args, kwargs))

    monkeypatch.setattr(jit.JITFunction, "run", record)
    half = load(path)
    inputs = half.inputs(**arguments, device="meta")
    state = half.setup(**inputs) if hasattr(half, "setup") else {}
    half.run(**inputs, **state)
    return launches


def triton_compile(kernel, args, kwargs, capability: int):
    """What a launch with these arguments compiles: types, constants and alignments as Triton's launcher sees them."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile, make_backend
    from triton.runtime.jit import create_function_from_signature

    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    bound, specialization, options = create_function_from_signature(kernel.signature, kernel.params, backend)(
        *args, debug=False, **kwargs
    )
    options, signature, constants, attributes = kernel._pack_args(backend, kwargs, bound, specialization, options)
    return compile(ASTSource(kernel, signature, constants, attributes), target=target, options=options.__dict__)


@pytest.mark.parametrize(("path", "size"), TRITON)
def test_triton_kernel_compiles(path, size, monkeypatch):
    launches = triton_launches(path, size, monkeypatch)
    assert launches, f"{path}: run launches no Triton kernel"
    for kernel, args, kwargs in launches:
        compiled = triton_compile(kernel, args, kwargs, 90)
        assert compiled.asm["cubin"].startswith(b"\x7fELF")


def access_widths(ptx: str) -> set[int]:
    """The sizes in bytes of the loads and stores of device memory that the code holds, of 4-byte elements."""
    vectors = re.findall(r"(?:ld|st)\.global[.\w]*?(?:\.v(\d))?\.[bf]32", ptx)
    return {4 * int(elements or 1) for elements in vectors}


@pytest.mark.parametrize(
    ("stem", "widths"),
    [
        ("baseline_arithmetic_intensity", {4}),
        ("optimized_arithmetic_intensity_unrolled", {4}),
        ("optimized_arithmetic_intensity_vectorized", {4, 16}),  # 4: the last n % 4 elements
        ("optimized_arithmetic_intensity_fused", {4, 16}),
    ],
)
def test_only_the_vectorized_steps_of_the_polynomial_move_16_bytes_at_once(stem, widths):
    (source,) = cuda_sources(ROOT / "ch1" / f"{stem}.py")
    assert access_widths(nvrtc_compile(source, "sm_90")[0]) == widths


@pytest.mark.parametrize(("stem", "widths"), [("baseline_coalescing", {4}), ("optimized_coalescing", {16})])
def test_only_adjacent_lanes_let_triton_move_16_bytes_at_once(stem, widths, monkeypatch):
    ((kernel, args, kwargs),) = triton_launches(ROOT / "ch1" / f"{stem}.py", {}, monkeypatch)
    assert access_widths(triton_compile(kernel, args, kwargs, 90).asm["ptx"]) == widths
