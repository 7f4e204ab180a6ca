"""The scripts of chapter 1: what they print is there and true, bad input is one line, and help needs no torch."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from common import program
from common.pairs.pair import ROOT, load
from common.pairs.user_error import UserError
from common.xray.compilers import nvrtc_compile

pytestmark = pytest.mark.rest  # a program beside the pairs

CH1 = ROOT / "ch1"
NAMES = ("performance_basics", "performance_basics_optimized", "roofline_analysis", "arithmetic_intensity_demo")
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
PNG = b"\x89PNG\r\n\x1a\n"
find_lines = partial(re.findall, flags=re.MULTILINE)


def run(*command: str | Path, cwd: Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def output_of(here):
    """output_of(name, argument, ...): what a script prints; it must succeed."""

    def of(*arguments: str) -> str:
        done = here(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return of


@pytest.fixture
def here(monkeypatch, capsys, tmp_path):
    """here(name, argument, ...): what becomes of a script in this process, which has imported torch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(CH1)  # as it is when a script is run

    def of(name: str, *arguments: str) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        status = program.status_of(f"{name}.py", lambda: load(CH1 / f"{name}.py").main() or 0)
        return subprocess.CompletedProcess(sys.argv, status, *capsys.readouterr())

    return of


def refused(done: subprocess.CompletedProcess, says: str = "") -> None:
    """With status 2 and one line, so no traceback, that names what is wrong."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert says in done.stderr


def amount(text: str) -> float:
    """4.2e12 of "4.20 TB/s"."""
    number, prefix = re.fullmatch(r"([\d.]+) ([kMGTP]?)(?:B/s|FLOP/s|FLOP)", text).groups()
    return float(number) * 1000 ** " kMGTP".index(prefix or " ")


@pytest.mark.parametrize("name", [*NAMES, "compare"])
def test_help_needs_no_torch(name, tmp_path):
    done = run(sys.executable, "-X", "importtime", CH1 / f"{name}.py", "--help", cwd=tmp_path)
    shown = "ch1/compare.py" if name == "compare" else f"{name}.py"  # every chapter has one of that name
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["usage:", shown])
    assert {*find_lines(r"\| +(argparse|torch|cupy|numpy|matplotlib)$", done.stderr)} == {"argparse"}


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("performance_basics", "--samples 16 --batch 32", "--batch 32"),
        ("performance_basics_optimized", "--repeats 2", "--repeats 2"),
        ("performance_basics_optimized", "--batches 32,x", "--batches"),
        ("roofline_analysis", "--output nowhere/plot.png", "nowhere/plot.png"),
        ("arithmetic_intensity_demo", "--device cuda:99", "cuda:99"),
        ("arithmetic_intensity_demo", "--elements 7", "--elements 7"),
    ],
)
def test_bad_input_is_one_line(name, arguments, says, here):
    refused(here(name, *arguments.split()), says)


def test_goodput_is_useful_time_over_total_time(output_of):
    text = output_of("performance_basics", "--samples", "512", "--repeats", "3")
    (line,) = find_lines(r"^goodput=([\d.]+)% \(useful=([\d.]+)s total=([\d.]+)s\)$", text)
    goodput, useful_s, total_s = map(float, line)
    assert 0 < useful_s <= total_s
    assert goodput == pytest.approx(100 * useful_s / total_s, abs=0.1)
    outside, inside = (float(found) for found in re.findall(r"([\d.]+) us", text))
    assert outside == pytest.approx(1e6 * (total_s - useful_s) / (3 * 16), rel=0.02, abs=0.3)  # 3 passes of 16 steps
    assert inside == pytest.approx(1e6 * useful_s / (3 * 16), rel=0.01)


def test_the_four_tests_and_the_overall_speedup(output_of):
    short = ("--samples", "512", "--repeats", "3", "--batches", "32,128,1099511627776,64")
    text = output_of("performance_basics_optimized", *short)
    assert find_lines(r"^test (\d): ", text) == ["1", "2", "3", "4"]
    assert "end with equal weights" in text
    if DEVICE == "cpu":
        assert "graphs need CUDA: this is the larger batch alone" in text
    medians = {name: float(us) for name, us in find_lines(r"^  (.+): ([\d.e+-]+) \(.*us per sample", text)}
    assert next(iter(medians)) == "original"
    last, verdict, ratio = re.search(r"^overall: (.+) against .*: (unsure \(|)([\d.]+)x", text, re.MULTILINE).groups()
    assert last == list(medians)[-1]
    assert float(ratio) == pytest.approx(medians["original"] / medians[last], rel=0.02)
    after = text.rsplit("x, ", 1)[1].strip()
    assert after == "inside the spread)" if verdict else after == ("faster" if float(ratio) > 1 else "slower")
    assert "out of memory: the sweep ends here\nbatch" in text  # and 64 was not tried
    rows = find_lines(r"^ +(\d+) +([\d.e+-]+) \(.*\) +([\d.e+-]+) +([\d.]+ .?FLOP/s)$", text)
    assert [row[0] for row in rows] == ["32", "128"]
    for batch, ms, rate, flops in rows:
        assert float(rate) == pytest.approx(1e3 * int(batch) / float(ms), rel=0.01)
        assert amount(flops) == pytest.approx(float(rate) * load(CH1 / "training.py").flops_per_sample(), rel=0.01)


def test_a_slowdown_is_a_slowdown_and_noise_cannot_tell():
    compare, long, short = load(CH1 / "performance_basics_optimized.py").compare, [4.0, 4.1, 4.2], [2.0, 2.05, 2.1]
    assert (compare(long, short), compare(short, long)) == ("2.00x, faster", "0.50x, slower")
    assert compare([1.0, 2.0, 3.0], [2.0, 4.0, 5.0]) == "unsure (0.50x, inside the spread)"


def test_loops_that_trained_something_else_are_not_compared(monkeypatch):
    monkeypatch.syspath_prepend(CH1)  # as it is when the script is run
    module, training = load(CH1 / "performance_basics_optimized.py"), load(CH1 / "training.py")
    good = training.train(training.make_data(64), DEVICE, 32)
    module.check({"original": [good], "pinned DataLoader": [good]}, 64)
    idle = replace(good, weights=training.weights(training.make_model("cpu")[0]))
    apart, nan = replace(good, weights=good.weights + 1e-3), replace(good, losses=good.losses * float("nan"))
    for first, second in [(good, apart), (good, nan), (idle, idle)]:
        with pytest.raises(SystemExit):
            module.check({"original": [first], "pinned DataLoader": [second]}, 64)


def test_flops_of_a_step_equal_an_independent_count():
    training = load(CH1 / "training.py")
    data = training.make_data(8).tensors
    with FlopCounterMode(display=False) as counter:
        training.train_step(*training.make_model("cpu"), *data)
    assert counter.get_total_flops() == 8 * training.flops_per_sample()


def test_a_pass_trains_on_every_sample_and_forgets_the_warm_up():
    training = load(CH1 / "training.py")
    data = training.make_data(96)
    one, again = (training.train(data, DEVICE, 32) for _ in range(2))
    model, _ = training.make_model(DEVICE)
    x, y = (tensor[:32].to(DEVICE) for tensor in data.tensors)
    first = torch.nn.functional.cross_entropy(model(x), y).item()
    assert one.losses[0].item() == pytest.approx(first, rel=1e-5)  # the first timed step starts from fresh weights
    assert len(one.losses) == 3
    torch.testing.assert_close(one.weights, again.weights)


def test_roofline_places_every_operation(output_of, tmp_path):
    text = output_of("roofline_analysis", "--quick", "--repeats", "3", "--device", DEVICE)
    assert (tmp_path / "roofline_plot.png").read_bytes().startswith(PNG)
    roofs = {key: amount(rate) for key, rate in find_lines(r"^roof (\w+) +([\d.]+ \S+) measured", text)}
    ridge = float(re.search(r"^ridge point fp32: ([\d.]+) FLOP/B", text, re.MULTILINE).group(1))
    assert ridge == pytest.approx(roofs["fp32_flops"] / roofs["dram_bytes"], rel=0.02)
    numbers = r"([\d.e+-]+) +([\d.]+ \S+) +([\d.]+ \S+)"
    rows = find_lines(rf"^ (\S.*?)  +{numbers} +(memory|compute) +([\d.]+)%", text)
    side = 128 if DEVICE == "cpu" else 512
    by_hand = {"vector add": 1 / 12, "reduction": 0.25, f"product {side} fp32": 2 * side**3 / (3 * side**2 * 4)}
    found = {name: float(intensity) for name, intensity, *_ in rows if name in by_hand}
    assert found == pytest.approx(by_hand, rel=0.01)
    for name, intensity, flops, traffic, bound, part in rows:
        memory = roofs["dram_read_bytes" if name == "reduction" else "dram_bytes"]
        compute = roofs[f"{name.split()[-1]}_flops" if name.startswith("product") else "fp32_flops"]
        assert amount(flops) / amount(traffic) == pytest.approx(float(intensity), rel=0.02)
        assert bound == ("memory" if float(intensity) < compute / memory else "compute")
        roof = min(compute, float(intensity) * memory)
        assert float(part) == pytest.approx(100 * amount(flops) / roof, rel=0.03, abs=0.1)


def test_the_sweep_of_flops_per_element(output_of, tmp_path):
    text = output_of("arithmetic_intensity_demo", "--elements", "1048576", "--repeats", "3")
    assert (tmp_path / "arithmetic_intensity_demo.png").read_bytes().startswith(PNG)
    assert text.startswith("verified: every chain agrees with float64")
    rows = find_lines(r"^ +(\d+) +([\d.]+) +([\d.e+-]+) \(\S+\) +([\d.]+ \S+) +([\d.]+ \S+)$", text)
    assert [int(row[0]) for row in rows] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    for flops, intensity, ms, rate, traffic in rows:
        assert float(intensity) == pytest.approx(int(flops) / 8, abs=1e-3)
        assert amount(rate) == pytest.approx(int(flops) * 1048576 / (1e-3 * float(ms)), rel=0.01)
        assert amount(traffic) == pytest.approx(8 * 1048576 / (1e-3 * float(ms)), rel=0.01)
    knee = float(re.search(r"^knee: ([\d.]+) FLOP/B", text, re.MULTILINE).group(1))
    assert knee == pytest.approx(max(amount(row[3]) for row in rows) / max(amount(row[4]) for row in rows), rel=0.03)
    ridge, copy, peak = find_lines(r"^ridge point: ([\d.]+) .*: ([\d.]+ \S+) \(copy\) and ([\d.]+ \S+) ", text)[0]
    assert float(ridge) == pytest.approx(amount(peak) / amount(copy), rel=0.02)


def test_a_chain_of_the_wrong_length_is_found():
    demo = load(CH1 / "arithmetic_intensity_demo.py")
    x = torch.rand(8192)
    out = torch.zeros_like(x)
    right = demo.cpu_chain(x, out)
    assert demo.check(right, x, out) < demo.TOLERANCE
    for wrong, length in [(lambda flops: out.zero_, 1), (lambda flops: right(flops if flops < 512 else 510), 512)]:
        with pytest.raises(SystemExit, match=f"^{length} FLOPs per element"):
            demo.check(wrong, x, out)


def test_the_kernel_computes_as_many_flops_as_it_says():
    demo = load(CH1 / "arithmetic_intensity_demo.py")
    for flops in (1, 2, 512):
        instance = f"template __global__ void chain<{flops}>(const float4*, float4*, float, float, int);"
        machine_code, ptx = nvrtc_compile(demo.KERNEL + instance, "sm_90")
        assert machine_code.startswith(b"\x7fELF")
        counts = ptx.count("fma.rn.f32"), len(re.findall(r"add(?:\.rn)?\.f32", ptx))
        assert counts == (4 * (flops // 2), 4 * (flops == 1))  # four elements a thread


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The module, whose command line asks to record into tmp_path; what the scripts themselves do is up to the test."""
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)
    monkeypatch.setattr(sys, "argv", ["script.py", "--record", "--device", "cpu"])
    return load(CH1 / "script.py")


def test_nothing_is_recorded_if_a_script_fails(script, monkeypatch, tmp_path):
    failed = subprocess.CompletedProcess([], 3, "", "a trace\nno such thing\n")
    monkeypatch.setattr(script.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match=r"^performance_basics\.py ended with status 3: no such thing$"):
        script.record()
    assert not list(tmp_path.glob("*/*"))


def test_to_record_is_asked_for(tmp_path):
    refused(run(sys.executable, CH1 / "script.py", cwd=tmp_path), "--record")


def test_profiling_scripts_call_nsight_with_the_reports_name(tmp_path):
    """With a PATH of the shell's own tools, this Python, and scripts in place of Nsight's."""
    shutil.copytree(ROOT / "common/profiling", tmp_path / "common/profiling")
    for folder in ("ch9", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / "ch9/tiny.py").touch()
    for tool, text in {"python": f'exec "{sys.executable}" "$@"', "nsys": 'echo "$*"', "ncu": 'echo "$*"'}.items():
        (tmp_path / "bin" / tool).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / tool).chmod(0o700)
    for tool in ("bash", "dirname", "basename", "mkdir", "env"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))

    def profile(tool: str, *arguments: str) -> subprocess.CompletedProcess:
        script, path = tmp_path / f"common/profiling/profile_{tool}.sh", str(tmp_path / "bin")
        return run(script, "ch9/tiny.py", *arguments, cwd=tmp_path, path=path)

    results = f"{tmp_path}/results/ch9"
    assert re.search(rf"--output={results}/tiny .*python ch9/tiny.py --x\n", profile("pytorch", "--x").stdout)
    said = rf"--clock-control none .*--export {results}/NAME .*python ch9/tiny.py\n"
    assert re.search(said, profile("cuda", "NAME").stdout)
    refused(profile("cuda", "a/b"))
    (tmp_path / "bin/ncu").unlink()
    refused(profile("cuda", "NAME"), "nothing was profiled: install Nsight Compute")
