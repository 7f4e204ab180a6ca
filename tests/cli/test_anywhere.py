"""Sizes drawn by a seed: the same for the same name, odd, within the pair's own; and what is behind its library."""

from math import prod

import pytest
from samples import pair_result, record

from common.pairs.pair import chapters, discover
from common.record.result import Row
from tools import random_sizes
from tools.__main__ import main

COURSE = [pair for number in random_sizes.CHAPTERS for pair in discover(chapters()[number])]
PAIRS = [pair for pair in COURSE if random_sizes.has_library(pair)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.chapter} {pair.name}")
def test_sizes_are_odd_the_pairs_own_arguments_and_a_seed_s(pair):
    sizes = random_sizes.draw_sizes(pair, "a name")
    assert sizes == random_sizes.draw_sizes(pair, "a name") != random_sizes.draw_sizes(pair, "another")
    assert len(sizes) == random_sizes.DRAWS and all(name.startswith("anywhere/") for name in sizes)
    known = [random_sizes.arguments_of(pair, pair.sizes[size]) for size in pair.timed_sizes]
    counts = {name for size in sizes.values() for name in size if size[name] not in [each[name] for each in known]}
    for size in sizes.values():
        assert size.keys() == known[0].keys()
        assert counts and all(size[name] % 2 for name in counts)
        assert prod(size[name] for name in counts) <= 2 * max(prod(each[name] for name in counts) for each in known)


@pytest.mark.parametrize(("ratio", "is_behind"), [(0.94, True), (0.96, False)])
def test_the_best_version_counts_against_the_fastest_library(ratio, is_behind):
    def row(variant, least):
        against = {
            name: {"ratio": each, "interval": None} for name, each in (("library", 1.5), ("library/compiled", least))
        }
        return Row(variant, "baseline", "faster", None, 2.0, (1.9, 2.1), against)

    found = random_sizes.slower_sizes(record(pair_result(rows=[row("optimized", ratio), row("optimized/slow", 0.5)])))
    assert found == ["behind: double default, optimized: 0.940x the speed of the library"] * is_behind


def test_the_command_lists_what_it_would_measure(capsys):
    assert main(["random_sizes", "--seed", "a name", "--only", "softmax", "--list"]) == 0
    assert capsys.readouterr().out.count("softmax anywhere/") == 3
