"""What stands at a target: files are replaced, links followed, devices, pipes and standard output written into."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from samples import refused

from common.pairs.pair import ROOT
from common.record.files import RecordError, check_writable, is_replaceable, write_file, write_text

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no devices, no named pipes")


@pytest.fixture(params=["relative", "absolute", "chain"])
def link(request, tmp_path, monkeypatch):
    """A link to old.txt in another folder, and a link to such a link."""
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    path = Path("link")
    path.symlink_to(tmp_path / "other/old.txt" if request.param == "absolute" else Path("other/old.txt"))
    if request.param == "chain":
        (path := Path("outer")).symlink_to("link")
    return path


@pytest.mark.parametrize("stands", [True, False])
def test_a_link_stays_and_its_file_is_replaced_or_made(stands, link):
    if stands:
        Path("other/old.txt").write_text("old")
        before = Path("other/old.txt").stat().st_ino
    check_writable(link)
    write_text(link, "new")
    assert link.is_symlink() and Path("other/old.txt").read_text() == "new"
    assert not stands or Path("other/old.txt").stat().st_ino != before  # atomically
    assert os.listdir("other") == ["old.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_mode_and_a_new_one_has_what_the_umask_leaves(mode, tmp_path):
    path = tmp_path / "r"
    before = os.umask(0o027)
    try:
        write_text(path, "first")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(mode)
        write_text(path, "second")
    finally:
        os.umask(before)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (mode, "second")


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_not_replaced(tmp_path):
    (path := tmp_path / "r").write_text("old")
    path.chmod(0o400)
    for write in (check_writable, lambda path: write_text(path, "new")):
        with refused(r"cannot be written \(it is read-only\)", path):
            write(path)
    assert path.read_text() == "old"


def test_a_device_is_written_into_and_stays():
    for path in map(Path, ("/dev/null", "/dev/full")):
        check_writable(path)
        assert not is_replaceable(path)
    write_text(Path("/dev/null"), "text")
    with refused(r"cannot be written \(No space left", "/dev/full"):
        write_text(Path("/dev/full"), "text")
    for path in map(Path, ("/dev/null", "/dev/full")):
        assert stat.S_ISCHR(path.stat().st_mode)


def test_a_pipe_carries_all_to_its_reader_which_sees_no_end_before(tmp_path):
    os.mkfifo(path := tmp_path / "pipe")
    parts = []
    reader = threading.Thread(target=lambda: parts.append(path.read_text()))
    reader.start()
    check_writable(path)
    text = "x" * 1_000_000  # more than a pipe holds
    while not parts:
        try:
            write_text(path, text)
            break
        except RecordError:  # the reader has not opened it yet
            continue
    reader.join()
    assert parts == [text] and stat.S_ISFIFO(path.stat().st_mode)


def test_a_pipe_without_a_reader_is_one_line_at_once(tmp_path):
    os.mkfifo(path := tmp_path / "pipe")
    with refused(r"cannot be written \(nobody reads it: start its reader first\)", path):
        write_text(path, "text")


def test_a_figure_that_cannot_be_drawn_leaves_a_pipe_and_a_file_alone(tmp_path):
    def fail(file):
        file.write(b"half")
        raise ValueError("no such colour")

    (path := tmp_path / "p.png").write_text("old")
    with pytest.raises(ValueError, match="colour"):
        write_file(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["p.png"]


WRITER = """
import sys; sys.path.insert(0, {root!r})
from pathlib import Path
from common.record.files import check_writable, write_text
print("before")
check_writable(Path({target!r}))
write_text(Path({target!r}), "the text, longer than what follows\\n")
print("after")
"""
EXPECTED = ["before", "the text, longer than what follows", "after"]


@pytest.mark.parametrize(
    ("target", "redirected", "lines"),
    [
        ("/dev/stdout", ">> out", ["old", *EXPECTED]), ("out", ">> out", ["old", *EXPECTED]),
        ("/dev/stderr", "2> out", EXPECTED[1:2]), ("/dev/fd/7", "7>&1 | cat > out", EXPECTED),
    ],
)  # fmt: skip
def test_what_a_stream_has_is_not_replaced(target, redirected, lines, tmp_path):
    """As the shell sends it: the text stands after what was printed, and nothing of either is lost."""
    (tmp_path / "out").write_text("old\n")
    script = tmp_path / "writer.py"
    script.write_text(WRITER.format(root=str(ROOT), target=target))
    command = f"'{sys.executable}' {script.name} {redirected}"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out").read_text().splitlines() == lines
    assert sorted(os.listdir(tmp_path)) == ["out", "writer.py"]
