"""X-ray finds what is in a kernel; every kernel of every chapter compiles, and spills nothing that it does not say."""

import re
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import pytest
from samples import one_pair, version, write_pair

import benchmark
from common.pairs.pair import ROOT, discover
from common.xray.capture import CudaLaunch, launches
from common.xray.compilers import CompileError, compile_for
from common.xray.occupancy import ARCHITECTURES, MACHINES, occupancy
from common.xray.picture import xray
from common.xray.sass import INSTRUCTION, anatomy, dissect, stack_bytes
from common.xray.xray_tables import differences, words

FOLDERS = sorted({path.parent for path in ROOT.glob("ch*/baseline_*.py")})
SAMPLE = ("coalescing", "bank_conflicts", "tensor_cores", "dropout", "tile_size", "layer")  # of every chapter


def pairs_with_kernels():
    """(pair, generation -> sizes): a sample of one size for one generation, then all for all.

    Compilations are most of this. Chapter 5's in 2D are alike and smaller: for one generation.
    """
    for pair in (pair for folder in FOLDERS for pair in discover(folder)):
        if any(version.has_kernel for version in pair.versions):
            sizes = ["default", *(size for size in pair.sizes if size.startswith("2d/"))]  # other kernels
            if pair.name in SAMPLE:
                yield pytest.param(pair, {"sm_90": sizes[-1:]}, id=f"{pair.chapter}-{pair.name}-sm_90")
            of_each = {each: sizes if each == "sm_90" else sizes[:1] for each in ARCHITECTURES}
            yield pytest.param(pair, of_each, id=f"{pair.chapter}-{pair.name}", marks=pytest.mark.rest)


pytestmark = pytest.mark.usefixtures("in_this_process")
H100 = MACHINES["sm_90"]

triton = pytest.importorskip("triton")
pytest.importorskip("cuda.bindings.nvrtc")


@pytest.fixture
def spills_only(request, monkeypatch):
    """The code itself is read where there is a stack: without one nothing spills, as the sample shows.

    The reading takes longer than most compilations.
    """

    def anatomy(binary, machine):
        if request.node.get_closest_marker("rest") is None or stack_bytes(binary):
            return dissect(binary, machine)
        return SimpleNamespace(spills=0, stack_bytes=0)

    monkeypatch.setattr("common.xray.sass.dissect", anatomy)


@pytest.mark.usefixtures("spills_only")
@pytest.mark.parametrize(("pair", "sizes"), list(pairs_with_kernels()))
def test_every_kernel_compiles_for_every_generation_and_spills_only_where_it_says(pair, sizes):
    declared = {version.label for version in pair.versions if "SPILLS" in version.constants}
    with_kernel = {version.label for version in pair.versions if version.has_kernel}
    seen = [picture for each in sizes for size in sizes[each] for picture in xray(pair, (each,), size)]
    pictures = [picture for picture in seen if picture.label in with_kernel]
    none = ("needs compute capability", "launches no kernel")  # which may be in a package that a version has more of
    assert any(picture.kernels for picture in pictures)
    for picture in pictures:
        assert picture.kernels or picture.reason.startswith(none), picture.reason
    kernels = [kernel for picture in pictures for kernel in picture.kernels]
    assert not any(kernel.spills and not kernel.stack_bytes for kernel in kernels)
    spilling = {picture.label for picture in pictures if any(kernel.spills for kernel in picture.kernels)}
    assert spilling <= declared and (spilling == declared or len(sizes) == 1)


def widths(pictures, what="global loads"):
    """Bytes of the accesses of each version."""
    return {
        picture.label: {bits // 8 for kernel in picture.kernels for (kind, bits) in kernel.counts if kind == what}
        for picture in pictures
    }


def test_only_adjacent_lanes_at_known_addresses_let_triton_move_16_bytes_at_once():
    pictures = xray(*discover(ROOT / "ch1", "coalescing"), ["sm_90"])
    assert widths(pictures) == {"baseline": {4}, "optimized/adjacent": {4}, "optimized/wide": {16}}
    assert any("global loads move up to 16 bytes at once instead of 4" in line for line in words(pictures))


@pytest.mark.parametrize("size", ["check/tuned/groups/fp16", "check/sum/all"])
def test_rows_of_odd_length_are_summed_16_bytes_at_a_time(size):
    (pair,) = discover(ROOT / "ch3", "reductions")
    baseline, tuned = xray(replace(pair, variants=pair.variants[-1:]), ["sm_90"], size)
    assert baseline.kernels[0].widest("global loads") < 128 == tuned.kernels[0].widest("global loads")


@pytest.mark.parametrize(
    ("columns", "dtype", "narrowest"),
    [(1032, "float16", 128), (1036, "float32", 128), (1036, "float16", 64), (1034, "float16", 32),
     (2**31 + 16, "float16", 128)],
)  # fmt: skip
def test_vectors_along_rows_are_loaded_as_wide_as_the_width_allows(columns, dtype, narrowest):
    size = {"rows": 32, "columns": columns, "dtype": dtype}
    (launch,) = launches(ROOT / "ch3/optimized_fused_elementwise_tuned.py", size, H100)
    counts = dissect(compile_for(launch, H100), H100).counts
    assert {bits for what, bits in counts if what == "global loads"} == {128, narrowest}


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("ch3/optimized_softmax_tuned.py", {"rows": 2, "columns": 9000}),
        ("ch3/optimized_reductions_tuned.py", {"rows": 8192, "columns": 128}),
        ("ch4/optimized_batched_matmul_tuned.py", {"batch": 1, "m": 64, "n": 512, "k": 2048}),
        ("ch4/optimized_split_k_tuned.py", {"m": 64, "n": 64, "k": 16_384}),
    ],
)
def test_a_launch_that_may_begin_early_waits_before_it_reads_results_or_stores(path, size):
    early = [launch for launch in launches(ROOT / path, size, H100) if launch.options.get("launch_pdl")]
    assert early
    for launch in early:
        before, wait, after = compile_for(launch, H100).ptx.partition("griddepcontrol.wait")
        assert wait and "st.global" not in before and "ld.global" in after
        assert "softmax" in path or "ld.global" not in before  # which loads x before


def test_only_the_vectorized_steps_of_the_polynomial_move_16_bytes_at_once():
    (pair,) = discover(ROOT / "ch1", "arithmetic_intensity")
    narrow, wide = {4}, {4, 16}  # 4: the last n % 4 elements
    expected = {"baseline": narrow, "optimized/unrolled": narrow, "optimized/vectorized": wide, "optimized/fused": wide}
    assert widths(xray(pair, ["sm_90"]), "global stores") == expected


@pytest.mark.parametrize(
    ("files", "content", "hint"),
    [
        ("[!_]*.json", b"", True), ("*.cubin", b"", False),
        *(pytest.param(*more, marks=pytest.mark.rest) for more in (("[!_]*.json", b"{}", True), ("*.txt", b"", False))),
    ],
)  # fmt: skip
def test_a_damaged_cache_changes_nothing_and_its_folder_is_named(files, content, hint, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    path, size = ROOT / "ch1/optimized_coalescing_wide.py", {"n": 256}
    dissect.cache_clear()
    first = anatomy(launches(path, size, H100)[0], H100)
    damaged = [file.write_bytes(content) for file in tmp_path.rglob(files)]
    dissect.cache_clear()
    (launch,) = launches(path, size, H100)
    if hint:
        with pytest.raises(CompileError, match=f"Triton's cache is damaged: delete {tmp_path}$"):
            compile_for(launch, H100)
    assert damaged and anatomy(launch, H100) == first


# What is in a kernel


def kernel(body, threads=128, machine=H100, dynamic_shared_bytes=0, options=(), arguments="float* x, float* y"):
    """The anatomy of a CUDA C++ kernel with this body."""
    source = f'extern "C" __global__ void f({arguments}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}'
    launch = CudaLaunch("f", source, tuple(options), threads, dynamic_shared_bytes)
    return dissect(compile_for(launch, machine), machine)


def moved(bits, memory="global"):
    """One load and one store."""
    return {(f"{memory} loads", bits): 1, (f"{memory} stores", bits): 1}


SHARED = "__shared__ float s[256]; s[threadIdx.x] = x[i]; __syncthreads(); y[i] = s[255 - threadIdx.x];"
OTHERS = [pytest.param(each, marks=pytest.mark.rest) for each in ARCHITECTURES if each != "sm_90"]


@pytest.mark.parametrize("architecture", ["sm_90", *OTHERS])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = x[i];", moved(32)), ("((float2*)y)[i] = ((float2*)x)[i];", moved(64)),
        ("((float4*)y)[i] = ((float4*)x)[i];", moved(128)), ("((char*)y)[i] = ((char*)x)[i];", moved(8)),
        (SHARED, moved(32) | moved(32, "shared") | {("barriers", 0): 1}),
        ("atomicAdd(y + i % 7, 1.0f);", {("global atomics", 0): 1}),
        ("y[i] = __shfl_down_sync(~0u, x[i], 1);", moved(32) | {("shuffles", 0): 1}),
    ],
)  # fmt: skip
def test_instructions_are_counted_by_what_they_do_and_how_wide_they_are(body, expected, architecture):
    assert kernel(body, machine=MACHINES[architecture]).counts == expected


def test_what_is_never_carried_out_is_no_instruction():
    code = ("LDS R0, [R2] ;", "@!PT LDS RZ, [RZ] ;", "@!P0 STS [R2], R0 ;")
    listing = "".join(f"        /*00{k}0*/    {line}\n" for k, line in enumerate(code))
    assert INSTRUCTION.findall(listing) == ["LDS", "STS"]


def test_what_a_launch_adds_is_counted_too():
    found = kernel(SHARED, threads=256, dynamic_shared_bytes=1000)
    assert (found.threads, found.shared_bytes) == (256, 256 * 4 + 1000)


TWO = "float a = x[i], b = x[i + 7];"


@pytest.mark.parametrize(
    ("body", "expected"),
    [("y[i] = 1;", 0), (f"{TWO} y[i] = a; y[i + 9] = b;", 2), (f"{TWO} y[i] = a * b; y[i + 1] = x[i + 3];", 2)],
)
def test_loads_are_counted_up_to_the_next_store(body, expected):
    assert kernel(body).loads_in_a_row == expected


def test_spills_are_seen():
    many = "float a[64]; for (int k = 0; k < 64; ++k) a[k] = x[i + k]; __syncthreads();"
    many += "for (int k = 0; k < 64; ++k) y[i + k] = a[k] * a[63 - k];"
    assert (kernel(many).spills, kernel(many).stack_bytes) == (0, 0)
    tight = kernel(many, options=["--maxrregcount=24"])
    assert tight.spills > 0 < tight.stack_bytes and tight.registers <= 24


DOT = """
    import triton
    import triton.language as tl
    @triton.jit
    def product(a, b, c, N: tl.constexpr, PRECISION: tl.constexpr):
        at = tl.arange(0, N)
        square = at[:, None] * N + at[None, :]
        tl.store(c + square, tl.dot(tl.load(a + square), tl.load(b + square), input_precision=PRECISION))
"""
SIZES = {"check": {"n": 1}, "default": {"n": 1}}
MATRICES = 'return {"a": torch.randn(64, 64, device=device), "b": torch.randn(64, 64, device=device)}'


def dot(precision, before="", extra=DOT):
    run = f"c = torch.empty_like(a)\n{before}\nproduct[(1,)](a, b, c, 64, {precision!r})\nreturn c"
    extra = f"{textwrap.dedent(extra)}\ndef reference(a, b): return a @ b"
    return version(run, "a, b", MATRICES, extra, SIZES)


def test_tensor_core_instructions_are_told_from_others(tmp_path):
    pictures = xray(one_pair(tmp_path, dot("tf32"), dot("ieee")), ["sm_80"])
    (plain,), (tensor,) = (picture.kernels for picture in pictures)
    assert plain.tensor == {} != tensor.tensor
    assert all(name.startswith("HMMA") for name in tensor.tensor)
    count = sum(tensor.tensor.values())
    assert f"{count} tensor-core instructions instead of 0" in differences([plain], [tensor])


def seen(folder, variant, architecture="sm_80"):
    """The picture of a variant."""
    (picture,) = [p for p in xray(one_pair(folder, variant, dot("ieee")), [architecture]) if p.label == "optimized"]
    return picture


# Occupancy: worked by hand from the limits of an SM


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared_bytes", "expected"),
    [
        ("sm_80", 128, 32, 0, (16, 64, "warps and registers")),
        ("sm_80", 32, 32, 0, (32, 32, "blocks")),
        ("sm_86", 128, 32, 0, (12, 48, "warps")),
        ("sm_90", 256, 255, 0, (1, 8, "registers")),  # 255 -> 8192 a warp, 8 warps of the 65,536 registers
        ("sm_90", 256, 40, 0, (6, 48, "registers")),  # 1280 a warp: 12 in each quarter, 48; 6 blocks of 8
        ("sm_90", 1024, 64, 0, (1, 32, "registers")),
        ("sm_90", 1024, 32, 0, (2, 64, "warps and registers")),
        ("sm_90", 128, 32, 48 << 10, (4, 16, "shared memory")),  # 49 KiB with the system's own: 4 in 228
        ("sm_90", 33, 16, 0, (32, 64, "warps and blocks")),  # 33 threads take two warps
        ("sm_75", 1024, 64, 0, (1, 32, "warps and registers")),
        ("sm_75", 1024, 32, 0, (1, 32, "warps")),
    ],
)
def test_occupancy_is_what_the_scarcest_resource_leaves(architecture, threads, registers, shared_bytes, expected):
    found = occupancy(MACHINES[architecture], threads, registers, shared_bytes)
    assert (found.blocks, found.warps, found.limited_by) == expected
    assert found.share == expected[1] / MACHINES[architecture].warps


# How launches are found


def test_equal_launches_are_one_and_different_ones_are_not(tmp_path):
    more = "product[(1,)](a, b, c, 64, 'tf32')\nproduct[(2,)](b, a, c, 64, 'tf32')\nproduct[(1,)](a, b, c, 32, 'tf32')"
    assert len(seen(tmp_path, dot("tf32", more)).kernels) == 2


def test_streams_and_graphs_are_no_obstacle(tmp_path):
    before = "with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.graph(torch.cuda.CUDAGraph()):\n    c = c + 1"
    assert seen(tmp_path, dot("tf32", before)).kernels


def test_a_version_that_needs_values_says_so(tmp_path):
    picture = seen(tmp_path, dot("tf32", "a.sum().item()"))
    said = r"optimized_double.py: cannot run without a GPU: .*\(optimized_double.py:"
    assert picture.kernels == [] and re.match(said, picture.reason) and not picture.failed


def test_a_name_that_is_missing_is_the_versions_fault(tmp_path):
    picture = seen(tmp_path, dot("tf32", "misspelt(a)"))
    assert picture.failed and re.match(r"optimized_double.py: NameError: name 'misspelt'", picture.reason)


def test_a_compilers_complaint_is_one_line():
    said = r"^for sm_90: kernel.cu\(1\): error: identifier \"undeclared\" is undefined$"
    with pytest.raises(CompileError, match=said):
        kernel("y[i] = undeclared;")


# The command


@pytest.mark.rest
def test_a_picture_is_asked_for_by_name_wherever_the_pair_is(in_its_process, capsys):
    assert benchmark.main(["--xray", "coalescing", "--arch", "sm_80,sm_90", "--code", "ptx"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("coalescing, compiled for "), err) == (2, "")
    assert "sm_90 (H100)" in out and "ld.global" in out


def test_sizes_are_asked_for_by_class_and_a_kernel_that_does_not_compile_is_a_failure_that_is_told(tmp_path, capsys):
    extra = DOT.replace("tl.load(a + square)", "tl.lod(a + square)")
    sizes = {"check": {"n": 1}, "default": {"n": 1}, "small/a": {"n": 1}}
    texts = (text.replace(f"{SIZES!r}", f"{sizes!r}") for text in (dot("tf32", extra=extra), dot("tf32")))
    write_pair(tmp_path, "double", *texts)
    write_pair(tmp_path, "lone", version(), version())
    assert benchmark.main(["--path", str(tmp_path), "--xray", "*", "--size", "small", "--arch", "sm_90"]) == 1
    out, err = capsys.readouterr()
    assert out.count("double small/a, compiled") == 1 and "has no attribute 'lod'" in out
    assert err == "left out, because they have no size small: lone\n"
