"""Every pair of every chapter, found by itself: versions differ in the lesson alone, both are right, zeros are not."""

import ast
import re
import shutil
import sys
from dataclasses import replace

import pytest
import torch

from common.engine import runner
from common.engine.runner import run_pairs
from common.machine.device import default_device, has_gpu
from common.machine.limits import GEMM
from common.pairs.pair import ROOT, Pair, discover, load

FOLDERS = sorted({path.parent for path in ROOT.glob("ch[0-9]*/baseline_*.py")})
PAIRS = [pair for folder in FOLDERS for pair in discover(folder)]
VARIANTS = [(pair, version) for pair in PAIRS for version in pair.variants]
MAY_IMPORT = {"torch", "triton", "cupy", "numpy", *sys.stdlib_module_names}
COST_KEYS = {"dram_bytes", "h2d_bytes", "d2h_bytes", "link_bytes", "fp8_flops", *GEMM}
SAME_IN_ALL = ("SIZES", "CLOCK", "TOLERANCE", "LIBRARY_DIFFERS", "reference", "cost")


def marks(pair, version):
    """What a run of both versions needs: a GPU, or more of them than one."""
    if not (pair.baseline.needs_cuda or version.needs_cuda):
        return ()
    least = version.constants.get("REQUIRES", {}).get("gpus", 1)
    too_few = pytest.mark.skipif(torch.cuda.device_count() < least, reason=f"needs {least} GPUs")
    return (pytest.mark.gpu, too_few) if least > 1 else (pytest.mark.gpu,)


def each_version(needs_a_run=False):
    """Every variant with its pair, marked by what it needs where the test runs it.

    A group for each pair: of processes that share the tests (`make test`), one checks it, with all its variants.
    """
    return [
        pytest.param(pair, version, id=version.path.stem, marks=(group, *(marks(pair, version) if needs_a_run else ())))
        for pair, version in VARIANTS
        for group in [pytest.mark.xdist_group(f"{pair.chapter} {pair.name}")]
    ]


def definitions(version):
    """Top-level name -> its definition as text, without docstrings, in the file's order; imports left out."""
    found = {}
    for node in ast.parse(version.path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found.update(dict.fromkeys(names, node))
    return {name: ast.dump(node) for name, node in found.items()}


def signature(version, name):
    (node,) = [
        node for node in ast.parse(version.path.read_text(encoding="utf-8")).body if getattr(node, "name", "") == name
    ]
    return ast.dump(node.args)


# The diff is the lesson


def test_there_are_pairs():
    assert {pair.name for pair in PAIRS} >= {
        "preallocation",
        "batch_size",
        "batched_gemm",
        "coalescing",
        "cuda_graphs",
        "pinned_memory",
        "double_buffering",
        "arithmetic_intensity",
    }


@pytest.mark.parametrize(("pair", "version"), each_version())
def test_what_is_no_lesson_is_written_the_same_in_both_versions(pair, version):
    mine, base = definitions(version), definitions(pair.baseline)
    assert signature(version, "inputs") == signature(pair.baseline, "inputs")
    libraries = [name for name in {*mine, *base} if name.startswith("library")]
    for name in (*SAME_IN_ALL, *libraries):
        if name == "cost" and "PRECISION" in mine:  # another precision counts its FLOPs under another key
            continue
        if name in libraries and name not in base and "PRECISION" in mine:  # a library of that precision
            continue
        if name in mine or name in base:
            assert mine.get(name) == base.get(name), name
    for what, least in pair.baseline.constants.get("REQUIRES", {}).items():  # a variant may need more
        assert version.constants["REQUIRES"][what] >= least


@pytest.mark.parametrize(("pair", "version"), each_version())
def test_names_stand_in_the_same_order(pair, version):
    mine, base = definitions(version), definitions(pair.baseline)
    assert [name for name in mine if name in base] == [name for name in base if name in mine]


@pytest.mark.parametrize(("pair", "version"), each_version())
def test_there_is_a_lesson_and_it_is_not_all(pair, version):
    mine, base = definitions(version), definitions(pair.baseline)
    differing = {name for name in {*mine, *base} if mine.get(name) != base.get(name)}
    assert differing
    assert differing < {*mine, *base}


@pytest.mark.parametrize(("pair", "version"), each_version())
def test_run_takes_the_inputs_in_the_same_order(pair, version):
    """What follows them is what `setup` made."""
    inputs = version.functions.get("setup", version.functions["run"])
    assert inputs == pair.baseline.functions.get("setup", pair.baseline.functions["run"])
    assert version.functions["run"][: len(inputs)] == inputs
    for name in ("reference", "cost", "library"):
        if name in version.functions:
            assert [parameter for parameter in version.functions[name] if parameter != "rows"] == list(inputs)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_stands_on_its_own(pair):
    for version in pair.versions:
        helpers = {path.stem for path in version.path.parent.iterdir()}
        assert version.imports - helpers <= MAY_IMPORT
        assert len(version.path.read_text(encoding="utf-8").splitlines()) <= (150 if version.has_kernel else 80)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_checks_are_small_and_odd(pair):
    numbers = [value for size in pair.check_sizes for value in pair.sizes[size].values() if isinstance(value, int)]
    assert any(value % 2 for value in numbers)
    assert max(numbers) <= 200_000


@pytest.mark.parametrize(("pair", "version"), each_version(needs_a_run=True))
def test_costs_are_amounts_of_known_resources_and_equal_in_both_versions(pair, version):
    """A misspelt resource would silently leave the pair without a limit."""
    arguments = pair.sizes[pair.check_sizes[0]]
    modules = [load(path) for path in (pair.baseline.path, version.path)]
    base, mine = (module.cost(**module.inputs(**arguments, device=default_device())) for module in modules)
    assert base
    assert set(base) | set(mine) <= COST_KEYS
    assert all(amount > 0 for amount in (*base.values(), *mine.values()))
    assert list(base.values()) == list(mine.values())  # under another key only where the precision is another
    assert base == mine or "PRECISION" in version.constants


# Right, also where nobody looked; zeros are wrong


def further(pair: Pair) -> Pair:
    """The pair with one more odd size to check than it names itself: other tails where it is wide, more where not.

    One or two of something (a batch, heads) stay that many: the interpreter takes seconds for each.
    """

    def changed(value):
        if type(value) is not int or value <= 2:
            return value
        return value + 2 if value > 16 else 2 * value + 1

    arguments = {name: changed(value) for name, value in pair.sizes[pair.check_sizes[0]].items()}
    return replace(pair, sizes={**pair.sizes, "check/further": arguments})


def verdicts(pair):
    """Variant -> row, of a pair that was checked on this machine."""
    record = run_pairs([pair], device=default_device(), check_only=True)
    if record.environment["interrupted"]:  # what is missing then is no fault of the pair
        raise KeyboardInterrupt
    return {row.variant: row for result in record.pairs for row in result.rows if row.versus == "baseline"}


def once(check):
    """`check` of a pair, remembered."""
    found = {}

    def remembered(pair):
        if pair.baseline.path not in found:
            found[pair.baseline.path] = check(pair)
        return found[pair.baseline.path]

    return remembered


@pytest.fixture(scope="module")
def machine():
    surveyed = runner.survey_apart(default_device(), with_limits=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: surveyed)
        yield


@pytest.fixture(scope="module")
def honest(machine):
    """honest(pair): variant -> row."""
    return once(lambda pair: verdicts(further(pair)))


def at_the_first_check_size(pair: Pair) -> Pair:
    """Where zeros are to be found out already: at the others the baseline would be run alone."""
    _, *others = pair.check_sizes
    return replace(pair, sizes={size: arguments for size, arguments in pair.sizes.items() if size not in others})


ZEROED = """

_answer = run


def run(*args, **kwargs):
    answer = _answer(*args, **kwargs)
    return [0 * part for part in answer] if isinstance(answer, (list, tuple)) else 0 * answer
"""


@pytest.fixture(scope="module")
def zeroed(machine, tmp_path_factory):
    """The same of the chapters with every variant's answer replaced by zeros of the same shape, kind and dtype."""
    copies = {}
    for folder in FOLDERS:
        copies[folder.name] = copy = tmp_path_factory.mktemp("zeros") / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.md", "search", "__pycache__"))
        for path in copy.glob("optimized_*.py"):
            path.write_text(path.read_text(encoding="utf-8") + ZEROED, encoding="utf-8")
    return once(lambda pair: verdicts(at_the_first_check_size(*discover(copies[pair.chapter], pair.name))))


@pytest.mark.parametrize(("pair", "version"), each_version(needs_a_run=True))
def test_both_versions_agree_with_the_oracle_at_every_odd_size(pair, version, honest):
    row = honest(pair)[version.label]
    assert (row.verdict, row.ratio) == ("checked", None), row.reason


@pytest.mark.parametrize(("pair", "version"), each_version(needs_a_run=True))
def test_zeros_are_a_wrong_answer(pair, version, zeroed):
    row = zeroed(pair)[version.label]
    assert row.verdict == "invalid"
    element, integers = r"element \d+ of \d+ is -?0, expected", r"\d+ of \d+ values differ"
    assert re.match(rf"wrong answer at size check: (\S+: )?({element}|{integers})", row.reason), row.reason


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
@pytest.mark.parametrize(("pair", "version"), each_version())
def test_without_a_gpu_what_needs_one_is_skipped_and_triton_is_checked_in_its_interpreter(pair, version, honest):
    row = honest(pair)[version.label]
    if pair.baseline.needs_cuda or version.needs_cuda:
        assert (row.verdict, row.reason) == ("skipped", "needs an NVIDIA GPU")
    elif "triton" in version.imports:
        assert "interpreter" in row.reason
