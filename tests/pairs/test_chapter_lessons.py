"""A folder's lessons.toml: sentences of its pairs, and sizes that stand there for their baselines."""

import pytest
from samples import SIZES, one_pair, refused, version, write_pair

from common.pairs.lessons import FILE
from common.pairs.pair import discover

LESSON = """
[double]
summary = \"\"\"A vector is doubled
in two ways.\"\"\"
"runs on" = "any"

[double.sizes]
"small/a" = { n = 8 }
"large/a" = "SIZES"
"large/b" = {}

[absent]
summary = "Another pair, which is not in this folder."
"""
BASELINE = version(sizes={**SIZES, "large/a": {"n": 16}, "cpu": {"n": 4}})


def pair_of(folder, text=LESSON, baseline=BASELINE):
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(text)
    return one_pair(folder, version(), baseline)


def test_sizes_are_the_baselines_and_then_those_of_its_lesson_in_their_order(tmp_path):
    pair, sweeps = pair_of(tmp_path), {"small/a": {"n": 8}, "large/a": {"n": 16}, "large/b": {}}
    assert list(pair.sizes.items()) == [*SIZES.items(), ("cpu", {"n": 4}), *sweeps.items()]
    assert pair.variants[0].constants["SIZES"] == pair.baseline.constants["SIZES"] == pair.sizes
    assert pair.summary == "A vector is doubled in two ways."


def test_a_folder_without_lessons_has_all_sizes_in_its_baselines(tmp_path):
    pair = one_pair(tmp_path, version(), BASELINE)
    assert (list(pair.sizes), pair.summary) == ([*SIZES, "large/a", "cpu"], "")


def test_a_change_of_the_lessons_is_seen_in_a_chapter_whose_versions_are_remembered(tmp_path, monkeypatch):
    folder = tmp_path / "ch1"
    monkeypatch.setattr("common.pairs.pair.chapters", lambda: {1: folder})
    monkeypatch.setattr("common.pairs.version_cache.TICK_NS", -(10**12))
    pair_of(folder)
    assert discover(folder)[0].sizes["small/a"] == {"n": 8}
    write_pair(folder, "double", version(), BASELINE)
    (folder / FILE).write_text(LESSON.replace("n = 8", "n = 9"))
    assert discover(folder)[0].sizes["small/a"] == {"n": 9}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[double]", "[double", "Expected"),
        ("[double]", "another = 1\n[double]", "another must be a table"),
        ("summary = \"Another", "text = \"Another", "absent has no summary"),
        ('"runs on" = "any"', '"runs on" = 1', "double has runs on: only `sizes` may be no text"),
        ('"large/a" = "SIZES"', '"large/a" = { n = 16 }', r"double.sizes\['large/a'\] is a size of the baseline, too"),
        ('"large/b" = {}', '"large/b" = "SIZES"', r"double.sizes\['large/b'\] is no size of the baseline"),
        ('"large/b" = {}', '"large/b" = 1', r"double: SIZES\['large/b'\] must be a dict"),
        ('"large/b" = {}', '"large/b" = { m = 1 }', r"double: SIZES\['large/b'\] names m"),
        ('"large/b" = {}', '"count/b" = {}', "double: SIZES has parts of"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_this_file(old, new, said, tmp_path):
    assert old in LESSON
    with refused(said, tmp_path / FILE):
        pair_of(tmp_path, LESSON.replace(old, new))
