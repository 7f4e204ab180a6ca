"""benchmark.py --json, --markdown and --plot onto what is no regular file, and onto links."""

import json
import os
import stat

import pytest
from samples import pair_result, record, version, write_pair

import benchmark
from common.engine import runner
from common.record.record_file import load_record

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no devices, no named pipes")
THREE = [record(*(pair_result(f"pair{number}") for number in range(1, count + 1))) for count in (1, 2, 3)]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """benchmark.py on three pairs that take no time; `on_record` is called after each."""

    def run_pairs(*arguments, on_record, **options):
        for part in THREE:
            on_record(part)
        return THREE[-1]

    monkeypatch.setattr(runner, "run_pairs", run_pairs)
    write_pair(tmp_path / "pairs", "double", version())
    return lambda *words: benchmark.main(["--path", str(tmp_path / "pairs"), *map(str, words)])


def test_a_pipe_gets_one_whole_record(run, tmp_path, capsys):
    os.mkfifo(pipe := tmp_path / "pipe")
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        assert run("--json", pipe) == 0
        assert [pair["name"] for pair in json.load(reader)["results"]] == ["pair1", "pair2", "pair3"]
    assert stat.S_ISFIFO(pipe.stat().st_mode) and capsys.readouterr().err == ""


def test_devices_take_all_and_stay(run, capsys):
    assert run("--json", "/dev/null", "--markdown", "/dev/null") == 0
    assert run("--json", "/dev/full") == 1
    assert capsys.readouterr().err == "benchmark.py: /dev/full: cannot be written (No space left on device)\n"
    assert all(stat.S_ISCHR(os.stat(path).st_mode) for path in ("/dev/null", "/dev/full"))


def test_links_stay_and_their_files_are_written(run, tmp_path):
    targets = {"--json": "r.json", "--markdown": "r.md", "--plot": "p.png"}
    (tmp_path / "far").mkdir()
    for name in targets.values():
        (tmp_path / name).symlink_to(f"far/{name}")
    assert run(*(word for option, name in targets.items() for word in (option, tmp_path / name))) == 0
    assert all((tmp_path / name).is_symlink() for name in targets.values())
    assert len(load_record(tmp_path / "far/r.json").pairs) == 3
    assert (tmp_path / "far/p.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "far/r.md").stat().st_size
