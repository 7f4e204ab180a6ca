"""Every pair of every chapter, found by itself: versions differ in the lesson alone, and both are right."""

import ast
import inspect
import re
import sys
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import pytest
import torch
from samples import reason_of, write_pair
from samples import version as sample

from common.engine.runner import run_pairs
from common.machine.device import default_device, has_gpu
from common.machine.limits import RESOURCES
from common.pairs.contract import is_inherited
from common.pairs.lessons import read_lessons
from common.pairs.pair import ROOT, TUNED, discover, load
from common.pairs.source import UNHASHED
from tools.answers_page import question

FOLDERS = sorted({path.parent for path in ROOT.glob("ch[0-9]*/baseline_*.py")})
PAIRS = [pair for folder in FOLDERS for pair in discover(folder)]
MAY_IMPORT = {"torch", "triton", "cupy", "numpy", *sys.stdlib_module_names}
SAME_IN_ALL = {"CLOCK", "TOLERANCE", "LIBRARY_DIFFERS", "reference", "cost"}

each_variant = pytest.mark.parametrize(
    ("pair", "version"),
    [pytest.param(pair, version, id=version.path.stem) for pair in PAIRS for version in pair.variants],
)
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


def definitions(version):
    """Top-level name -> its definition as text, in the file's order; not imports, nor what a variant may leave out."""
    found = {}
    for node in ast.parse(version.path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found.update(dict.fromkeys(names, node))
    return {name: ast.dump(node) for name, node in found.items() if name not in UNHASHED}


# The diff is the lesson


def test_there_are_pairs():
    assert {"preallocation", "coalescing", "tensor_cores", "softmax", "matmul"} <= {pair.name for pair in PAIRS}


@each_variant
def test_what_is_no_lesson_is_written_the_same_in_both_versions(pair, version):
    """And in the same order; there is a lesson, and it is not all."""
    base = definitions(pair.baseline)
    mine = {**{name: text for name, text in base.items() if is_inherited(name)}, **definitions(version)}
    written = [name for name in definitions(version) if name in base]
    assert written == [name for name in base if name in written]
    differing = {name for name in {*mine, *base} if mine.get(name) != base.get(name)}
    assert differing and differing < {*mine, *base}
    libraries = {name for name in {*mine, *base} if name.startswith("library")}
    of_its_own = {"cost", *(libraries - base.keys())} if "PRECISION" in mine else set()  # whose FLOPs have another key
    wrong = differing & (SAME_IN_ALL | libraries) - of_its_own
    files = f"{version.path.name} and {pair.baseline.path.name}"
    assert not wrong, f"{files} differ in {', '.join(sorted(wrong))}: write this the same in every version"
    for what, least in pair.baseline.constants.get("REQUIRES", {}).items():  # a variant may need more
        assert version.constants["REQUIRES"][what] >= least


@each_variant
def test_what_it_has_from_its_baseline_stands_there_only(pair, version):
    """Unless the version itself calls it."""
    mine, base = definitions(version), definitions(pair.baseline)
    tree = ast.parse(version.path.read_text(encoding="utf-8"))
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert [name for name in mine.keys() - called if is_inherited(name) and mine[name] == base.get(name)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_lessons_are_those_of_its_pairs(folder):
    assert read_lessons(folder).keys() == {pair.name for pair in PAIRS if pair.chapter == folder.name}


def test_another_reference_or_clock_than_the_baselines_is_named(tmp_path):
    extra = 'CLOCK = "wall"\ndef reference(x, w_shift): return 2 * x + w_shift'
    own = "def reference(x, w_shift): return x + x + w_shift"
    write_pair(tmp_path, "double", sample("return w_shift + 2 * x", extra=own), sample(extra=extra))
    (pair,) = discover(tmp_path)
    named = "optimized_double.py and baseline_double.py differ in CLOCK, reference: write this the same"
    with pytest.raises(AssertionError, match=named):
        test_what_is_no_lesson_is_written_the_same_in_both_versions(pair, *pair.variants)


@each_variant
def test_run_takes_the_inputs_in_the_same_order(pair, version):
    """What follows them is what `setup` made."""
    assert version.functions["inputs"] == pair.baseline.functions["inputs"]
    inputs = version.functions.get("setup", version.functions["run"])
    assert inputs == pair.baseline.functions.get("setup", pair.baseline.functions["run"])
    assert version.functions["run"][: len(inputs)] == inputs
    for name in ("reference", "cost", "library"):
        if name in version.functions:
            assert [parameter for parameter in version.functions[name] if parameter != "rows"] == list(inputs)


@each_pair
def test_a_pair_stands_on_its_own(pair):
    for version in pair.versions:
        helpers = {path.stem for path in version.path.parent.iterdir()}
        assert version.imports - helpers <= MAY_IMPORT
        is_long = version.is_gluon or version.label == TUNED  # Gluon writes layouts and barriers out
        most = 200 if is_long else 150 if version.has_kernel else 80
        assert len(version.path.read_text(encoding="utf-8").splitlines()) <= most


@each_pair
def test_a_docstring_has_its_parts_in_order_and_ends_with_a_question(pair):
    for version in pair.versions:
        text = ast.get_docstring(ast.parse(version.path.read_text(encoding="utf-8")))
        found = re.findall(r"^(Problem|Idea|Cost|Predict): ", text, flags=re.MULTILINE)
        assert found == ["Problem", *["Idea"] * (version is not pair.baseline or "Idea" in found), "Cost", "Predict"]
        assert question(version).endswith("?") and question(version).count("?") <= 2, version.path.name


@each_pair
def test_checks_are_small_and_odd(pair):
    numbers = [value for size in pair.check_sizes for value in pair.sizes[size].values() if isinstance(value, int)]
    assert any(value % 2 for value in numbers)
    assert max(numbers) <= 1_000_000


@each_pair
def test_costs_are_amounts_of_known_resources(pair):
    """A misspelt resource would silently leave the pair without a limit."""
    if pair.ranks > 1:
        pytest.skip("its cost needs a group of processes: tests/ranks")
    of_baseline = load(pair.baseline.path).cost
    for version in [version for version in pair.versions if has_gpu() or not version.needs_cuda]:
        module = load(version.path)
        inputs = module.inputs(**pair.sizes[pair.check_sizes[0]], device=default_device())
        cost = getattr(module, "cost", of_baseline)(**inputs)
        assert cost and set(cost) <= RESOURCES and min(cost.values()) > 0


# Right where nobody looked (that zeros would be wrong, and that all cost the same, the harness sees for itself)


PARTS = ("one size", "all sizes and hard values")  # the first for a pair of each chapter, the second for all
SAMPLE = {(pair.chapter, pair.name) for folder in FOLDERS for pair in discover(folder)[-1:]}


@cache
def verified(number: int, part: str):
    """Variant -> row, of a pair that was checked on this machine at these of its sizes."""
    pair = PAIRS[number]
    is_whole = part != PARTS[0]
    others = set() if is_whole else set(pair.check_sizes[1:])
    if not has_gpu():  # then no version runs whose tiles these are for
        others |= {size for size in pair.check_sizes if size.startswith("check/gluon")}
    sizes = {size: arguments for size, arguments in pair.sizes.items() if size not in others}
    record = run_pairs([replace(pair, sizes=sizes)], check_only=True, stressed=is_whole)
    if record.environment["interrupted"]:  # what is missing then is no fault of the pair
        raise KeyboardInterrupt
    return {row.variant: row for result in record.pairs for row in result.rows if row.versus == "baseline"}


@pytest.mark.parametrize(
    ("number", "version", "part"),
    [
        pytest.param(
            number, version, part, id=f"{version.path.stem}-{part}",
            marks=[pytest.mark.xdist_group(f"{pair.chapter} {pair.name}"), *[pytest.mark.rest] * (part != PARTS[0])],
        )
        for number, pair in enumerate(PAIRS) for version in pair.variants for part in PARTS
        if part != PARTS[0] or (pair.chapter, pair.name) in SAMPLE
    ],
)  # fmt: skip
def test_both_versions_agree_with_the_oracle_at_odd_sizes(number, version, part):
    """A group for each pair: of processes that share the tests one checks it, with all its variants."""
    row, versions = verified(number, part)[version.label], (PAIRS[number].baseline, version)
    gpus = version.constants.get("REQUIRES", {}).get("gpus", 1) * any(each.needs_cuda for each in versions)
    if gpus > torch.cuda.device_count():
        reasons = r"needs (an NVIDIA GPU|\d+ GPUs)|written in Gluon"
        assert row.verdict == "skipped" and re.match(reasons, reason_of(row)), row
    else:
        assert (row.verdict, row.ratio) == ("verified", None), reason_of(row)
        assert has_gpu() or "triton" not in version.imports or "interpreter" in reason_of(row)


# Helpers that several chapters have


@pytest.mark.parametrize("name", ["compiled.py", "launches.py"])
def test_chapters_share_a_text(name):
    """A chapter imports from itself alone, so that the text stands in each."""
    files = list(ROOT.glob(f"ch[0-9]*/{name}"))
    assert len(files) > 1
    assert len({path.read_text(encoding="utf-8") for path in files}) == 1


class Kernel:
    """A kernel f(x, n, SIZE, FAST=True) that is compiled when it is launched, as Triton's are."""

    params = (
        SimpleNamespace(name="x", default=inspect.Parameter.empty),
        SimpleNamespace(name="n", default=inspect.Parameter.empty),
        SimpleNamespace(name="SIZE", default=inspect.Parameter.empty),
        SimpleNamespace(name="FAST", default=True),
    )

    def __init__(self):
        self.compiled, self.kept = [], []

    def __getitem__(self, grid):
        def launch(*arguments, **options):
            self.compiled.append((grid, arguments, options))
            return {(7, 1, 1): lambda *arguments: self.kept.append(arguments)}

        return launch


def test_a_kernel_is_compiled_once_for_each_kind_of_arguments():
    module, kernel, x = load(ROOT / "ch4/launches.py"), Kernel(), torch.zeros(9)
    module.CompiledKernel = dict  # as what `Kernel` gives
    for n, tensor, size in [(3, x, 8), (3, x[4:], 8), (4, x, 8), (3, x[1:], 8), (3, x.int(), 8), (3, x, 16)]:
        module.launch(kernel, (7,), tensor, n, SIZE=size, num_warps=1)
    assert [(len(arguments[0]), arguments[1], options["SIZE"]) for _, arguments, options in kernel.compiled] == [
        (9, 3, 8), (9, 4, 8), (8, 3, 8), (9, 3, 8), (9, 3, 16),
    ]  # fmt: skip
    ((tensor, *rest),) = kernel.kept  # of x[4:], which is aligned as x is
    assert (len(tensor), rest) == (5, [3, 8, True])


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 8)  # PyTorch's own, also after the test
    return load(ROOT / "ch3/compiled.py").compiled


def on_gpu(x):
    """What `compiled` asks of a tensor, as if it were a GPU's."""
    return SimpleNamespace(shape=x.shape, stride=x.stride, dtype=x.dtype, numel=x.numel, is_cuda=True)


def test_a_library_is_compiled_once_for_each_shape_memory_order_type_and_setting(monkeypatch, compiled):
    calls = []
    monkeypatch.setattr(torch, "compile", lambda function, **given: calls.append(given) or (lambda: function))
    rows, large = torch.ones(4, 2), torch.ones(1).expand(1 << 20)
    assert compiled(abs, on_gpu(rows)) is compiled(abs, on_gpu(torch.zeros(4, 2)))
    compiled(abs, rows)
    for other in (rows[:2], torch.ones(2, 4).T, rows.double()):
        compiled(abs, on_gpu(other))
    compiled(abs, on_gpu(rows), "a fixed value")
    compiled(abs, on_gpu(rows), options=(("a", 1),))
    for like in (on_gpu(rows), on_gpu(large), large):
        compiled(abs, like, mode="max-autotune")
    assert all(given.pop("fullgraph") and not given.pop("dynamic") for given in calls)
    asked = [(given["mode"], given["options"], given["disable"]) for given in calls]
    assert asked == [
        (None, None, False), (None, None, True), *[(None, None, False)] * 4, (None, {"a": 1}, False),
        ("max-autotune", None, True), ("max-autotune", None, False), ("max-autotune", None, True),
    ]  # fmt: skip


def test_a_library_is_compiled_for_more_shapes_than_pytorchs_own_limit(monkeypatch, compiled):
    """And keeps the code of each: no earlier one is compiled again."""
    graphs = []
    backend = lambda graph, inputs: graphs.append(graph) or graph.forward  # noqa: E731
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    double = lambda x: 2 * x  # noqa: E731
    for _ in range(2):
        for n in range(2, 22):
            x = torch.ones(n)
            assert compiled(double, on_gpu(x))(x).sum() == 2 * n
    assert len(graphs) == 20
