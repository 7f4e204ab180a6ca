"""ch6/collectives.py: the definitions of nccl-tests, the fit, bad input, and runs with gloo."""

import json
import os
import subprocess
import sys

import pytest

from common import program
from common.pairs.pair import ROOT

SCRIPT = ROOT / "ch6/collectives.py"
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]


@pytest.fixture
def collectives(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import collectives

    return collectives


@pytest.mark.parametrize(
    ("name", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("all_to_all", 0.875), ("broadcast", 1.0)],
)
def test_bus_bandwidth_is_that_of_nccl_tests(collectives, name, factor):
    assert collectives.bus_factor(name, 8) == factor


def test_the_fit_finds_the_latency_and_the_bandwidth_of_which_times_were_made(collectives):
    sizes = [1 << power for power in range(10, 30, 2)]
    alpha, beta = collectives.fit(sizes, [25e-6 + size / 300e9 for size in sizes])
    assert (alpha, beta) == (pytest.approx(25e-6), pytest.approx(300e9))
    alpha, beta = collectives.fit(sizes, [size / 300e9 - 1e-10 for size in sizes])
    assert alpha == 0.0 and beta == pytest.approx(300e9, rel=0.05)


def test_sizes_grow_by_4_and_no_two_are_equal(collectives):
    assert collectives.sizes(1000, 70_000, 2) == [1000, 4000, 16000, 64000]
    assert collectives.sizes(1, 256, 3) == [12, 60, 252]  # 1, 4 and 16 bytes are 12 for 3 processes


def test_times_without_a_bandwidth_have_no_fit(collectives, monkeypatch):
    found = {"broadcast": [(1024, 2e-4), (4096, 1e-4)], "send_recv": [(1024, 1e-4), (4096, 2e-4)]}
    shown = [line for line in collectives.lines(found, 2) if "fit:" in line]
    assert shown[0].endswith("none, as more bytes took no more time") and "beta 0.031 GB/s" in shown[1]
    monkeypatch.setattr(collectives.dist, "get_backend", lambda: "gloo")
    kept = collectives.record(found, 2, collectives.torch.device("cpu"))["fits"]
    assert kept["broadcast"] == {"alpha_s": None, "beta_bytes_s": None}
    assert kept["send_recv"]["beta_bytes_s"] == pytest.approx(3072 / 1e-4)


@pytest.fixture
def ends(collectives, monkeypatch, capsys):
    """ends(options): the one line with which it ends before anything is measured."""
    monkeypatch.setattr(collectives.dist, "init_process_group", lambda backend: pytest.fail("a group is made"))

    def of(options):
        monkeypatch.setattr("sys.argv", ["collectives.py", *options.split()])
        status, (out, err) = program.status_of("collectives.py", collectives.run), capsys.readouterr()
        assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith("collectives.py: ")
        return err

    return of


@pytest.mark.parametrize(
    ("options", "message"),
    [("--least 0", "two sizes"), ("--least 1 --most 8", "two sizes"), ("--least x", "invalid int"),
     ("--plot x.xyz", "must end in .png"), ("--json /nowhere/x.json", "cannot be written")],
)  # fmt: skip
def test_bad_input_is_one_line_before_anything_is_measured(ends, monkeypatch, options, message):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert message in ends(options)


@pytest.mark.parametrize("size", [None, "1"])
def test_with_one_process_it_says_how_to_start_it(ends, monkeypatch, size):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size:
        monkeypatch.setenv("WORLD_SIZE", size)
    assert "needs two processes or more: torchrun --nproc-per-node 2 " in ends("")


@pytest.mark.rest
def test_a_run_with_gloo_keeps_times_of_every_collective(tmp_path):
    options = ["--most", "16384", "--json", str(tmp_path / "r.json"), "--plot", str(tmp_path / "r.png")]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [*LAUNCHER, *options], capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    assert run.stdout.startswith("2 processes, gloo, cpu\n") and run.stdout.count("gloo") == 1
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["ranks"], record["fits"].keys()) == (2, record["times"].keys())
    assert {len(times) for times in record["times"].values()} == {3}
    assert min(seconds for times in record["times"].values() for _, seconds in times) > 0
    assert all(name in run.stdout for name in record["times"]) and (tmp_path / "r.png").stat().st_size > 0
