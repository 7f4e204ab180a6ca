"""Chapter 4's search: its space, proposers, history, a model that answers as it likes, and the command line."""

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from argparse import Namespace
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

from common.pairs.pair import ROOT

CH4 = ROOT / "ch4"
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
if find_spec("triton"):
    sys.path.append(str(CH4))
    import gemm
    import tune as command_line
    from search import generations, history, measure, model, show, sweeps
    from search.examine import examine, examined
    from search.history import History, Trial
    from search.proposers import Evolutionary, ProposerError, Shuffled
    from search.space import Problem, Space, name_of, predict

    from common.isolation import process
    from common.pairs.contract import OneLine
    from common.record.result import RecordError
    from common.show.console import make_console
    from common.xray.occupancy import MACHINES

    H100, A100 = MACHINES["sm_90"], MACHINES["sm_80"]
    PROBLEM = Problem(4096, 4096, 4096, "float16", "leaky_relu")
    SMALL = Problem(64, 96, 40, "float16", "relu")  # whose space is tried in no time
    TINY = {**gemm.DEFAULT, "BLOCK_M": 64, "BLOCK_N": 64, "WARPS": 4}
    ABOUT = {
        "schema": 1, "searched": "time", "problem": asdict(PROBLEM), "machine": json.loads(json.dumps(asdict(H100))),
        "default": gemm.DEFAULT, "proposer": "exhaustive", "seed": 0,
    }  # fmt: skip


@cache
def space(problem=None, machine=None):
    return Space.of(problem or PROBLEM, machine or H100)


def quiet(what, fraction):
    assert 0 <= fraction <= 1


def landscape(seed):
    """A score for each configuration: from its values, from pairs of them, and a little of its own; one in 20 fails."""
    rng, scores = random.Random(seed), {}
    effect = {}

    def of(*values):
        return effect.setdefault(values, abs(rng.gauss(0, 0.1)))

    for name, each in space().valid.items():
        values = sorted(each.items())
        pairs = sum(of(one, other) for one in values for other in values if one < other)
        scores[name] = None if rng.random() < 0.05 else math.exp(-pairs - sum(map(of, values)) - rng.random() * 0.02)
    return scores


def tried(configuration, score, generation=0):
    if score is None:
        return Trial(configuration, generation, "wrong", "element 3 of 9 is 0")
    found = {"registers": 200, "shared_bytes": 98_304, "spills": 0, "warps_on_an_sm": 8}
    predicted = {"registers": 192, "shared_bytes": 98_304}
    ends = {"low": score * 0.99, "high": score * 1.01}
    return Trial(
        configuration, generation, "measured", score=score, seconds=1e-3, predicted=predicted, found=found, **ends
    )


class Table:
    """A bench that looks scores up, and may be killed."""

    def __init__(self, scores, dies_in=None):
        self.scores, self.dies_in = scores, dies_in

    def score(self, configurations, generation, tell):
        tell("looking", 0.5)
        if generation == self.dies_in:
            raise KeyboardInterrupt
        trials = [tried(each, self.scores[name_of(each)], generation) for each in configurations]
        return trials, {"ratio": 1.001, "low": 0.998, "high": 1.004}


# The space


def test_the_space_holds_what_fits_and_says_of_the_rest_why():
    big = {**gemm.DEFAULT, "BLOCK_K": 128, "STAGES": 3}
    assert "294,912 bytes of shared memory a block, 232,448 are there" in space().problem_with(big)
    assert "registers" in space().problem_with({**gemm.DEFAULT, "WARPS": 4})
    assert space().problem_with(gemm.DEFAULT) == ""
    assert 500 <= len(space().valid) <= 1500
    assert not space().valid.keys() & space().pruned.keys()
    assert len(space().valid) + len(space().pruned) == math.prod(map(len, space().axes.values()))


@pytest.mark.parametrize(("proposed", "says"), [
    (3, "an object"), ({"BLOCK_M": 64}, "exactly the keys"), ({"BLOCK_M": 65}, "BLOCK_M must be one of 64, 128, 256"),
    ({"BLOCK_M": "64"}, "BLOCK_M"), ({"WARPS": 8.0}, "WARPS"), ({"VARIANT": "magic"}, "VARIANT"),
    ({"WARPS": True}, "WARPS"),
])  # fmt: skip
def test_a_configuration_of_somebody_else_is_looked_at_closely(proposed, says):
    whole = isinstance(proposed, dict) and "exactly" not in says
    assert says in space().problem_with({**gemm.DEFAULT, **proposed} if whole else proposed)


def test_tiles_suit_the_problem_and_variants_the_machine():
    assert space(SMALL).axes["BLOCK_M"] == [16, 32, 64]
    assert space(SMALL).axes["BLOCK_N"] == [32, 64, 128]
    assert space(Problem(1, 7, 9, "float16", "none")).axes["BLOCK_M"] == [16, 32, 64]
    assert space(Problem(1, 7, 9, "float16", "none")).axes["VARIANT"] == ["pointers"]  # no descriptors of odd rows
    assert space(PROBLEM, A100).axes["VARIANT"] == ["pointers"]
    assert space().nearest(gemm.DEFAULT) == gemm.DEFAULT
    small = MACHINES["sm_86"]
    assert not space(PROBLEM, small).problem_with(space(PROBLEM, small).nearest(gemm.DEFAULT))


# Compiled


def test_what_was_predicted_is_what_the_compiler_reports():
    trial = examine(PROBLEM, TINY, H100)
    found = trial.found
    assert trial.outcome == "measured"
    assert trial.low == trial.score == trial.high == found["proxy"]
    assert found["shared_bytes"] == predict(TINY, H100).shared_bytes == 3 * (64 + 64) * 64 * 2
    assert abs(found["registers"] - predict(TINY, H100).registers) < 32
    assert 0 < found["proxy"] < 1
    assert found["tensor_instructions"] > 0 == found["spills"]


def test_descriptors_compile_too():
    assert examine(PROBLEM, {**TINY, "VARIANT": "persistent"}, H100).outcome == "measured"


def test_what_does_not_compile_or_fit_is_an_outcome():
    assert examine(PROBLEM, {**TINY, "WARPS": 3}, H100).outcome == "does not compile"
    trial = examine(PROBLEM, TINY, replace(H100, shared_bytes=32 << 10))
    assert trial.outcome == "out of resources"
    assert trial.reason == "49,152 bytes of shared memory a block, 31,744 are there"


def test_compiled_on_all_cores():
    odd = {**TINY, "WARPS": 3}
    found = examined(PROBLEM, [TINY, odd], H100, 2, quiet)
    assert [trial.configuration for trial in found] == [TINY, odd]
    assert [trial.outcome for trial in found] == ["measured", "does not compile"]


# The kernel, in Triton's interpreter


def error_of(variant, m, n, k, activation, turned):
    torch.manual_seed(0)
    configuration = {**gemm.DEFAULT, "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP_M": 2, "VARIANT": variant}
    a, b = torch.randn(k, m).half().T if turned else torch.randn(m, k).half(), torch.randn(k, n).half()
    expected = a.double() @ b.double()
    if activation != "none":
        expected = getattr(torch.nn.functional, activation)(expected)
    found = gemm.matmul(a, b, configuration, activation)
    assert found.shape == expected.shape
    return float((found - expected).abs().max()) if found.numel() else 0.0


@pytest.mark.parametrize(("variant", "shape", "activation", "turned"), [
    ("pointers", (1, 1, 1), "none", False), ("pointers", (37, 29, 31), "leaky_relu", False),
    ("pointers", (5, 7, 0), "relu", False), ("pointers", (0, 3, 4), "none", False),
    ("pointers", (131, 67, 48), "none", True), ("descriptors", (37, 40, 56), "leaky_relu", False),
])  # fmt: skip
def test_the_kernel_multiplies(run_on, variant, shape, activation, turned):
    assert run_on("cpu", error_of, variant, *shape, activation, turned) < 0.02


# History


def test_a_history_is_read_as_it_was_written(tmp_path):
    kept = history.opened(tmp_path / "h.jsonl", ABOUT)
    kept.add([tried(gemm.DEFAULT, 1.0), tried(TINY, None)], {"ratio": 1.0, "low": 0.9, "high": 1.1})
    kept.remark("what was refused")
    kept.conclude({"configuration": TINY})
    again = history.opened(kept.path, ABOUT)
    assert again == kept
    assert [trial.outcome for trial in again.failures] == ["wrong"]


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    kept = history.opened(tmp_path / "h.jsonl", ABOUT)
    kept.add([tried(gemm.DEFAULT, 1.0), tried(TINY, 0.9)])
    kept.path.write_text(kept.path.read_text()[:-40])
    again = history.opened(kept.path, ABOUT)
    assert [trial.name for trial in again.trials] == [name_of(gemm.DEFAULT)]
    again.add([tried(TINY, 0.9)])
    assert len(history.read(kept.path).trials) == 2


def test_another_search_s_history_is_refused(tmp_path):
    path = history.opened(tmp_path / "h.jsonl", ABOUT).path
    with pytest.raises(RecordError, match="of another search: its seed is 0, not 1"):
        history.opened(path, {**ABOUT, "seed": 1})


@pytest.mark.parametrize("text", ["", "{}\n", "[1]\n", "no\n", '{"kind": "search", "schema": 9}\n'])
def test_what_is_no_history_is_said(tmp_path, text):
    (tmp_path / "h.jsonl").write_text(text)
    with pytest.raises(RecordError, match="not the history of a search"):
        history.read(tmp_path / "h.jsonl")


# Proposers and the loop


def found_by(proposer, scores, most=60, **how):
    kept = History(ABOUT)
    generations.search(kept, space(), proposer, Table(scores, **how), gemm.DEFAULT, most, math.inf, quiet)
    return kept


@pytest.mark.parametrize("kind", ["Evolutionary", "Shuffled"])
def test_proposals_are_valid_and_new(kind):
    kept = found_by({"Evolutionary": Evolutionary, "Shuffled": Shuffled}[kind](space(), 1), landscape(0))
    assert len(kept.trials) == len(kept.names) == 60
    assert kept.names <= space().valid.keys()
    assert kept.trials[0].configuration == gemm.DEFAULT


def test_evolution_finds_what_chance_does_not():
    scores = [landscape(seed) for seed in range(3)]

    def shares(proposer):
        most = len(space().valid) // 10
        found = [found_by(proposer(space(), seed), each, most) for seed, each in enumerate(scores)]
        return [
            kept.measured[0].score / max(filter(None, each.values())) for kept, each in zip(found, scores, strict=True)
        ]

    evolved, drawn = shares(Evolutionary), shares(Shuffled)
    assert sorted(evolved)[1] >= 0.98
    assert sum(evolved) > sum(drawn)


def test_a_search_that_was_killed_goes_on_as_it_would_have(tmp_path):
    scores = landscape(0)
    whole = found_by(Evolutionary(space(), 1), scores)
    kept = history.opened(tmp_path / "h.jsonl", ABOUT)
    with pytest.raises(KeyboardInterrupt):
        generations.search(
            kept, space(), Evolutionary(space(), 1), Table(scores, dies_in=2), gemm.DEFAULT, 60, math.inf, quiet
        )
    again = history.opened(kept.path, ABOUT)
    assert len(again.trials) == 24
    generations.search(again, space(), Evolutionary(space(), 1), Table(scores), gemm.DEFAULT, 60, math.inf, quiet)
    assert [trial.name for trial in again.trials] == [trial.name for trial in whole.trials]


def test_a_small_space_is_tried_to_its_end():
    few = Space(space().axes, dict(list(space().valid.items())[:30]), {})
    kept, default = History(ABOUT), next(iter(few.valid.values()))
    generations.search(kept, few, Evolutionary(few, 0), Table(landscape(0)), default, 99, math.inf, quiet)
    assert kept.names == few.valid.keys()


def test_no_generation_begins_after_the_budget(monkeypatch):
    kept, now = History(ABOUT), [0.0]
    monkeypatch.setattr(generations, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Slow(Table):
        def score(self, *arguments):
            now[0] += 5
            return super().score(*arguments)

    generations.search(kept, space(), Shuffled(space(), 0), Slow(landscape(0)), gemm.DEFAULT, 999, 7, quiet)
    assert kept.generations == 2


# Measured by the engine, on a CPU: one configuration by the kernel, in Triton's interpreter, the others by torch

FAULTS = """

multiply, calls = matmul, []


class OutOfResources(Exception):
    pass


def matmul(a, b, configuration, activation):
    import os

    stages = configuration["STAGES"]
    if stages == 4:
        return multiply(a, b, configuration, activation)
    if stages == 5:
        os.kill(os.getpid(), 11)
    if stages == 6:
        raise OutOfResources("shared memory")
    if stages == 7:
        raise ValueError("no such thing")
    calls.append(stages)
    return (a @ b).relu() * (stages != 8) * (stages != 9 or len(calls) < 20)
"""


@pytest.fixture
def here(monkeypatch, tmp_path):
    """here(stages, default=3): measured, on this CPU, with `STAGES` for what becomes of a configuration."""
    (tmp_path / "gemm.py").write_text(measure.GEMM.read_text() + FAULTS)
    monkeypatch.setattr(measure, "GEMM", tmp_path / "gemm.py")
    monkeypatch.setattr(measure, "survey_apart", lambda device: ({"kind": "cpu"}, {}))

    def on(stages, default=3):
        first, *others = [{**gemm.DEFAULT, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "STAGES": number}
                          for number in (default, *stages)]  # fmt: skip
        return measure.measured(Problem(16, 16, 16, "float16", "relu"), others, first, "cpu", 0, quiet)

    return on


def test_every_configuration_is_verified_and_timed_whatever_becomes_of_the_others(here):
    found = here(range(4, 10))
    outcomes = {json.loads(name)["STAGES"]: bad for name, bad in found.bad.items()}
    assert {stages: outcome for stages, (outcome, _) in outcomes.items()} == {
        5: "died", 6: "out of resources", 7: "does not run", 8: "wrong", 9: "wrong",
    }  # fmt: skip
    says = {5: "killed by SIGSEGV", 6: "shared memory", 7: "ValueError: no such thing", 8: "at size check: element",
            9: "in a timed round, against the baseline's: element"}  # fmt: skip
    assert {stages: text in outcomes[stages][1] for stages, text in says.items()} == dict.fromkeys(says, True)
    (name,) = found.seconds.keys() - {measure.DEFAULT, measure.CONTROL, measure.TORCH}
    assert json.loads(name)["STAGES"] == 4
    assert {len(blocks) for blocks in found.seconds.values()} == {6}
    assert 0 < found.ratio(name).low <= found.ratio(name).ratio <= found.ratio(name).high < 1


def test_a_default_that_is_wrong_ends_the_search(here):
    with pytest.raises(process.Death, match="the default configuration: wrong answer at size check: element"):
        here([3], default=8)


def test_a_death_that_is_nobody_s_is_raised(here, monkeypatch):
    def call(*_, on_progress, **how):
        raise process.Death("no memory")

    monkeypatch.setattr(process, "call", call)
    with pytest.raises(process.Death, match="no memory"):
        here([4])


@pytest.mark.gpu
def test_on_a_gpu_what_is_wrong_gets_no_time():
    machine = measure.machine_of("cuda:0")
    problem = Problem(512, 512, 512, "float16", "relu")
    valid = Space.of(problem, machine)
    default = valid.nearest(gemm.DEFAULT)
    bench = generations.Gpu(problem, machine, "cuda:0", default, 0)
    huge = {**default, "BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 128, "STAGES": 4}
    (good, bad), repeat = bench.score([default, huge], 0, quiet)
    assert (good.outcome, bad.outcome) == ("measured", "out of resources")
    assert good.low <= good.score <= good.high
    assert repeat["low"] <= repeat["ratio"] <= repeat["high"]


# A model behind a server that speaks the protocol


@contextmanager
def serving(monkeypatch, *answers):
    """A server that gives these answers in turn: a text, (status, body), seconds of silence. Yields what is asked."""
    asked, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], body))
            answer = left.pop(0)
            if isinstance(answer, float):
                time.sleep(answer)
                answer = ""
            said = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
            status, reply = answer if isinstance(answer, tuple) else (200, json.dumps(said))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            with_body = reply.encode()
            try:
                self.wfile.write(with_body)
            except BrokenPipeError:
                pass

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()  # looked at every 0.01 s
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", "the key")
    monkeypatch.setenv("OPENAI_MODEL", "a model")
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def proposal(*configurations):
    return json.dumps({"configurations": configurations})


def refusal(text):
    return 200, json.dumps({"choices": [{"message": {"content": None, "refusal": text}}]})


def test_a_model_proposes(monkeypatch):
    kept = History(ABOUT, trials=[tried(gemm.DEFAULT, 1.0), tried({**TINY, "STAGES": 4}, None)])
    with serving(monkeypatch, proposal(TINY)) as asked:
        assert model.Model(space(), "a product").propose(kept, 4) == [TINY]
    ((path, key, body),) = asked
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer the key", "a model")
    said = body["messages"][0]["content"]
    assert "a product" in said
    assert "wrong (element 3 of 9 is 0)" in said  # a failure, told
    assert "Propose 4" in said


@pytest.mark.parametrize(("answer", "says"), [
    ("Here you are: {}", "the answer is not JSON alone"), ('{"configurations": [', "the answer is not JSON alone"),
    ("", "answer is empty"), ('{"configurations": {}}', 'must be {"configurations": [...]}'),
    ('{"configurations": [], "why": 1}', 'must be {"configurations": [...]}'), ("[]", 'must be {"configurations"'),
    ((200, "<html>"), "not that of a chat"), ((200, "[]"), "not that of a chat"), ((200, "{}"), "not that of a chat"),
    ((500, "oh"), "status 500"), ((401, "{}"), "status 401"), ((302, ""), "status 302"), (1.5, "within 1 s"),
    ('{"configurations": [7]}', "no proposal could be tried"),
])  # fmt: skip
def test_a_useless_answer_is_told_to_the_model_and_asked_again(monkeypatch, answer, says):
    kept = History(ABOUT)
    with serving(monkeypatch, answer, proposal(TINY)) as asked:
        assert model.Model(space(), "", 1.0).propose(kept, 2) == [TINY]
    assert says in kept.remarks[-1]
    assert says in asked[1][2]["messages"][0]["content"]


def test_a_refusal_is_told(monkeypatch):
    kept = History(ABOUT)
    with serving(monkeypatch, refusal("I would rather not"), proposal(TINY)):
        assert model.Model(space(), "").propose(kept, 2) == [TINY]
    assert kept.remarks == ["the model refused: I would rather not"]


def test_what_is_wrong_with_one_proposal_does_not_cost_the_others(monkeypatch):
    kept = History(ABOUT, trials=[tried(gemm.DEFAULT, 1.0)])
    wide = {**gemm.DEFAULT, "WARPS": 4}
    with serving(monkeypatch, proposal({**TINY, "WARPS": 5}, gemm.DEFAULT, wide, TINY, TINY)):
        assert model.Model(space(), "").propose(kept, 5) == [TINY]
    bad, again, pruned = kept.remarks
    assert "WARPS must be one of 4, 8" in bad
    assert again.endswith("tried before")
    assert "would spill" in pruned


def test_a_model_that_gives_nothing_ends_the_search(monkeypatch):
    kept = History(ABOUT)
    ends = pytest.raises(ProposerError, match="3 times in a row; the last time: the answer is not JSON")
    with serving(monkeypatch, *["nothing"] * 3) as asked, ends:
        model.Model(space(), "").propose(kept, 2)
    assert len(asked) == 3


def test_nobody_there(monkeypatch):
    with serving(monkeypatch):
        pass
    with pytest.raises(ProposerError, match="cannot be reached"):
        model.Model(space(), "").propose(History(ABOUT), 2)


def test_a_model_must_be_named(monkeypatch):
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(OneLine, match="OPENAI_MODEL must be set"):
        model.Model(space(), "")


# The command line


def tune(*arguments):
    done = subprocess.run(
        [sys.executable, CH4 / "tune.py", *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def test_help_does_not_wait_for_torch():
    done = tune("--help")
    assert done.returncode == 0
    for option in ("--proposer", "--exhaustive", "--budget", "--export", "--compare", "--replay", "--load", "--arch"):
        assert option in done.stdout


@pytest.mark.parametrize("arguments", [
    ["--problem", "4096"], ["--problem", "0x1x1"], ["--arch", "sm_1"], ["--device", "cpu"], ["--budget", "0"],
    ["--exhaustive", "--evaluations", "3"], ["--plot", "x.txt"], ["--compare", "none", "none"], ["--load", "none"],
    ["--device", "cuda:99"],
    ["--replay", "none"], ["--proposer", "llm", "--evaluations", "1"], ["--export", "/none/x.json"],
])  # fmt: skip
def test_bad_input_is_one_line(arguments, monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(sys, "argv", ["tune.py", *arguments])
    assert command_line.main() == 2
    said = capsys.readouterr()
    assert (said.err.count("\n"), said.out) == (1, "")


def test_a_search_without_a_gpu(tmp_path, monkeypatch, capsys):
    """Searched, exported, drawn, gone on with, loaded."""
    problem = ["--problem", "64x64x64"]
    kept, best, drawn = (tmp_path / name for name in ("h.jsonl", "best.json", "h.png"))
    search = [*problem, "--history", kept, "--export", best, "--plot", drawn]

    def again(*arguments):
        """In this process, which has imported torch already: without the default device, which may be a GPU."""
        monkeypatch.setattr(sys, "argv", ["tune.py", "--arch", "sm_90", *map(str, arguments)])
        return command_line.main(), capsys.readouterr()

    done = tune(*search, "--evaluations", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("no GPU is timed, the score is a proxy (X-ray)")
    assert gemm.load(best) == show.best_of(history.read(kept))
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert [f"written: {path}" in done.stdout.splitlines() for path in (best, drawn)] == [True, True]
    assert done.stdout.count(" (default) ") == 1
    before = history.read(kept).trials
    assert "going on after 3" in again(*search, "--evaluations", 4)[1].out
    assert history.read(kept).trials[:3] == before
    assert len(history.read(kept).names) == 4
    status, said = again(*problem, "--load", best)
    assert (status, "it was found for" in said.out) == (0, False)
    assert "it was found for 64 x 64 x 64 float16" in again("--problem", "64x64x128", "--load", best)[1].out
    assert again("--compare", kept, kept)[1].err.endswith("were not tried\n")
    best.write_text(json.dumps({"configuration": {**gemm.load(best), "WARPS": 3}}))
    status, said = again(*problem, "--load", best)
    assert (status, said.err.count("\n")) == (2, 1)


@pytest.fixture
def sweep(tmp_path):
    kept = history.opened(tmp_path / "sweep.jsonl", ABOUT)
    scores = landscape(1)
    kept.add(tried(each, scores[name]) for name, each in space().valid.items())
    return kept


def test_a_sweep_is_replayed(sweep, capsys):
    args = Namespace(proposer="random", evaluations=None, seeds=4)
    assert sweeps.replay(sweep, args, quiet) == 0
    said = capsys.readouterr().out
    assert f"{len(space().valid) // 10} of {len(space().valid)} evaluations (10.0%), 4 seeds" in said
    default = next(trial for trial in sweep.trials if trial.configuration == sweep.about["default"])
    assert f"the default is {default.score / sweep.measured[0].score:.4f} of it" in said


def test_a_replay_says_when_a_search_was_near(sweep, capsys):
    args = Namespace(proposer="exhaustive", evaluations=len(space().valid), seeds=3)
    assert sweeps.replay(sweep, args, quiet) == 0
    whole = capsys.readouterr().out
    assert "worst 1.0000" in whole
    assert "at least 98%: 100% of the seeds" in whole
    _, trials = sweeps.recorded(sweep)
    near = sum(sweeps.share_of(trial.configuration, trials) >= sweeps.NEAR for trial in sweep.trials)
    first = [sweeps.shares_by_evaluation(space(), trials, "exhaustive", seed, len(trials)) for seed in range(3)]
    assert [(shares >= sweeps.NEAR).sum() for shares in first] == [near] * 3
    waits = sorted((shares >= sweeps.NEAR).argmax() + 1 for shares in first)
    assert f"evaluations until then: median {waits[1]}, worst {waits[2]}" in whole
    assert len({shares[0] for shares in first}) > 1, "each begins elsewhere"


def test_a_search_that_never_comes_near(sweep, capsys):
    trials = {trial.name: trial for trial in sweep.trials}
    away = next(
        seed for seed in range(50) if sweeps.shares_by_evaluation(space(), trials, "random", seed, 1)[0] < sweeps.NEAR
    )
    assert sweeps.replay(sweep, Namespace(proposer="random", evaluations=1, seeds=away + 1), quiet) == 0
    assert "worst never" in capsys.readouterr().out


def test_version_a_sweep_is_none(tmp_path):
    kept = history.opened(tmp_path / "h.jsonl", ABOUT)
    kept.add([tried(TINY, 1.0)])
    with pytest.raises(RecordError, match="no whole sweep"):
        sweeps.recorded(kept)


def test_a_search_is_compared_with_a_sweep(sweep, capsys):
    second = sweep.measured[1]
    found = History({**ABOUT, "proposer": "evolutionary"}, trials=[second])
    assert sweeps.compare(found, sweep, "cpu", quiet) == 0
    said = capsys.readouterr().out
    assert f"{second.score / sweep.measured[0].score:.4f}x" in said
    assert f"evaluations: 1 of {len(space().valid)}" in said
    with pytest.raises(OneLine, match="their problem differs"):
        sweeps.compare(History({**ABOUT, "problem": {}}), sweep, "cpu", quiet)


def test_the_table_has_the_default_wherever_it_ranks(capsys):
    scores = {name: 2.0 + i / 1000 for i, name in enumerate(space().valid)}
    kept = found_by(Shuffled(space(), 0), {**scores, name_of(gemm.DEFAULT): 1.0}, 24)
    show.print_report(kept, space(), make_console())
    rows = [line for line in capsys.readouterr().out.splitlines() if "stages" in line]
    assert len(rows) == show.MOST_ROWS + 1
    assert [" (default) " in row for row in rows] == [False] * show.MOST_ROWS + [True]


def test_the_report_says_the_noise_beside_the_win():
    kept = found_by(Shuffled(space(), 0), landscape(0), 24)
    one = {"ratio": 1.02, "low": 1.01, "high": 1.03}
    kept.final = {"configuration": TINY, "over_default": one, "repeat": {**one, "ratio": 1.0}, "over_torch": one,
                  "verdict": "unsure", "reason": ""}  # fmt: skip
    said = "\n".join(show.lines(kept, space()))
    assert "best over default: 1.0200x (1.0100 to 1.0300): unsure" in said
    assert "default over itself (A/A control): 1.0000x" in said
    assert "A/A control of 2 generations: the default was 1.0010 to 1.0010 of itself" in said
    assert "the compiler's registers a thread less those predicted: median +8, from +8 to +8" in said
    assert show.figure(kept).axes[0].get_xlabel() == "generation"
