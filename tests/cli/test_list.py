"""Quick answers: --list, help, and what lets them be quick, the cache of versions."""

import shutil
import subprocess
from unittest.mock import Mock

import pytest
from samples import version, write_pair

from common.cli.arguments import listing
from common.pairs import version_cache
from common.pairs.pair import ROOT, chapters, discover

NEEDY = 'import triton\nDEVICE = "cuda"\nREQUIRES = {"gpus": 2, "capability": (9, 0)}'
SENTENCE = "Double a vector and shift it: 8 bytes moved per element."


# The list


def test_a_ladder_has_a_line_a_version_with_its_sentence_and_its_needs(tmp_path):
    later = version(extra='VERSUS = "triton"')
    write_pair(tmp_path, "double", {"best": later, "triton": version(extra=NEEDY)})
    pairs = discover(tmp_path)
    assert listing(pairs).splitlines() == [
        "double",
        f"  baseline  {SENTENCE}",
        f"  triton    {SENTENCE} [2 GPUs, capability 9.0, triton]",
        f"  best      {SENTENCE}",
    ]
    assert listing(pairs, is_verbose=True).splitlines()[4:] == ["  sizes: check, default"]
    assert listing(pairs, True, 50).splitlines()[2:7] == [
        "            moved per element.",
        "  triton    Double a vector and shift it: 8 bytes",
        "            moved per element. [2 GPUs, capability",
        "            9.0, triton]",
        "  best      Double a vector and shift it: 8 bytes",
    ]


# The cache of versions


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of the course whose files count as old: `double` with a helper, and `triple`."""
    folder = tmp_path / "ch1"
    write_pair(folder, "double", version(extra="import helper"))
    write_pair(folder, "triple", version())
    (folder / "helper.py").write_text("import torch\n")
    monkeypatch.setattr("common.pairs.pair.chapters", lambda: {1: folder})
    monkeypatch.setattr(version_cache, "TICK_NS", -(10**12))
    return folder


@pytest.fixture
def parsed(monkeypatch):
    """parsed(folder): the names of the files that `discover` had to read; what it returns is always as if anew."""
    reader = Mock(wraps=version_cache.read_version)
    monkeypatch.setattr(version_cache, "read_version", reader)

    def of(folder):
        reader.reset_mock()
        pairs = discover(folder)
        names = sorted(call.args[0].stem for call in reader.call_args_list)
        shutil.rmtree(folder.parent / "anew", ignore_errors=True)
        shutil.copytree(folder, folder.parent / "anew" / folder.name)
        anew = discover(folder.parent / "anew" / folder.name)
        for pair, other in zip(pairs, anew, strict=True):
            assert pair.sizes == other.sizes
            for one, another in zip(pair.versions, other.versions, strict=True):
                assert {**vars(one), "path": one.path.name} == {**vars(another), "path": another.path.name}
        return names

    return of


ALL = ["baseline_double", "baseline_triple", "optimized_double", "optimized_triple"]
WITH_HELPER = ["optimized_double"]
BOTH = ["baseline_double", *WITH_HELPER]


def test_what_has_not_changed_is_not_read_again_unless_the_cache_is_damaged(chapter, parsed):
    assert [parsed(chapter), parsed(chapter)] == [ALL, []]
    cache = chapter.parent / ".cache/ch1.versions"
    whole = cache.read_bytes()
    for damaged in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        cache.write_bytes(damaged)
        assert [parsed(chapter), parsed(chapter)] == [ALL, []]


def test_a_cache_that_cannot_be_written_is_no_error(chapter, parsed):
    (chapter.parent / ".cache").write_text("no folder")
    assert [parsed(chapter), parsed(chapter)] == [ALL, ALL]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("optimized_double.py", version(extra="import numpy").replace("SIZES =", "_SIZES ="), WITH_HELPER),
        ("baseline_double.py", version(sizes={"check": {"n": 3}, "default": {"n": 4}}), BOTH),
        ("helper.py", "import numpy\n", WITH_HELPER),
        ("helper.py", None, WITH_HELPER),
        ("torch.py", "", ALL),  # a new file, for which all asked already
        ("another.py", "", []),
    ],
)
def test_what_has_changed_is_read_anew(file, text, expected, chapter, parsed):
    parsed(chapter)
    (chapter / "helper").mkdir()  # takes the place of a helper that is gone
    if text is None:
        (chapter / file).unlink()
    else:
        (chapter / file).write_text(text)
    assert parsed(chapter) == expected
    assert parsed(chapter) == []


# Help


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_measures_a_chapter_although_its_folder_exists():
    names = [f"ch{number}" for number in chapters()]
    command = ["make", "--dry-run", "--no-print-directory", "--old-file=.venv/.ready", "PY=python", *names]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == [f"python benchmark.py --chapter {number}" for number in chapters()]
