"""Every way to get a pair wrong is one line that names the file and the fix; and what a right pair is read as."""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from samples import SIZES, one_pair, refused, version, write_pair

from common.pairs.pair import NOT_INTERPRETED, ROOT, discover, load, pairs_without, skip_reason
from common.pairs.source import source_hash

CPU = {"kind": "cpu", "capability": None}
H200 = {"kind": "cuda", "capability": [9, 0]}
B200 = {"kind": "cuda", "capability": [10, 0]}
EXACT = 'REQUIRES = {"capability": (9, 0), "exact": True}'
KERNEL = "import triton\n@triton.jit\ndef kernel(x_ptr): ...\n"


def changed(pattern, replacement):
    return re.sub(pattern, lambda _: replacement, version())


def misspelt(meant, written):
    """A version with this name instead of the one that is meant, or beside those that there are."""
    if meant in version():
        return version().replace(meant, written)
    return version(extra=f"{written} = 1" if meant.isupper() else f"def {written}(x): ...")


MISSPELT = {
    "inputs": "input", "run": "runn", "setup": "set_up", "reference": "referense", "library": "libary", "cost": "costs",
    "SIZES": "SIZE", "CLOCK": "CLOK", "TOLERANCE": "TOLERANCES", "VERSUS": "VERSU: str",
}  # fmt: skip
MISSPELT_SIZES = {
    "cheque/one": "check/one", "Check": "check", "chek": "check", "checks/odd": "check/odd",
    "cpus": "cpu", "CPU": "cpu", "counts": "count", "defaults": "default",
}  # fmt: skip
WRONG_SIZES = {  # SIZES, what the error must say
    "empty SIZES": ("{}", "needs a dict SIZES"),
    "SIZES is a list": ('["check", "default"]', "SIZES"),
    "SIZES computed": ('{"check": {"n": 127}, "default": {"n": 2**20}}', r":\d+: SIZES must be a literal"),
    "SIZES built": ('dict(check={"n": 1}, default={"n": 2})', "SIZES must be a literal"),
    "SIZES no literal at all": ('{["check"]: {"n": 127}}', "SIZES must be a literal"),
    "a size is no dict": ('{"check": 127, "default": 8}', r"SIZES\['check'\] must be a dict"),
    "a size has no name": ('{1: {"n": 127}, "check": {"n": 1}, "default": {"n": 8}}', "SIZES"),
    "unknown argument": ('{"check": {"m": 1}, "default": {"n": 8}}', r"SIZES\['check'\] names m"),
    "a device in a size": ('{"check": {"n": 1, "device": "cpu"}, "default": {"n": 8}}', r"SIZES\['check'\].*device"),
    "parts of count": ('{"check": {"n": 1}, "count/a": {"n": 8}, "default": {"n": 8}}', "it is a single size"),
    **{
        f"{written} for {meant}": (
            f'{{"{written}": {{"n": 1}}, "check": {{"n": 1}}, "default": {{"n": 8}}}}',
            f"SIZES has '{written}': did you mean '{meant}'",
        )
        for written, meant in MISSPELT_SIZES.items()
    },
    "no check": ('{"default": {"n": 8}}', 'no "check": add'),
    "no default": ('{"check": {"n": 8}}', 'no "default": add'),
}
WRONG_LINES = {  # a line of its own, what the error must say
    "CLOCK": ('CLOCK = "cpu"', 'CLOCK must be "device" or "wall"'),
    "DEVICE": ('DEVICE = "cuda:0"', 'DEVICE must be "cuda"'),
    "REQUIRES": ('REQUIRES = {"memory": 9}', 'REQUIRES must be a dict with only "capability", "exact" and "gpus"'),
    "REQUIRES is no dict": ("REQUIRES = 2", "REQUIRES"),
    "REQUIRES capability": ('REQUIRES = {"capability": 9.0}', "REQUIRES.*capability"),
    "REQUIRES exact": ('REQUIRES = {"capability": (9, 0), "exact": False}', "REQUIRES.*exact.*True"),
    "REQUIRES exact alone": ('REQUIRES = {"exact": True}', "REQUIRES.*exact.*capability"),
    "REQUIRES gpus": ('REQUIRES = {"gpus": "two"}', "REQUIRES.*gpus"),
    "PRECISION": ('PRECISION = "version"', "PRECISION must be one of .*bf16"),
    "TOLERANCE": ("TOLERANCE = 1e-3", r"TOLERANCE must be \(rtol, atol\)"),
    "TOLERANCE beyond all numbers": (f"TOLERANCE = ({10**400}, 1)", "TOLERANCE must be .*finite"),
    "TOLERANCE that is none": ("TOLERANCE = (1e400, 1)", "TOLERANCE must be .*finite"),
    "TOLERANCE of words": ('TOLERANCE = ("a", "b")', r"TOLERANCE must be \(rtol, atol\)"),
    "NO_GRADIENTS without a reason": ("NO_GRADIENTS = True", "NO_GRADIENTS must say why"),
    "NARROW_WEIGHTS without a reason": ('NARROW_WEIGHTS = ""', "NARROW_WEIGHTS must say why weights cannot all"),
    "LIBRARY_NEEDS of no function": ('LIBRARY_NEEDS = {"library_x": "torch"}', "LIBRARY_NEEDS must be"),
    "LIBRARY_NEEDS of no import": ('LIBRARY_NEEDS = {"run": "nowhere"}', "LIBRARY_NEEDS must be"),
    "LIBRARY_NEEDS that is no dict": ('LIBRARY_NEEDS = "torch"', "LIBRARY_NEEDS must be"),
    "NARROW_WEIGHTS in a version": ('NARROW_WEIGHTS = "8 GB"', "has NARROW_WEIGHTS: move it to the baseline"),
    "NO_GRADIENTS in a version": ('NO_GRADIENTS = "inference"', "has NO_GRADIENTS: move it to the baseline"),
    "STRESS without a reason": ('STRESS = {"NaN": ""}', "STRESS must be {draw: why"),
    "STRESS of no draw": ('STRESS = {"nan": "it is"}', "STRESS must be .* of arrays with gaps, "),
    "a constant that is computed": ("CLOCK = str()", "CLOCK must be a literal"),
    "VERSUS nobody": ('VERSUS = "fused"', "VERSUS = 'fused' names no variant"),
    "VERSUS itself": ('VERSUS = ""', "VERSUS"),
    "imports common": ("from common.pairs.pair import ROOT", "imports common"),
    "imports its twin": ("from baseline_double import run as twin", "imports baseline_double"),
    "imports another baseline": ("import baseline_triple", "imports baseline_triple"),
    "imports itself": ("import optimized_double", "imports optimized_double"),
    "imports a variant of its pair": ("from optimized_double_fused import run as twin", "imports optimized_double_fu"),
    "imports a chapter": ("import ch2.toy", "imports ch2"),
}
NO_PLAIN_RUN = (
    "run = torch.lerp", "async def run(x, w_shift): ...", "class run: ...", "from torch import lerp as run",
)  # fmt: skip
PLAIN = "no function `run`: write it in this file as a plain `def`$"
WRONG = {  # the text of a version, what the error must say
    **{
        f"{meant} misspelt": (misspelt(meant, like), f"defines `{like.split(':')[0]}`: did you mean `{meant}`")
        for meant, like in MISSPELT.items()
    },
    **{what: (version(extra=line), said) for what, (line, said) in WRONG_LINES.items()},
    "no docstring": (changed('"""Double.*"""', ""), "no docstring.*first line"),
    "an empty docstring": (changed('"""Double.*"""', '"""  """'), "no docstring"),
    "no inputs": (changed("def inputs", "def _draw"), "no function `inputs`: add inputs"),
    "no run": (changed("def run", "def go"), "no function `run`: add run"),
    "run is nearly there": (changed("def run", "def rnu"), r"no function `run`: rename `rnu`, or add run\("),
    "inputs are nearly there": (changed("def inputs", "def get_inputs"), "`inputs`: rename `get_inputs`, or add in"),
    **{f"run by {line}": (changed(r"def run\(.*\):", f"{line}\ndef other(x):"), PLAIN) for line in NO_PLAIN_RUN},
    "no device": (changed(', device="cuda"', ""), '`inputs` takes no `device`: add device="cuda"'),
    "imports common inside run": (changed("return 2", "import common\n    return 2"), "imports common"),
    "syntax error": (changed("def run", "def def run"), r":\d+: syntax error"),
    "null byte": (changed("return 2", "return 2\0"), "syntax error"),
    "a sum without end": (changed("return 2", f"return {'1 + ' * 10_000} 2"), "nests more than 100 expressions"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_version_is_one_line_that_names_the_file_and_the_fix(text, said, tmp_path):
    assert text != version()
    with refused(said, tmp_path / "optimized_double.py"):
        one_pair(tmp_path, text)


@pytest.mark.parametrize(("sizes", "said"), WRONG_SIZES.values(), ids=WRONG_SIZES)
def test_wrong_sizes_are_mended_in_the_baseline_and_removed_elsewhere(sizes, said, tmp_path):
    text = changed("SIZES = .*", f"SIZES = {sizes}")
    with refused(said, tmp_path / "baseline_double.py"):
        one_pair(tmp_path, baseline=text)
    elsewhere = said if "literal" in said else "SIZES stand in the baseline only: remove them here"
    with refused(elsewhere, tmp_path / "optimized_double.py"):
        one_pair(tmp_path, text)


def test_sizes_stand_in_the_baseline_and_a_variant_inherits_them(tmp_path):
    with refused("SIZES stand in the baseline only", tmp_path / "optimized_double.py"):
        one_pair(tmp_path, changed("127}", "129}"))
    with refused(r"SIZES\['tiny'\] lacks n, which", tmp_path / "baseline_double.py"):
        one_pair(tmp_path, baseline=version(sizes={"tiny": {}, **SIZES}).replace("n=127", "n"))
    bare = changed("SIZES = .*", "")
    pair = one_pair(tmp_path, bare)
    assert pair.variants[0].constants["SIZES"] == pair.sizes == pair.baseline.constants["SIZES"]
    with refused("optimized_double.py: SIZES.* names n, which `inputs` does not take"):
        one_pair(tmp_path, bare.replace("n=127, ", ""))
    with refused("needs a dict SIZES = {", tmp_path / "baseline_double.py"):  # a wrong baseline is named, too
        one_pair(tmp_path, version(), bare)


@pytest.mark.parametrize("name", ["2d", "chunk/8", "cheap", "gpu", "mount", "faults/2"])
def test_a_class_of_sizes_may_have_a_name_of_its_own(name, tmp_path):
    assert one_pair(tmp_path, baseline=version(sizes={**SIZES, name: {"n": 8}})).timed_sizes == ["default", name]


def test_a_baseline_leaves_no_draw_out(tmp_path):
    with refused("has STRESS: move it to the variant that it is for", tmp_path / "baseline_double.py"):
        one_pair(tmp_path, version(), version(extra='STRESS = {"NaN": "it is"}'))


def test_a_version_may_build_on_an_optimized_version_of_another_pair(tmp_path):
    write_pair(tmp_path, "half", {"fused": version(run="return x / 2")})
    pair = one_pair(tmp_path, version(extra="import optimized_half_fused as half", run="return half.run(x, 0) * 4"))
    halved = source_hash(pair)
    assert load(pair.versions[1].path).run(x=1, w_shift=1) == 2
    write_pair(tmp_path, "half", {"fused": version(run="return x / 3")})
    assert source_hash(pair) != halved


def test_a_variant_builds_on_no_version_of_its_own_pair_whatever_its_name(tmp_path):
    write_pair(tmp_path, "c(+", {"": version(), "fused": version()})
    assert [version.label for version in discover(tmp_path)[0].variants] == ["optimized", "optimized/fused"]
    write_pair(tmp_path, "double", {"": version(), "fused": version(extra="import optimized_double")})
    with refused("imports optimized_double: ", tmp_path / "optimized_double_fused.py"):
        discover(tmp_path)


def test_an_orphan_of_either_kind_is_named_with_its_missing_partner(tmp_path):
    write_pair(tmp_path, "double", version())
    (tmp_path / "optimized_triple.py").write_text(version())
    for mine, other in (("optimized", "baseline"), ("baseline", "optimized")):
        with refused(rf"{mine}_triple\.py: has no partner: add {other}_triple\.py"):
            discover(tmp_path)
        (tmp_path / f"{mine}_triple.py").rename(tmp_path / f"{other}_triple.py")


MISNAMED = {  # the name of a file, the name that is meant
    "optimised_double.py": "optimized_double.py", "optimize_double_fused.py": "optimized_double_fused.py",
    "optimized_double.PY": "optimized_double.py", "Optimized_double.py": "optimized_double.py",
    "optimized-double.py": "optimized_double.py", "double_optimized.py": "optimized_double.py",
    "double_fused_optimised.py": "optimized_double_fused.py", "basline_double.py": "baseline_double.py",
    "double_baseline.py": "baseline_double.py",
}  # fmt: skip


@pytest.mark.parametrize("beside", ["baseline_double.py", "optimized_double.py", "nothing", "both"])
@pytest.mark.parametrize("name", MISNAMED)
def test_a_version_under_a_wrong_name_is_named_with_the_right_one(name, beside, tmp_path):
    write_pair(tmp_path, "double", version())
    for file in list(tmp_path.iterdir()):
        if beside not in (file.name, "both"):
            file.unlink()
    (tmp_path / name).write_text(version())
    with refused(f": is not read as a version: rename it to {MISNAMED[name]}, or remove it$", tmp_path / name):
        discover(tmp_path, "dou*" if beside != "nothing" else "*")


def test_other_files_may_have_any_name(tmp_path):
    pair = one_pair(tmp_path)
    for name in ("optimizer.py", "optimizer_state.py", "triple_optimized.py", "test_baseline_double.py", "double.py",
                 "optimized_double.txt", "baseline.py", "doubled_optimized.py", "double_base.py"):  # fmt: skip
        (tmp_path / name).write_text("")
    write_pair(tmp_path, "triple_it", version())
    (tmp_path / "optimised_triple_it.py").write_text(version())
    assert discover(tmp_path, "double") == [pair]


@pytest.fixture
def nothing_of_chapters(monkeypatch):
    """Other tests import chapters' helpers: here there are none to be found."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if Path(path).parent != ROOT])
    for name in ("compiled", "clifford"):
        monkeypatch.delitem(sys.modules, name, raising=False)


COPIES = [  # files of chapters, what is said
    (
        ["ch3/baseline_softmax.py"],
        "has no partner: also copy compiled.py and at least one of optimized_softmax_registers.py, ",
    ),
    (["ch3/optimized_softmax_online.py"], "has no partner: also copy compiled.py and baseline_softmax.py from ch3/"),
    (
        ["ch3/baseline_softmax.py", "ch3/optimized_softmax_registers.py"],
        "needs compiled.py beside it: copy it from ch3/$",
    ),
    (["ch5/baseline_layer.py", "ch5/optimized_layer.py"], "needs clifford beside it: copy it from ch5/$"),
]


@pytest.mark.parametrize(("files", "said"), COPIES)
def test_what_else_must_be_copied_of_a_chapter_is_said(files, said, tmp_path, nothing_of_chapters):
    for file in files:
        shutil.copy(ROOT / file, tmp_path)
    with refused(said, tmp_path):
        discover(tmp_path)


def test_a_module_of_some_chapter_that_a_pair_of_ones_own_lacks_is_named_with_all_that_have_it(
    tmp_path, nothing_of_chapters
):
    with refused(
        "optimized_double.py: needs compiled.py beside it: copy it from ch3/ or ch4/ or ch5/ or ch7/ or ch8/$"
    ):
        one_pair(tmp_path, version(extra="import compiled"))
    (tmp_path / "compiled.py").write_text("")
    assert one_pair(tmp_path, version(extra="import compiled"))


@pytest.mark.parametrize(
    ("line", "name"),
    [("from helper import halve", "helper"), ("import trch as torch", "trch"), ("import helper.parts", "helper")],
)
def test_a_module_that_is_nowhere_is_refused_in_a_version_and_in_its_helper(line, name, tmp_path):
    said = f"imports {name}: there is no {name}.py in this folder, and no package of that name is installed: add the"
    with refused(said, tmp_path / "optimized_double.py"):
        one_pair(tmp_path, version(extra=line))
    (tmp_path / "toy.py").write_text(line)
    with refused(said, tmp_path / "toy.py"):
        one_pair(tmp_path, version(extra="import toy"))


def test_a_folder_that_is_missing_or_empty_or_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    missing, empty, file = "no such folder", "holds no pairs: add baseline_<name>.py", "is a file: name its folder"
    for name, said in {"nowhere": missing, "long" * 2000: missing, ".": empty, "file": file}.items():
        with refused(f"^{tmp_path / name}: {said}"):
            discover(tmp_path / name)


def test_a_pattern_that_matches_nothing_says_what_there_is(tmp_path):
    write_pair(tmp_path, "double", version())
    write_pair(tmp_path, "triple", version())
    with refused(r"'quad\*'.*double, triple"):
        discover(tmp_path, "quad*")


def test_only_what_the_pattern_selects_must_keep_the_contract(tmp_path):
    write_pair(tmp_path, "double", version())
    write_pair(tmp_path, "broken", "def def")
    (tmp_path / "optimized_orphan.py").write_text(version())
    assert [pair.name for pair in discover(tmp_path, "dou*")] == ["double"]


def test_two_custom_kernels_need_a_reference(tmp_path):
    kernel, with_oracle = version(extra=KERNEL), version(extra=KERNEL + "def reference(x, w_shift): ...")
    with refused(r"baseline_double\.py: both versions are custom kernels: add reference"):
        one_pair(tmp_path, kernel, kernel)
    assert one_pair(tmp_path, kernel, with_oracle).baseline.has_kernel
    assert not one_pair(tmp_path, kernel, version()).baseline.has_kernel  # then the baseline's run is the oracle


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "optimized_double_gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "toy.py").write_text("def def")
    helped = version(extra="import toy")
    for text, said in ((version(), "optimized_double_gone.py"), (helped, r"toy\.py:1: syntax error")):
        with refused(said):
            one_pair(tmp_path, text)
        (tmp_path / "optimized_double_gone.py").unlink(missing_ok=True)


@pytest.mark.parametrize("name", [os.fsdecode(b"baseline_\xff.py"), "baseline_\x1b[31m.py"])
def test_a_name_that_cannot_be_printed_is_told_in_words_that_can(name, tmp_path):
    (tmp_path / name).write_text(version())
    (tmp_path / name.replace("baseline", "optimized")).write_text(version())
    with refused(r"baseline_\\\w+(\[31m)?.py: has a name with unprintable") as caught:
        discover(tmp_path)
    assert str(caught.value).isprintable()
    str(caught.value).encode()


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
    assert (pair.sizes, pair.check_sizes) == ({"check": {"n": 127}, "default": {"n": 4096}}, ["check"])
    (optimized,) = pair.variants
    said = optimized.label, optimized.summary, optimized.functions["inputs"], optimized.functions["run"]
    doubles = "Double a vector and shift it: 8 bytes moved per element."
    assert said == ("optimized", doubles, ("n", "device"), ("x", "w_shift"))
    assert optimized.imports == {"torch", "toy", "json", "numpy"}
    assert not optimized.has_kernel and not optimized.needs_cuda


def test_a_size_to_count_at_is_neither_checked_nor_timed(tmp_path):
    bare = changed("SIZES = .*", "")
    hashes, pairs = [], []
    for sizes in (SIZES, {**SIZES, "count": {"n": 64}}):
        pairs.append(one_pair(tmp_path, bare, version(sizes=sizes)))
        hashes.append(source_hash(pairs[-1]))
    plain, pair = pairs
    assert pair.sizes == {**plain.sizes, "count": {"n": 64}}
    assert (pair.check_sizes, pair.timed_sizes) == (["check"], ["default"]) == (plain.check_sizes, plain.timed_sizes)
    assert hashes[0] == hashes[1]
    assert pairs_without([pair], "count") == ["double"]  # as of a size that it does not have


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


@pytest.mark.parametrize("is_relative", [False, True])
def test_each_load_is_a_fresh_module_with_fresh_helpers(is_relative, tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text("seen = []")
    monkeypatch.chdir(tmp_path.parent)
    pair = one_pair(Path(tmp_path.name) if is_relative else tmp_path, version(extra="import toy\nmine = []"))
    first, second = (load(pair.variants[0].path) for _ in range(2))
    assert first.mine is not second.mine
    assert first.toy.seen is not second.toy.seen
    assert str(tmp_path) not in sys.path and "toy" not in sys.modules


def test_a_package_beside_a_version_is_one_of_its_helpers_and_loaded_once(tmp_path):
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys" / "__init__.py").write_text("def build():\n    from .bricks import brick\n\n    return brick")
    (tmp_path / "toys" / "bricks.py").write_text("import array\n\nbrick = []")
    pair = one_pair(tmp_path, version(extra="import toys"))
    assert {"toys", "array"} <= pair.variants[0].imports
    assert skip_reason(pair.variants[0], CPU, 0) == ""
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
    "docstring": changed("Double a vector", "Twice a vector"),
    "comment": version() + "# a comment\n",
    "layout": changed(r"2 \* x \+ w_shift", "(2 *\n            x) + w_shift"),
    "a function's docstring": changed("    return 2", '    """Words."""\n    return 2'),
}
OTHER = {
    "a value": changed(r"2 \* x", "3 * x"),
    "a constant": version() + "THREADS = 256\n",
    "a default": changed("n=127", "n=128"),
    "a string": changed('"w_shift"', '"w_shifts"'),
}


@pytest.mark.parametrize("text", [*SAME.values(), *OTHER.values()], ids=[*SAME, *OTHER])
def test_the_hash_covers_what_a_version_does_and_not_its_words(text, tmp_path):
    assert text != version()
    before, *after = (source_hash(one_pair(tmp_path, *texts)) for texts in ((), (text,), (version(), text)))
    assert [found == before for found in after] == [text in SAME.values()] * 2


def test_the_hash_leaves_out_what_a_result_stores_itself(tmp_path):
    write_pair(tmp_path, "double", {"": version(), "fused": version()})
    before = source_hash(discover(tmp_path)[0])
    sizes = {"check": {"n": 5}, "default": {"n": 9}}
    variants = {"": changed("SIZES = .*", ""), "fused": version(extra='VERSUS = ""', sizes=sizes)}
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
        ("import cupy", CPU, 0, "needs the package cupy"),
        ("import toy", CPU, 0, "needs the package cupy, msvcrt"),
        ('DEVICE = "cuda"', CPU, 0, "needs an NVIDIA GPU"),
        ('DEVICE = "cuda"', H200, 1, ""),
        ('REQUIRES = {"capability": (9, 0)}', H200, 1, ""),
        ('REQUIRES = {"capability": (10, 0)}', H200, 1, "needs compute capability 10.0, this GPU has 9.0"),
        (EXACT, H200, 1, ""),
        (EXACT, B200, 1, "needs compute capability 9.0 and no other, this GPU has 10.0"),
        (EXACT, H200 | {"capability": [8, 9]}, 1, "needs compute capability 9.0 and no other, this GPU has 8.9"),
        ("from triton.experimental import gluon", CPU, 0, NOT_INTERPRETED),
        ("from triton.experimental.gluon.language.nvidia import hopper", CPU, 0, NOT_INTERPRETED),
        ("import triton.experimental", CPU, 0, ""),
        ("import gluon_helper", CPU, 0, NOT_INTERPRETED),
        ("from triton.experimental import gluon", H200, 1, ""),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', H200, 1, "needs 2 GPUs, this machine has 1"),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', H200, 2, ""),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', CPU, 0, "needs an NVIDIA GPU"),
        ('DEVICE = "cuda"\nREQUIRES = {"gpus": 2}', CPU, 1, "needs 2 GPUs, this machine has 1"),  # RANKS: with gloo
    ],
)
def test_why_a_version_cannot_run(extra, device, gpus, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name not in ("cupy", "msvcrt"))
    (tmp_path / "toy.py").write_text("import cupy, msvcrt")
    (tmp_path / "gluon_helper.py").write_text("from triton.experimental import gluon")
    assert skip_reason(one_pair(tmp_path, version(extra=extra)).variants[0], device, gpus) == expected


def test_torch_compile_finds_a_helper(tmp_path):
    """torch.compile imports the module of each function that it meets, by its name."""
    (tmp_path / "doubled.py").write_text("FACTOR = 2\n\n\ndef twice(x):\n    return FACTOR * x\n")
    (tmp_path / "baseline_t.py").write_text("import doubled\n\n\ndef run(x):\n    return doubled.twice(x) + 1\n")
    module = load(tmp_path / "baseline_t.py")
    assert torch.compile(module.run, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [3, 3]
    assert "doubled" not in sys.modules
