"""Wrong versions of every lesson are rejected: ten are judged again, of all the committed results are looked at."""

from collections import Counter

import pytest

from common.machine.device import default_device, has_gpu
from common.pairs.pair import ROOT, chapters, discover
from mutants import REJECTED, hash_of, judge, mutants, results

MUTANTS = {f"{of} {name}: {each.what}": (of, name, each) for (of, name), wrong in mutants().items() for each in wrong}
TEN = [  # for which the interpreter needs least
    "ch1 batch_size: the last samples, no whole batch, are not computed", "ch1 coalescing: the last element is masked",
    "ch1 preallocation: x + 3 is rounded to float16", "ch2 l2_reuse: chunks that change x",
    "ch2 l2_reuse: eight chunks of whole size, without what is left", "ch2 transpose: x is taken for square",
    "ch3 add: y is read as if it had no gaps", "ch3 fused_elementwise: silu overflows",
    "ch3 softmax: no maximum is subtracted", "ch3 layer_norm_backward: rows % programs are dropped",
]  # fmt: skip


def test_every_pair_has_two_that_are_rejected_and_no_two_are_called_alike():
    of_pair = Counter((of, name) for of, name, mutant in MUTANTS.values() if not mutant.passes)
    assert len(MUTANTS) == sum(map(len, mutants().values()))
    pairs = [(path.name, pair.name) for path in chapters().values() for pair in discover(path) if pair.ranks == 1]
    assert [pair for pair in pairs if of_pair[pair] < 2] == []


def needs_a_gpu(of, name, mutant):
    (pair,) = discover(ROOT / of, name)
    versions = {version.label: version for version in pair.versions}
    return versions["baseline"].needs_cuda or versions[f"optimized/{mutant.of}".rstrip("/")].needs_cuda


@pytest.mark.parametrize("key", MUTANTS)
def test_the_committed_result_is_of_it_as_it_is_and_rejects_it(key):
    known = results().get(key)
    if known is None and needs_a_gpu(*MUTANTS[key]):
        pytest.xfail("not judged yet: make mutants on a GPU")
    assert known, "make mutants"
    assert known["hash"] == hash_of(*MUTANTS[key]), "it has changed since: make mutants"
    assert (known["verdict"] in REJECTED) != bool(MUTANTS[key][2].passes)


@pytest.mark.parametrize("key", TEN)
def test_it_is_rejected(key):
    of, name, mutant = MUTANTS[key]
    (said,) = judge(of, name, [mutant], "cpu").values()
    assert said["verdict"] in REJECTED


@pytest.mark.gpu
@pytest.mark.parametrize(("of", "name"), mutants())
def test_all_of_a_pair_are_rejected_on_a_gpu(of, name):
    assert has_gpu()
    wrong = [mutant for mutant in mutants()[of, name] if not (mutant.passes or mutant.on_a_gpu)]
    found = judge(of, name, wrong, default_device())
    if skipped := {said["reason"] for said in found.values() if said["verdict"] == "skipped"}:
        pytest.skip(", ".join(skipped))
    assert {what: said for what, said in found.items() if said["verdict"] not in REJECTED} == {}
