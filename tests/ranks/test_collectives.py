"""ch6/collectives.py: the definitions of nccl-tests, the fit, and a run with gloo."""

import json
import subprocess
import sys

import pytest

from common.pairs.pair import ROOT

SCRIPT = ROOT / "ch6/collectives.py"


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


@pytest.mark.rest
def test_a_run_with_gloo_keeps_times_of_every_collective(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    options = ["--most", "16384", "--json", str(tmp_path / "r.json"), "--plot", str(tmp_path / "r.png")]
    run = subprocess.run([*launcher, *options], capture_output=True, text=True, timeout=120, check=True)
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["ranks"], record["fits"].keys()) == (2, record["times"].keys())
    assert {len(times) for times in record["times"].values()} == {3}
    assert min(seconds for times in record["times"].values() for _, seconds in times) > 0
    assert all(name in run.stdout for name in record["times"]) and (tmp_path / "r.png").stat().st_size > 0


def test_without_torchrun_it_says_how_to_start_it():
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and run.stderr.startswith("start it with torchrun: torchrun --nproc-per-node 2 ")
