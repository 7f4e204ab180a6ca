"""Every way to get a pair wrong is one line that names the file and the fix; and what a right pair is read as."""

import importlib.util
import os
import re
import shutil
import sys

import pytest
from samples import one_pair, refused, version, write_pair

from common.pairs.pair import ROOT, discover, load, why_not
from common.pairs.source import source_hash

CPU = {"kind": "cpu", "capability": None}
H200 = {"kind": "cuda", "capability": [9, 0]}
KERNEL = "import triton\n@triton.jit\ndef kernel(x_ptr): ...\n"


def error_of(folder, only="*"):
    with refused(".") as caught:
        discover(folder, only)
    return str(caught.value)


# (what to replace in a right version, by what, what the error must say)
WRONG = {
    "no docstring": (r'"""Double.*"""', "", "no docstring.*first line"),
    "an empty docstring": (r'"""Double.*"""', '"""  """', "no docstring"),
    "no inputs": ("def inputs", "def _draw", "no function `inputs`: add inputs"),
    "no run": ("def run", "def go", "no function `run`: add run"),
    "run is a class": (r"def run\(.*\):", "class run:", "no function `run`"),
    "inputs misspelt": ("def inputs", "def input", "defines `input`: did you mean `inputs`"),
    "run misspelt": ("def run", "def runn", "defines `runn`: did you mean `run`"),
    "setup misspelt": ("def run", "def set_up(x): ...\ndef run", "`set_up`: did you mean `setup`"),
    "reference misspelt": ("def run", "def referense(x): ...\ndef run", "`referense`: did you mean `reference`"),
    "library misspelt": ("def run", "def libary(x): ...\ndef run", "`libary`: did you mean `library`"),
    "cost misspelt": ("def run", "def costs(x): ...\ndef run", "`costs`: did you mean `cost`"),
    "SIZES misspelt": ("SIZES", "SIZE", "`SIZE`: did you mean `SIZES`"),
    "CLOCK misspelt": ("SIZES", 'CLOK = "wall"\nSIZES', "`CLOK`: did you mean `CLOCK`"),
    "TOLERANCE misspelt": ("SIZES", "TOLERANCES = (1, 1)\nSIZES", "`TOLERANCES`: did you mean `TOLERANCE`"),
    "VERSUS annotated and misspelt": ("SIZES", 'VERSU: str = "a"\nSIZES', "`VERSU`: did you mean `VERSUS`"),
    "no device": (', device="cuda"', "", '`inputs` takes no `device`: add device="cuda"'),
    "empty SIZES": ("SIZES = .*", "SIZES = {}", "no SIZES: add"),
    "SIZES is a list": ("SIZES = .*", 'SIZES = ["check", "default"]', "SIZES"),
    "SIZES computed": (
        "SIZES = .*",
        'SIZES = {"check": {"n": 127}, "default": {"n": 2**20}}',
        r":\d+: SIZES must be a literal",
    ),
    "SIZES built": ("SIZES = .*", 'SIZES = dict(check={"n": 1}, default={"n": 2})', "SIZES must be a literal"),
    "SIZES no literal at all": ("SIZES = .*", 'SIZES = {["check"]: {"n": 127}}', "SIZES must be a literal"),
    "a size is no dict": ("SIZES = .*", 'SIZES = {"check": 127, "default": 8}', r"SIZES\['check'\] must be a dict"),
    "a size has no name": ("SIZES = .*", 'SIZES = {1: {"n": 127}, "check": {"n": 1}, "default": {"n": 8}}', "SIZES"),
    "unknown argument": ("SIZES = .*", 'SIZES = {"check": {"m": 1}, "default": {"n": 8}}', r"SIZES\['check'\] names m"),
    "a device in a size": (
        "SIZES = .*",
        'SIZES = {"check": {"n": 1, "device": "cpu"}, "default": {"n": 8}}',
        r"SIZES\['check'\].*device",
    ),
    "argument missing": ("n=127", "n", r"SIZES\['tiny'\].* n\b", {"SIZES = {": 'SIZES = {"tiny": {}, '}),
    "no check": ("SIZES = .*", 'SIZES = {"default": {"n": 8}}', 'no "check": add'),
    "no default": ("SIZES = .*", 'SIZES = {"check": {"n": 8}}', 'no "default": add'),
    "CLOCK": ("SIZES", 'CLOCK = "cpu"\nSIZES', 'CLOCK must be "device" or "wall"'),
    "DEVICE": ("SIZES", 'DEVICE = "cuda:0"\nSIZES', 'DEVICE must be "cuda"'),
    "REQUIRES": ("SIZES", 'REQUIRES = {"memory": 9}\nSIZES', 'REQUIRES takes "capability" and "gpus"'),
    "REQUIRES is no dict": ("SIZES", "REQUIRES = 2\nSIZES", "REQUIRES"),
    "REQUIRES capability": ("SIZES", 'REQUIRES = {"capability": 9.0}\nSIZES', "REQUIRES.*capability"),
    "REQUIRES gpus": ("SIZES", 'REQUIRES = {"gpus": "two"}\nSIZES', "REQUIRES.*gpus"),
    "PRECISION": ("SIZES", 'PRECISION = "version"\nSIZES', "PRECISION must be one of .*bf16"),
    "TOLERANCE": ("SIZES", "TOLERANCE = 1e-3\nSIZES", r"TOLERANCE must be \(rtol, atol\)"),
    "TOLERANCE of words": ("SIZES", 'TOLERANCE = ("a", "b")\nSIZES', r"TOLERANCE must be \(rtol, atol\)"),
    "TOLERANCE beyond all numbers": ("SIZES", f"TOLERANCE = ({10**400}, 1)\nSIZES", "TOLERANCE must be .*finite"),
    "TOLERANCE that is none": ("SIZES", "TOLERANCE = (1e400, 1)\nSIZES", "TOLERANCE must be .*finite"),
    "a sum without end": ("return 2", f"return {'1 + ' * 10_000} 2", "nests more than 100 expressions"),
    "attributes without end": ("return 2", f"return x{'.a' * 3_000} + 2", "nests more than 100 expressions"),
    "calls without end": ("return 2", f"return {'-' * 500}2", "nests more than 100 expressions"),
    "a constant that is computed": ("SIZES", "CLOCK = str()\nSIZES", "CLOCK must be a literal"),
    "VERSUS nobody": ("SIZES", 'VERSUS = "fused"\nSIZES', "VERSUS = 'fused' names no variant"),
    "VERSUS itself": ("SIZES", 'VERSUS = ""\nSIZES', "VERSUS"),
    "imports common": ("import torch", "import torch\nfrom common.pairs.pair import ROOT", "imports common"),
    "imports its twin": (
        "import torch",
        "import torch\nfrom baseline_double import run as twin",
        "imports baseline_double",
    ),
    "imports a chapter": ("import torch", "import torch\nimport ch2.toy", "imports ch2"),
    "imports common inside run": ("return 2", "import common\n    return 2", "imports common"),
    "syntax error": ("def run", "def def run", r":\d+: syntax error"),
    "null byte": ("return 2", "return 2\0", "syntax error"),
    "other sizes than the baseline": (
        "127}",
        "129}",
        "SIZES differ from baseline_double.py: leave them to it",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_version_is_one_line_that_names_the_file_and_the_fix(what, tmp_path):
    pattern, replacement, expected, *more = WRONG[what]
    text = re.sub(pattern, lambda _: replacement, version())
    for old, new in (more[0] if more else {}).items():
        text = text.replace(old, new)
    assert text != version()
    write_pair(tmp_path, "double", text)
    with refused(expected, tmp_path / "optimized_double.py"):
        discover(tmp_path)


def test_sizes_stand_in_the_baseline_and_a_variant_inherits_them(tmp_path):
    bare = re.sub("SIZES = .*", "", version())
    pair = one_pair(tmp_path, bare)
    assert pair.variants[0].constants["SIZES"] == pair.sizes == pair.baseline.constants["SIZES"]
    write_pair(tmp_path, "double", bare.replace("n=127, ", ""))
    assert re.search(r"optimized_double.py: SIZES.* names n, which `inputs` does not take", error_of(tmp_path))
    write_pair(tmp_path, "double", version(), baseline=bare)
    assert re.search(r"baseline_double.py: has no SIZES: add SIZES = {", error_of(tmp_path))


def test_a_wrong_baseline_is_named_too(tmp_path):
    write_pair(tmp_path, "double", version(), baseline=version().replace("def run", "def runn"))
    assert error_of(tmp_path).startswith(str(tmp_path / "baseline_double.py"))


def test_an_orphan_of_either_kind_is_named_with_its_missing_partner(tmp_path):
    write_pair(tmp_path, "double", version())
    (tmp_path / "optimized_triple.py").write_text(version())
    for mine, other in (("optimized", "baseline"), ("baseline", "optimized")):
        with refused(rf"{mine}_triple\.py: has no partner: add {other}_triple\.py"):
            discover(tmp_path)
        (tmp_path / f"{mine}_triple.py").rename(tmp_path / f"{other}_triple.py")


COPIES = [  # files of chapters, what is said
    (
        ["ch3/baseline_softmax.py"],
        "has no partner: copy compiled.py and at least one of optimized_softmax.py, .* from ch3/",
    ),
    (["ch3/baseline_softmax.py", "ch3/compiled.py"], "has no partner: copy at least one of optimized_softmax.py"),
    (["ch3/optimized_softmax_online.py"], "has no partner: copy compiled.py and baseline_softmax.py from ch3/, too"),
    (["ch3/baseline_softmax.py", "ch3/optimized_softmax.py"], "needs compiled.py beside it: copy it from ch3/$"),
    (["ch5/baseline_layer.py", "ch5/optimized_layer.py"], "needs clifford beside it: copy it from ch5/$"),
]


@pytest.mark.parametrize(("files", "said"), COPIES)
def test_what_else_must_be_copied_of_a_chapter_is_said(files, said, tmp_path):
    for file in files:
        shutil.copy(ROOT / file, tmp_path)
    with refused(said, tmp_path):
        discover(tmp_path)


def test_a_module_of_some_chapter_that_a_pair_of_ones_own_lacks_is_named_with_all_that_have_it(tmp_path):
    with refused("optimized_double.py: needs compiled.py beside it: copy it from ch3/ or ch4/ or ch5/$"):
        one_pair(tmp_path, version(extra="import compiled"))
    (tmp_path / "compiled.py").write_text("")
    assert one_pair(tmp_path, version(extra="import compiled"))


def test_a_folder_that_is_missing_or_empty_or_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for folder, said in (
        (tmp_path / "nowhere", "no such"),
        (tmp_path / ("long" * 2000), "no such"),
        (tmp_path, "holds no pairs"),
        (tmp_path / "file", "no such"),
    ):
        with refused(rf"^{folder}: ({said} folder|{said}: add baseline_<name>.py)"):
            discover(folder)


def test_a_pattern_that_matches_nothing_says_what_there_is(tmp_path):
    write_pair(tmp_path, "double", version())
    write_pair(tmp_path, "triple", version())
    message = error_of(tmp_path, "quad*")
    assert "'quad*'" in message
    assert "double, triple" in message


def test_only_what_the_pattern_selects_must_keep_the_contract(tmp_path):
    write_pair(tmp_path, "double", version())
    write_pair(tmp_path, "broken", "def def")
    (tmp_path / "optimized_orphan.py").write_text(version())
    assert [pair.name for pair in discover(tmp_path, "dou*")] == ["double"]


def test_two_custom_kernels_need_a_reference(tmp_path):
    write_pair(tmp_path, "double", version(extra=KERNEL), baseline=version(extra=KERNEL))
    assert re.search(r"baseline_double\.py: both versions are custom kernels: add reference", error_of(tmp_path))
    with_oracle = version(extra=KERNEL + "def reference(x, w_shift): ...")
    write_pair(tmp_path, "double", version(extra=KERNEL), baseline=with_oracle)
    assert discover(tmp_path)[0].baseline.has_kernel
    write_pair(tmp_path, "double", version(extra=KERNEL), baseline=version())  # then the baseline's run is the oracle
    assert not discover(tmp_path)[0].baseline.has_kernel


def test_a_helper_with_a_syntax_error_is_named(tmp_path):
    (tmp_path / "toy.py").write_text("def def")
    write_pair(tmp_path, "double", version(extra="import toy"))
    assert re.search(r"toy\.py:1: syntax error", error_of(tmp_path))


def test_what_cannot_be_read_is_named(tmp_path):
    write_pair(tmp_path, "double", version())
    (tmp_path / "optimized_double_gone.py").symlink_to(tmp_path / "nowhere.py")
    assert "optimized_double_gone.py" in error_of(tmp_path)


def test_a_pipe_is_not_waited_for_and_a_folder_is_no_file(tmp_path):
    for make in (os.mkfifo, os.mkdir):
        write_pair(tmp_path, "double", version())
        (tmp_path / "optimized_double.py").unlink()
        make(tmp_path / "optimized_double.py")
        with refused("cannot be read: it is no regular file", tmp_path / "optimized_double.py"):
            discover(tmp_path)
        shutil.rmtree(tmp_path)


@pytest.mark.parametrize("name", [os.fsdecode(b"baseline_\xff.py"), "baseline_\x1b[31m.py"])
def test_a_name_that_cannot_be_printed_is_told_in_words_that_can(name, tmp_path):
    (tmp_path / name).write_text(version())
    (tmp_path / name.replace("baseline", "optimized")).write_text(version())
    message = error_of(tmp_path)
    assert message.isprintable() and re.search(r"baseline_\\\w+(\[31m)?.py: has a name that cannot be printed", message)
    message.encode()


def test_what_nests_as_deeply_as_may_be_has_a_hash(tmp_path):
    assert source_hash(one_pair(tmp_path, version(f"return {'1 + ' * 90} x * 2 + w_shift")))


def test_no_file_vanishes_behind_another_ones_label(tmp_path):
    write_pair(tmp_path, "double", {"fused": version(), "_fused": version()})
    assert len({variant.label for variant in discover(tmp_path)[0].variants}) == 2


@pytest.mark.parametrize(
    "name", ["runs", "input_scale", "reference_rows", "SIZE", "THREADS", "library_compiled", "_setup"]
)
def test_names_of_ones_own_are_free(name, tmp_path):
    definition = f"{name} = 1" if name.isupper() else f"def {name}(x, w_shift): return x"
    assert one_pair(tmp_path, baseline=version(extra=definition)).baseline.summary.startswith("Double")


def test_a_pair_is_read_without_importing_it(tmp_path):
    (tmp_path / "toy.py").write_text("import json, numpy")
    exits = "raise SystemExit"
    pair = one_pair(tmp_path, version(extra=f"import toy\n{exits}"), version(extra=exits))
    assert (pair.chapter, pair.name, pair.baseline.label) == (tmp_path.name, "double", "baseline")
    assert pair.sizes == {"check": {"n": 127}, "default": {"n": 4096}}
    assert pair.check_sizes == ["check"]
    (optimized,) = pair.variants
    said = optimized.label, optimized.summary, optimized.functions["inputs"], optimized.functions["run"]
    doubles = "Double a vector and shift it: 8 bytes moved per element."
    assert said == ("optimized", doubles, ("n", "device"), ("x", "w_shift"))
    assert optimized.imports == {"torch", "toy", "json", "numpy"}
    assert not optimized.has_kernel and not optimized.needs_cuda


def test_the_longest_baseline_name_that_fits_wins(tmp_path):
    write_pair(tmp_path, "double", {"": version(), "fused": version()})
    write_pair(tmp_path, "double_fused", {"": version(), "twice_over": version()})
    found = {pair.name: [variant.label for variant in pair.variants] for pair in discover(tmp_path)}
    assert found == {"double": ["optimized"], "double_fused": ["optimized", "optimized/twice_over"]}


def test_a_variant_may_name_an_earlier_rung(tmp_path):
    rungs = {"b": version(extra='VERSUS = "a"'), "c": version(extra='VERSUS = ""')}
    write_pair(tmp_path, "double", {"": version(), "a": version(), **rungs})
    assert [version.constants.get("VERSUS") for version in discover(tmp_path)[0].variants] == [None, None, "a", ""]


# Loading


def test_each_load_is_a_fresh_module_with_fresh_helpers(tmp_path):
    (tmp_path / "toy.py").write_text("seen = []")
    pair = one_pair(tmp_path, version(extra="import toy\nmine = []"))
    first, second = (load(pair.variants[0].path) for _ in range(2))
    assert first.mine is not second.mine
    assert first.toy.seen is not second.toy.seen
    assert str(tmp_path) not in sys.path
    assert "toy" not in sys.modules


def test_helpers_are_fresh_where_the_folder_is_a_relative_path_too(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text("seen = []")
    write_pair(tmp_path, "double", version(extra="import toy"))
    monkeypatch.chdir(tmp_path.parent)
    (pair,) = discover(tmp_path.relative_to(tmp_path.parent))
    first, second = (load(pair.variants[0].path) for _ in range(2))
    assert first.toy.seen is not second.toy.seen
    assert "toy" not in sys.modules


def test_a_package_beside_a_version_is_one_of_its_helpers_and_loaded_once(tmp_path):
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "__init__.py").write_text("def build():\n    from .bricks import brick\n\n    return brick")
    (tmp_path / "toys" / "bricks.py").write_text("import array\n\nbrick = []")
    pair = one_pair(tmp_path, version(extra="import toys"))
    assert {"toys", "array"} <= pair.variants[0].imports
    assert why_not(pair.variants[0], CPU, 0) == ""
    first, second = (load(pair.variants[0].path) for _ in range(2))
    assert first.toys.build() is second.toys.build()
    del sys.modules["toys"], sys.modules["toys.bricks"]
    before = source_hash(pair)
    (tmp_path / "toys" / "bricks.py").write_text("import array\n\nbrick = [1]")
    assert source_hash(discover(tmp_path)[0]) != before


def test_a_failing_import_leaves_no_path_behind(tmp_path):
    pair = one_pair(tmp_path, version(extra="1 / 0"))
    with pytest.raises(ZeroDivisionError):
        load(pair.variants[0].path)
    assert str(tmp_path) not in sys.path


# The hash of the sources

SAME = {
    "docstring": lambda text: text.replace("Double a vector", "Twice a vector"),
    "comment": lambda text: text + "# a comment\n",
    "layout": lambda text: text.replace("2 * x + w_shift", "(2 *\n            x) + w_shift"),
    "a function's docstring": lambda text: text.replace("    return 2", '    """Words."""\n    return 2'),
}
OTHER = {
    "a value": lambda text: text.replace("2 * x", "3 * x"),
    "a constant": lambda text: text + "THREADS = 256\n",
    "a default": lambda text: text.replace("n=127", "n=128"),
    "a string": lambda text: text.replace('"w_shift"', '"w_shifts"'),
}


@pytest.mark.parametrize(("change", "same"), [*((c, True) for c in SAME), *((c, False) for c in OTHER)])
def test_the_hash_covers_what_a_version_does_and_not_its_words(change, same, tmp_path):
    before = source_hash(one_pair(tmp_path))
    changed = {**SAME, **OTHER}[change](version())
    assert changed != version()
    assert (source_hash(one_pair(tmp_path, changed)) == before) is same
    assert (source_hash(one_pair(tmp_path, version(), changed)) == before) is same


def test_the_hash_leaves_out_what_a_result_stores_itself(tmp_path):
    write_pair(tmp_path, "double", {"": version(), "fused": version()})
    before = source_hash(discover(tmp_path)[0])
    sizes = {"check": {"n": 5}, "default": {"n": 9}}
    variants = {"": re.sub("SIZES = .*", "", version()), "fused": version(extra='VERSUS = ""', sizes=sizes)}
    write_pair(tmp_path, "double", variants, version(sizes=sizes))
    assert source_hash(discover(tmp_path)[0]) == before


def test_the_hash_covers_helpers_of_helpers_and_nothing_else(tmp_path):
    for name, text in {"toy": "import deep", "deep": "a = 1", "stranger": "a = 1"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = source_hash(one_pair(tmp_path, version(extra="import toy")))
    (tmp_path / "stranger.py").write_text("a = 2")
    assert source_hash(discover(tmp_path)[0]) == before
    (tmp_path / "deep.py").write_text("a = 2")
    assert source_hash(discover(tmp_path)[0]) != before


def test_the_hash_covers_a_variant_that_is_added(tmp_path):
    before = source_hash(one_pair(tmp_path))
    (tmp_path / "optimized_double_fused.py").write_text(version())
    assert source_hash(discover(tmp_path)[0]) != before


# Why a version cannot run here


@pytest.mark.parametrize(
    ("extra", "device", "gpus", "expected"),
    [
        ("", CPU, 0, ""),
        ("", H200, 1, ""),
        ("import no_such_package_here", CPU, 0, "needs the package no_such_package_here"),
        ("import toy", CPU, 0, "needs the package no_such_package_there"),
        ('DEVICE = "cuda"', CPU, 0, "needs an NVIDIA GPU"),
        ('DEVICE = "cuda"', H200, 1, ""),
        ('REQUIRES = {"capability": (9, 0)}', H200, 1, ""),
        ('REQUIRES = {"capability": (10, 0)}', H200, 1, "needs compute capability 10.0, this GPU has 9.0"),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', H200, 1, "needs 2 GPUs, this machine has 1"),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', H200, 2, ""),
    ],
)
def test_why_a_version_cannot_run(extra, device, gpus, expected, tmp_path):
    (tmp_path / "toy.py").write_text("import no_such_package_there")
    assert why_not(one_pair(tmp_path, version(extra=extra)).variants[0], device, gpus) == expected


def test_every_chapter_keeps_the_contract():
    chapters = [folder for folder in ROOT.glob("ch*") if folder.is_dir()]
    assert chapters
    for folder in chapters:
        assert discover(folder)


def test_the_package_of_every_missing_name_is_really_missing():
    assert importlib.util.find_spec("no_such_package_here") is None
