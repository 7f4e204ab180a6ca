"""Pairs that misbehave cost themselves alone, each for its own reason; and what a run and its record are made of."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from misbehaving import DEATHS, HARMLESS, IN_BOTH_HALVES, LIARS, ORPHANS, SKIPPED
from samples import HONEST, half, one_pair, write_pair

from common import process, runner, stats
from common.pair import ROOT, discover
from common.result import BELIEVED, load_record, save_record
from common.runner import has_failed, sizes_of

run_pairs = partial(runner.run_pairs, device="cpu")


@pytest.fixture(scope="module")
def machine():
    """Describe this machine once; its limits are not what is tested here."""
    surveyed = runner.survey_apart("cpu", with_limits=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: surveyed)
        yield surveyed[0]


@pytest.fixture(scope="module")
def liars(machine, tmp_path_factory):
    """name -> {variant: row} of every case, measured in one run."""
    folder = tmp_path_factory.mktemp("liars")
    for name, case in LIARS.items():
        write_pair(folder, name, *case.texts())
    record = run_pairs(discover(folder), fast=True)
    assert [pair.name for pair in record.pairs] == sorted(LIARS)
    return {pair.name: {row.variant.removeprefix("optimized/"): row for row in pair.rows} for pair in record.pairs}


@pytest.mark.parametrize("name", LIARS)
def test_a_liar_is_out_for_its_own_reason_and_shows_no_ratio(name, liars):
    row = liars[name]["liar"]
    assert row.verdict == LIARS[name].verdict, row
    assert re.search(LIARS[name].reason, row.reason), row.reason
    assert (row.ratio, row.interval, row.vs_library) == (None, None, {})
    assert "\n" not in row.reason


@pytest.mark.parametrize("name", LIARS)
def test_its_honest_twin_is_measured_all_the_same(name, liars):
    row = liars[name]["twin"]
    assert row.verdict in BELIEVED, row.reason
    assert row.ratio > 0
    assert row.interval is not None, row.reason


# Pairs that take their process with them

DEADLINE_S = 6.0  # instead of two minutes; an honest pair says something every few tenths of a second


def is_alive(pid):
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.fixture(scope="module")
def wrecks(machine, tmp_path_factory):
    """(record, folder, processes left behind) of one run over all of them."""
    folder = tmp_path_factory.mktemp("wrecks")
    wrong = {name: text for name, (text, _) in {**DEATHS, **SKIPPED}.items()}
    for name, text in {**wrong, **HARMLESS}.items():
        write_pair(folder, name, text, text if name in IN_BOTH_HALVES else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "call", partial(process.call, deadline_s=DEADLINE_S))
        record = run_pairs(discover(folder), fast=True)
    left = [pid for file in folder.glob("*.pid") for pid in map(int, file.read_text().split()) if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return record, folder, left


def row_of(record, name):
    (pair,) = [pair for pair in record.pairs if pair.name == name]
    (row,) = pair.rows
    return row


@pytest.mark.parametrize("name", DEATHS)
def test_a_pair_that_dies_says_how(name, wrecks):
    row = row_of(wrecks[0], name)
    assert (row.verdict, row.ratio, row.interval) == ("died", None, None)
    assert re.search(DEATHS[name][1], row.reason), row.reason
    assert row.reason.isprintable()


@pytest.mark.parametrize("name", SKIPPED)
def test_what_cannot_run_here_is_skipped_with_the_reason(name, wrecks):
    row = row_of(wrecks[0], name)
    assert (row.verdict, row.ratio) == ("skipped", None)
    assert re.search(SKIPPED[name][1], row.reason), row.reason


@pytest.mark.parametrize("name", HARMLESS)
def test_the_pairs_around_them_are_measured(name, wrecks):
    row = row_of(wrecks[0], name)
    assert row.verdict in BELIEVED, row.reason
    assert row.ratio > 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to look for processes")
def test_nobody_is_left_behind(wrecks):
    _, folder, left = wrecks
    assert {file.stem for file in folder.glob("*.pid")} == {
        f"optimized_{name}" for name in ORPHANS
    }  # each did start one
    assert left == []


def test_a_wrecked_run_is_a_failed_run_and_its_record_can_be_kept(wrecks, tmp_path):
    assert has_failed(wrecks[0])
    save_record(wrecks[0], tmp_path / "r.json")
    assert [pair.name for pair in load_record(tmp_path / "r.json").pairs] == [pair.name for pair in wrecks[0].pairs]


# What a run is made of


def test_a_run_of_checks_times_nothing(machine, tmp_path):
    record = run_pairs([one_pair(tmp_path)], check_only=True)
    assert [(row.verdict, row.ratio) for row in record.pairs[0].rows] == [("checked", None)]
    assert record.pairs[0].arms == {}


SLEEPS = {name: f"import time\ntime.sleep({ms}e-3)\n{HONEST}" for name, ms in {"slow": 6, "base": 3, "fast": 1}.items()}
CHEATING_CLOCK = (
    "import time, torch\ntime.perf_counter = time.monotonic = lambda: 0.0\ntorch.cuda.synchronize = lambda *a: None"
)
LIBRARIES = """
def library(x, w_shift):
    return torch.add(w_shift, x, alpha=2)
def library_wrong(x, w_shift):
    return 2 * x
def library_dead(x, w_shift):
    raise RuntimeError("no kernel image")
def cost(x, w_shift):
    return {"dram_bytes": 2 * x.nbytes}
"""


@pytest.fixture(scope="module")
def measured(machine, tmp_path_factory):
    """One pair with known sleeps: its record, as it comes out of its file, and all that was reported meanwhile."""
    folder, seen = tmp_path_factory.mktemp("measured"), []
    variants = {
        "faster": half(SLEEPS["fast"], extra='PRECISION = "tf32"'),
        "slower": half(SLEEPS["slow"], extra='VERSUS = "faster"'),
        "slower_with_a_clock_of_its_own": half(SLEEPS["slow"], extra=CHEATING_CLOCK),
    }
    write_pair(folder, "naps", variants, half(SLEEPS["base"], extra=LIBRARIES))
    limits = {"dram_bytes": {"measured": 2 * 4 * 4096 / 0.5e-3, "datasheet": None, "how": "", "source": ""}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: (machine, limits))
        found = run_pairs(
            discover(folder), fast=True, on_progress=lambda *say: seen.append(say[2]), on_record=seen.append
        )
    save_record(found, folder / "r.json")
    return load_record(folder / "r.json"), seen


def test_planted_ratios_are_found_whatever_the_pair_does_to_the_clock(measured):
    rows = {(row.variant.removeprefix("optimized/"), row.versus): row for row in measured[0].pairs[0].rows}
    assert {key: row.verdict for key, row in rows.items()} == {
        ("faster", "baseline"): "faster",
        ("slower", "baseline"): "slower",
        ("slower", "optimized/faster"): "slower",
        ("slower_with_a_clock_of_its_own", "baseline"): "slower",
    }
    assert 1.5 < rows["faster", "baseline"].ratio < 3.1  # 3 ms over 1 ms, and what a nap is too long
    assert 0.45 < rows["slower", "baseline"].ratio < 0.8
    assert 0.45 < rows["slower_with_a_clock_of_its_own", "baseline"].ratio < 0.8
    assert rows["slower", "optimized/faster"].ratio < rows["slower", "baseline"].ratio
    assert {row.precision for key, row in rows.items() if key[0] == "faster"} == {"tf32"}


def test_libraries_are_arms_and_a_wrong_one_is_a_note(measured):
    for row in measured[0].pairs[0].rows:
        assert list(row.vs_library) == ["library"]
        assert row.vs_library["library"]["ratio"] < 1  # it takes no nap
        assert any(note.startswith("library/wrong: wrong answer") for note in row.notes)
        assert any(note.startswith("library/dead: RuntimeError: no kernel image") for note in row.notes)


def test_every_verdict_can_be_computed_again_from_the_samples(measured):
    (pair,) = measured[0].pairs
    seconds = {label: arm.seconds for label, arm in pair.arms.items()}
    assert stats.noise_floor(seconds["baseline"], seconds["repeat"]) == pytest.approx(pair.noise_floor)
    for row in pair.rows:
        again = stats.estimate(seconds[row.versus], seconds[row.variant])
        assert (again.ratio, (again.low, again.high)) == (pytest.approx(row.ratio), pytest.approx(row.interval))
        assert stats.verdict(again, pair.noise_floor) == (row.verdict, row.reason)
        library = stats.estimate(seconds["library"], seconds[row.variant])
        assert library.ratio == pytest.approx(row.vs_library["library"]["ratio"])
    for arm in pair.arms.values():
        assert stats.overall_median(arm.seconds) == pytest.approx(arm.median_s)


def test_every_round_runs_every_arm_once_in_balanced_order(measured):
    (pair,) = measured[0].pairs
    assert len(pair.orders) >= 6
    for block in pair.orders:
        assert all(sorted(order) == sorted(pair.arms) for order in block)
        assert all(second == [*first[1:], first[0]] for first, second in pairwise(block))
    assert len({tuple(block[0]) for block in pair.orders}) > 1  # and it is drawn anew
    for arm in pair.arms.values():
        assert [len(block) for block in arm.seconds] == [len(block) for block in pair.orders]


def test_each_time_stands_beside_its_limit(measured):
    (pair,) = measured[0].pairs
    assert (pair.limit_s, pair.limit_by) == (pytest.approx(0.5e-3), "dram_bytes")
    assert pair.cost == {"dram_bytes": 2 * 4 * 4096}
    for arm in pair.arms.values():
        assert arm.of_limit == pytest.approx(0.5e-3 / arm.median_s)
        assert arm.of_datasheet is None


def test_progress_goes_from_start_over_checks_and_pilot_to_blocks(measured):
    *stages, record = measured[1]
    assert list(dict.fromkeys(stage.split()[0] for stage in stages)) == ["start", "check", "pilot", "block"]
    assert [pair.name for pair in record.pairs] == ["naps"]


def test_inputs_are_drawn_anew_for_every_block(measured):
    (pair,) = measured[0].pairs
    assert len(pair.seeds) > len(pair.orders)
    assert len(set(pair.seeds)) == len(pair.seeds)


def test_ctrl_c_keeps_the_pairs_that_were_done(machine, tmp_path):
    for name in ("first", "second", "third"):
        write_pair(tmp_path, name, half())
    kept = []

    def interrupt(pair, size, stage, fraction):
        if pair.name == "second" and stage.startswith("block"):
            raise KeyboardInterrupt

    record = run_pairs(discover(tmp_path), fast=True, on_progress=interrupt, on_record=kept.append)
    assert [pair.name for pair in record.pairs] == ["first"]
    assert record.environment["interrupted"]
    assert [[pair.name for pair in one.pairs] for one in kept] == [["first"]]


def test_a_baseline_that_raises_leaves_nothing_to_compare_with(machine, tmp_path):
    raising = half('raise ValueError("no such luck")')
    row = row_of(run_pairs([one_pair(tmp_path, baseline=raising)], fast=True), "double")
    assert (row.verdict, row.ratio) == ("died", None)
    assert re.search(r"ValueError: no such luck \(baseline_double.py:\d+\)$", row.reason)


def test_an_oracle_that_disagrees_with_both_halves_condemns_the_baseline(machine, tmp_path):
    wrong = half("return 3 * x + w_shift", extra="def reference(x, w_shift): return 2 * x + w_shift")
    row = row_of(run_pairs([one_pair(tmp_path, wrong, wrong)], check_only=True), "double")
    assert row.verdict == "invalid"
    assert row.reason.startswith("the baseline: wrong answer at size check")


@pytest.mark.parametrize(("times", "verdict"), [("2", "checked"), ("3", "invalid")])
def test_an_oracle_of_leading_rows_judges_those_and_gets_float64(times, verdict, machine, tmp_path):
    oracle = """
        def reference(x, w_shift, rows):
            assert x.dtype == w_shift.dtype == torch.float64
            return (2 * x + w_shift)[:rows]
    """
    record = run_pairs(
        [one_pair(tmp_path, half(extra=oracle), half(f"return {times} * x + w_shift", extra=oracle))], check_only=True
    )
    assert row_of(record, "double").verdict == verdict


def test_every_check_size_is_run(machine, tmp_path):
    sizes = {"check": {"n": 128}, "check/odd": {"n": 129}, "default": {"n": 128}}
    liar = half("y = 2 * x + w_shift\ny[len(x) // 2 * 2:] = 0\nreturn y", sizes=sizes)
    row = row_of(run_pairs([one_pair(tmp_path, liar, half(sizes=sizes))], check_only=True), "double")
    assert row.reason.startswith("wrong answer at size check/odd")


@pytest.mark.parametrize(("precision", "verdict"), [("", "invalid"), ('PRECISION = "bf16"', "checked")])
def test_lower_precision_passes_where_it_is_declared(precision, verdict, machine, tmp_path):
    pair = one_pair(tmp_path, half("return (2 * x.bfloat16() + w_shift.bfloat16()).float()", extra=precision))
    row = row_of(run_pairs([pair], check_only=True), "double")
    assert row.verdict == verdict
    assert row.precision == ("bf16" if precision else "")


def test_a_library_that_may_differ_is_not_judged(machine, tmp_path):
    extra = 'LIBRARY_DIFFERS = "draws random numbers"\ndef library(x, w_shift): return torch.rand_like(x)'
    (row,) = run_pairs([one_pair(tmp_path, half(extra=extra))], fast=True).pairs[0].rows
    assert list(row.vs_library) == ["library"]


def test_placement_may_be_the_lesson(machine, tmp_path):
    """A variant whose input is strided gets the same values in its own placement."""
    matrix = 'return {{"x": torch.randn(n, 7, device=device){}}}'
    pair = one_pair(
        tmp_path,
        half("return x.sum(1)", "x", matrix.format(".T.contiguous().T")),
        half("return x.sum(1)", "x", matrix.format("")),
    )
    (row,) = run_pairs([pair], fast=True).pairs[0].rows
    assert row.verdict in BELIEVED, row.reason


SWEEP = {"check": {}, "default": {}, "small/a": {}, "small/b": {}, "smaller": {}, "cpu": {}}


@pytest.mark.parametrize(
    ("wanted", "on_cpu", "expected"),
    [
        ("default", False, ["default"]),
        ("default", True, ["cpu"]),
        ("small", False, ["small/a", "small/b"]),
        ("small/b", False, ["small/b"]),
        ("all", False, ["default", "small/a", "small/b", "smaller"]),
        ("all", True, ["small/a", "small/b", "smaller", "cpu"]),
        ("check", False, []),
        ("none", False, []),
    ],
)
def test_the_sizes_that_a_name_selects(wanted, on_cpu, expected, tmp_path):
    pair = one_pair(tmp_path, half(sizes=SWEEP), half(sizes=SWEEP))
    assert sizes_of(pair, wanted, on_cpu) == expected


def test_a_sweep_has_a_result_for_every_size(machine, tmp_path):
    sizes = {"check": {"n": 7}, "default": {"n": 8}, "small/a": {"n": 9}, "small/b": {"n": 10}}
    record = run_pairs([one_pair(tmp_path, half(sizes=sizes), half(sizes=sizes))], size="all", check_only=True)
    assert [(pair.size, pair.sizes) for pair in record.pairs] == [(size, sizes[size]) for size in list(sizes)[1:]]


def test_default_stays_default_on_a_cpu_where_there_is_no_other(tmp_path):
    assert sizes_of(one_pair(tmp_path), "default", on_cpu=True) == ["default"]


# Ctrl-C, as a terminal sends it: to benchmark.py and all that it started

MARK = "SPEED_OF_LIGHT_TEST"


def marked(value):
    """The processes with this mark in their environment: benchmark.py, its forkserver, pairs, what they started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:  # it has ended since, or is somebody else's
            continue
        if f"{MARK}={value}".encode() in environment and is_alive(folder.name):
            found.append(int(folder.name))
    return found


def wait_until(condition, running=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert running is None or running.poll() is None, running.communicate()
        time.sleep(0.05)


@pytest.fixture
def launch(tmp_path):
    """Starts benchmark.py with these arguments in a process group of its own; whatever is left of it is killed."""
    mark = str(tmp_path)

    def start(*arguments):
        command = [sys.executable, str(ROOT / "benchmark.py"), *map(str, arguments)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            start_new_session=True,
            env={**os.environ, MARK: mark},
        )

    start.left = lambda: marked(mark)
    yield start
    for pid in marked(mark):
        os.kill(pid, signal.SIGKILL)


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to look for processes")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_keeps_what_it_has_and_leaves_nobody(number, launch, tmp_path):
    write_pair(tmp_path / "pairs", "a", half())
    stuck = f"""
        import subprocess, time
        subprocess.Popen(["sleep", "600"])
        open({str(tmp_path / "stuck")!r}, "w").close()
        time.sleep(600)
    """
    write_pair(tmp_path / "pairs", "b", half(stuck))
    write_pair(tmp_path / "pairs", "c", half())
    running = launch("--path", "pairs", "--fast", "--json", "r.json")
    wait_until((tmp_path / "stuck").exists, running)
    assert [pair.name for pair in load_record(tmp_path / "r.json").pairs] == ["a"]  # saved as soon as it was there
    os.killpg(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in out + err
    assert "a" in out
    record = load_record(tmp_path / "r.json")
    assert [(pair.name, pair.rows[0].verdict in BELIEVED) for pair in record.pairs] == [("a", True)]
    assert record.environment["interrupted"]
    wait_until(lambda: not launch.left(), seconds=10)


def forkservers(pids):
    """Those of them that are a forkserver or forked from one."""
    return [pid for pid in pids if b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@needs_proc
@pytest.mark.parametrize("processes", [1, 2])  # the forkserver imports torch; its first child looks at this machine
def test_an_interrupt_before_the_first_pair_is_no_traceback_either(processes, launch, tmp_path):
    write_pair(tmp_path / "pairs", "a", half())
    running = launch("--path", "pairs", "--fast")
    wait_until(lambda: len(forkservers(launch.left())) >= processes, running)
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in out + err
    wait_until(lambda: not launch.left(), seconds=10)
