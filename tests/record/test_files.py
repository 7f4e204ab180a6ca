"""What stands at a target: files are replaced, links followed, devices, pipes and standard output written into."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from samples import refused

from common.pairs.pair import ROOT
from common.record.files import check_writable, is_replaceable, write_file, write_text

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no devices, no named pipes")


def test_a_link_stays_and_its_file_is_replaced_or_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder := Path("other")).mkdir()
    Path("link").symlink_to("other/old.txt")
    (outer := Path("outer")).symlink_to(tmp_path / "link")
    for text in ("made", "replaced"):
        check_writable(outer)
        write_text(outer, text)
        assert Path("link").is_symlink() and (folder / "old.txt").read_text() == text
        assert os.listdir(folder) == ["old.txt"]


def test_a_file_keeps_its_mode_and_a_new_one_has_what_the_umask_leaves(tmp_path):
    path = tmp_path / "r"
    before = os.umask(0o027)
    try:
        write_text(path, "first")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o755)
        write_text(path, "second")
    finally:
        os.umask(before)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o755, "second")


def test_a_device_is_written_into_and_stays():
    for path in map(Path, ("/dev/null", "/dev/full")):
        check_writable(path)
        assert not is_replaceable(path)
    write_text(Path("/dev/null"), "text")
    with refused(r"cannot be written \(No space left", "/dev/full"):
        write_text(Path("/dev/full"), "text")
    for path in map(Path, ("/dev/null", "/dev/full")):
        assert stat.S_ISCHR(path.stat().st_mode)


@pytest.mark.parametrize("target", ["/dev/stdout", "out"])
def test_what_a_stream_has_is_not_replaced(target, tmp_path):
    """As the shell sends it: the text stands after what was printed, and nothing of either is lost."""
    (tmp_path / "out").write_text("old\n")
    write = f"print('before'); write_text(Path({target!r}), 'the text\\n'); print('after')"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from common.record.files import *; {write}"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, stdout=(tmp_path / "out").open("a"))
    assert (tmp_path / "out").read_text().splitlines() == ["old", "before", "the text", "after"]


def test_a_figure_that_cannot_be_drawn_leaves_a_pipe_and_a_file_alone(tmp_path):
    def fail(file):
        file.write(b"half")
        raise ValueError("no such colour")

    (path := tmp_path / "p.png").write_text("old")
    with pytest.raises(ValueError, match="colour"):
        write_file(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["p.png"]
