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
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from unittest.mock import Mock

import pytest
import torch
from msgspec import structs

from common.isolation import worker
from common.pairs.pair import ROOT
from common.pairs.user_error import UserError
from common.record.files import RecordError
from common.record.outcome import WITH_SPEEDUP
from common.show.console import make_console
from common.stats import Estimate
from common.xray.occupancy import MACHINES

pytest.importorskip("triton")
import gemm
import tune as command_line
from search import generations, history, measure, model, show, sweeps
from search.examine import examine
from search.history import About, Final, History, Remark, Repeat, Trial
from search.proposers import SEEDED, Evolutionary, ProposerError, Shuffled
from search.space import ADDED, Problem, Space, name_of, predict

pytestmark = pytest.mark.rest  # a program beside the pairs

H100, A100 = MACHINES["sm_90"], MACHINES["sm_80"]
PROBLEM = Problem(4096, 4096, 4096, "float16", "leaky_relu")
TINY = {**gemm.DEFAULT, "BLOCK_M": 64, "BLOCK_N": 64, "WARPS": 4}
ABOUT = About("time", PROBLEM, H100, gemm.DEFAULT, "exhaustive", 0)
BY_EVOLUTION = structs.replace(ABOUT, proposer="evolutionary")


@cache
def space(problem=PROBLEM, machine=H100):
    return Space.of(problem, machine)


def quiet(what, fraction):
    assert 0 <= fraction <= 1


def no_bar():
    return nullcontext(quiet)


@cache
def landscape(seed):
    """A score for each configuration: from its values, from pairs of them, and a little of its own; one in 20 fails."""
    rng, scores = random.Random(seed), {}
    of = cache(lambda *values: abs(rng.gauss(0, 0.1)))
    for name, each in space().valid.items():
        values = sorted(each.items())
        effects = sum(map(of, values)) + sum(of(*pair) for pair in combinations(values, 2))
        scores[name] = None if rng.random() < 0.05 else math.exp(-effects - rng.random() * 0.02)
    return scores


def tried(configuration, score, generation=0):
    if score is None:
        return Trial(configuration, generation, "wrong", "element 3 of 9 is 0")
    found = {"registers": 200, "shared_bytes": 98_304, "spills": 0, "warps_on_an_sm": 8}
    predicted = {"registers": 192, "shared_bytes": 98_304}
    scores = score, score * 0.99, score * 1.01
    return Trial(configuration, generation, "measured", "", *scores, 1e-3, predicted, found)


def table(scores, dies_in=None):
    """What looks scores up, and may be killed."""

    def score(configurations, generation, tell):
        tell("looking", 0.5)
        if generation == dies_in:
            raise KeyboardInterrupt
        trials = [tried(each, scores[name_of(each)], generation) for each in configurations]
        return [*trials, Repeat(1.001, 0.998, 1.004)]

    return score


def searched(kept, proposer, scores, most=60, budget_s=math.inf, dies_in=None):
    generations.search(kept, space(), proposer, table(scores, dies_in), gemm.DEFAULT, most, budget_s, quiet)
    return kept


@pytest.fixture
def kept(tmp_path):
    return history.opened(tmp_path / "h.jsonl", ABOUT)


# The space


def test_the_space_holds_what_fits_and_says_of_the_rest_why():
    big = {**gemm.DEFAULT, "BLOCK_K": 128, "STAGES": 3}
    assert "294,912 bytes of shared memory a block, 232,448 are there" in space().problem_with(big)
    assert "registers" in space().problem_with({**gemm.DEFAULT, "WARPS": 4})
    assert space().problem_with(gemm.DEFAULT) == ""
    valid, pruned = space().valid.keys(), space().pruned.keys()
    assert (500 <= len(valid) <= 2500, valid & pruned) == (True, set())
    assert len(valid) + len(pruned) == math.prod(map(len, space().axes.values()))


but_for = partial(dict, gemm.DEFAULT)


def test_tiles_suit_the_problem_and_variants_the_machine():
    small, odd = (space(Problem(*shape, "float16", "none")).axes for shape in ((64, 96, 40), (1, 7, 9)))
    assert (small["BLOCK_M"], small["BLOCK_N"]) == ([16, 32, 64], [32, 64, 128])
    assert (odd["BLOCK_M"], odd["VARIANT"]) == ([16, 32, 64], ["pointers"])  # no descriptors of odd rows
    assert space(PROBLEM, A100).axes["VARIANT"] == ["pointers"]
    assert space().nearest(gemm.DEFAULT) == gemm.DEFAULT
    less = space(PROBLEM, MACHINES["sm_86"])
    assert not less.problem_with(less.nearest(gemm.DEFAULT))


# Compiled


def test_what_was_predicted_is_what_the_compiler_reports():
    trial, predicted = examine(PROBLEM, TINY, H100), predict(TINY, H100)
    assert trial.outcome == "measured"
    assert 0 < trial.low == trial.score == trial.high == trial.found["proxy"] < 1
    assert trial.found["shared_bytes"] == predicted.shared_bytes == 3 * (64 + 64) * 64 * 2
    assert abs(trial.found["registers"] - predicted.registers) < 32
    assert trial.found["tensor_instructions"] > 0 == trial.found["spills"]


def test_what_does_not_compile_or_fit_is_an_outcome():
    assert examine(PROBLEM, {**TINY, "VARIANT": "persistent"}, H100).outcome == "measured"  # descriptors compile too
    assert examine(PROBLEM, {**TINY, "WARPS": 3}, H100).outcome == "does not compile"
    trial, says = examine(PROBLEM, TINY, replace(H100, shared_bytes=32 << 10)), "49,152 bytes of shared memory a block"
    assert (trial.outcome, trial.reason) == ("out of resources", f"{says}, 31,744 are there")


# The kernel, in Triton's interpreter


def error_of(variant, m, n, k, activation, turned):
    torch.manual_seed(0)
    configuration = but_for(BLOCK_M=32, BLOCK_N=16, BLOCK_K=16, GROUP_M=2, VARIANT=variant)
    a, b = torch.randn(k, m).half().T if turned else torch.randn(m, k).half(), torch.randn(k, n).half()
    expected = getattr(torch.nn.functional, activation, lambda product: product)(a.double() @ b.double())
    found = gemm.matmul(a, b, configuration, activation)
    assert found.shape == expected.shape
    return float((found - expected).abs().max()) if found.numel() else 0.0


@pytest.mark.parametrize(("variant", "shape", "activation", "turned"), [
    ("pointers", (37, 29, 31), "leaky_relu", False), ("pointers", (5, 7, 0), "relu", False),
    ("pointers", (131, 67, 48), "none", True), ("descriptors", (37, 40, 56), "leaky_relu", False),
])  # fmt: skip
def test_the_kernel_multiplies(run_on, variant, shape, activation, turned):
    assert run_on("cpu", error_of, variant, *shape, activation, turned) < 0.02


# History


def test_a_history_is_read_as_it_was_written(kept):
    one = Estimate(1.0, 0.9, 1.1)
    kept.add(tried(gemm.DEFAULT, 1.0), tried(TINY, None), Repeat(1.0, 0.9, 1.1), Remark("what was refused"))
    kept.add(Final(TINY, one, one, "same", "", {"default": 1e-3}))
    again = history.opened(kept.path, ABOUT)
    assert again == kept
    assert [trial.outcome for trial in again.failures] == ["wrong"]


def test_recorded_histories_are_read():
    for path in (ROOT / "recorded").glob("*/ch4_s*.jsonl"):
        kept, text = history.read(path), path.read_text()
        lines = [text.count(f'"kind": "{kind}"') for kind in ("trial", "repeat")]
        assert [len(kept.trials), len(kept.of(Repeat))] == lines
        assert show.best_of(kept) == kept.final.configuration


def test_a_line_that_was_cut_off_is_dropped(kept):
    kept.add(tried(gemm.DEFAULT, 1.0), tried(TINY, 0.9))
    kept.path.write_text(kept.path.read_text()[:-40])
    again = history.opened(kept.path, ABOUT)
    assert [trial.name for trial in again.trials] == [name_of(gemm.DEFAULT)]
    again.add(tried(TINY, 0.9))
    assert len(history.read(kept.path).trials) == 2


def test_another_search_s_history_is_refused(kept):
    with pytest.raises(RecordError, match="of another search: its seed is 0, not 1"):
        history.opened(kept.path, structs.replace(ABOUT, seed=1))
    kept.path.write_text('{"kind": "search", "schema": 9}\n')
    with pytest.raises(RecordError, match="not the history of a search"):
        history.read(kept.path)


# Proposers and the loop


def test_evolution_finds_what_chance_does_not():
    def shares(kind):
        for seed, scores in enumerate(map(landscape, range(3))):
            found = searched(History(ABOUT), SEEDED[kind](space(), seed), scores, most := len(space().valid) // 20)
            assert len(found.trials) == len(found.names & space().valid.keys()) == most  # valid and new
            assert found.trials[0].configuration == gemm.DEFAULT
            yield found.measured[0].score / max(filter(None, scores.values()))

    evolved, drawn = sorted(shares("evolutionary")), sorted(shares("random"))
    assert evolved[1] >= 0.98
    assert sum(evolved) > sum(drawn)


def test_a_search_that_was_killed_goes_on_as_it_would_have(kept):
    on = partial(searched, proposer=Evolutionary(space(), 1), scores=landscape(0))
    whole = on(History(ABOUT))
    with pytest.raises(KeyboardInterrupt):
        on(kept, dies_in=2)
    again = history.opened(kept.path, ABOUT)
    assert len(again.trials) == 24
    on(again)
    assert [trial.name for trial in again.trials] == [trial.name for trial in whole.trials]


# Measured by the engine, on a CPU: one configuration by the kernel, in Triton's interpreter, the others by torch

FAULTS = """

import os

multiply, calls = matmul, []
OutOfResources = type("OutOfResources", (Exception,), {})


def matmul(a, b, configuration, activation):
    stages = configuration["STAGES"]
    if stages == 4:
        return multiply(a, b, configuration, activation)
    if stages == 5:
        os.kill(os.getpid(), 11)
    if stages in (6, 7):
        raise OutOfResources("shared memory") if stages == 6 else ValueError("no such thing")
    calls.append(stages)
    return (a @ b).relu() * (stages != 8) * (stages != 9 or len(calls) < 50)
"""


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """bench(default): this CPU in a GPU's place; what becomes of a configuration lies in its STAGES."""
    (tmp_path / "gemm.py").write_text(measure.GEMM.read_text() + FAULTS)
    monkeypatch.setattr(measure, "GEMM", tmp_path / "gemm.py")
    monkeypatch.setattr(measure, "survey_apart", lambda device: ({"kind": "cpu"}, {}))
    monkeypatch.setattr(generations, "examined", lambda _, these, *rest: [tried(each, 0.5) for each in these])
    problem = Problem(16, 16, 16, "float16", "relu")
    return lambda default=3: generations.Bench(problem, H100, staged(default), "cpu")


def staged(stages):
    return but_for(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, STAGES=stages)


def test_every_configuration_is_verified_and_timed_whatever_becomes_of_the_others(bench):
    *trials, control = bench().score([*map(staged, range(4, 10))], 0, quiet)
    expected = [
        ("crashed", "killed by SIGSEGV"), ("out of resources", "shared memory"),
        ("does not run", "ValueError: no such"),
        ("wrong", "at size check: element"), ("wrong", "in a timed round, against the baseline's: element"),
    ]  # fmt: skip
    for trial, (outcome, text) in zip(trials[1:], expected, strict=True):
        assert (trial.outcome, text in trial.reason, trial.score) == (outcome, True, 0), trial
    assert trials[0].outcome == "measured", trials[0].reason
    assert 0 < trials[0].low <= trials[0].score <= trials[0].high < 1  # it is interpreted
    assert 0 < control.low <= control.ratio <= control.high < math.inf


def test_the_best_is_measured_anew(bench, kept, monkeypatch):
    monkeypatch.setattr(generations, "FINAL_BLOCKS", measure.BLOCKS)
    kept.add(tried(staged(3), 1.0), tried(staged(8), 2.0))
    kept.add(*bench().final(kept, quiet))
    final = history.read(kept.path).final
    assert (final.configuration, final.verdict in WITH_SPEEDUP) == (staged(3), True)
    assert final.seconds.keys() == {name_of(staged(3)), "default", "torch"}
    assert all(found.low <= found.ratio <= found.high for found in (final.over_default, final.repeat, final.over_torch))


def test_a_default_that_is_wrong_ends_the_search(bench):
    with pytest.raises(worker.ChildFailed, match="the default configuration: wrong answer at size check: element"):
        bench(default=8).score([staged(3)], 0, quiet)


@pytest.mark.gpu
def test_on_a_gpu_what_is_wrong_gets_no_time():
    machine, problem = measure.machine_of("cuda:0"), Problem(2048, 2048, 2048, "float16", "relu")
    default = Space.of(problem, machine).nearest(gemm.DEFAULT)
    both = [default, {**default, "BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 128, "STAGES": 4}]
    good, bad, control = generations.Bench(problem, machine, default, "cuda:0").score(both, 0, quiet)
    assert (good.outcome, bad.outcome) == ("measured", "out of resources")
    assert good.low <= good.score <= good.high
    assert control.low <= control.ratio <= control.high


# A model behind a server that speaks the protocol


def said(**message):
    return json.dumps({"choices": [{"message": message}]})


@pytest.fixture
def serve(monkeypatch):
    """serve(answer, ...): what is asked of a server that gives these: a text, (status, body), seconds of silence."""
    asked, left = [], []

    class Handler(BaseHTTPRequestHandler):
        log_message = Mock()  # nowhere

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], body))
            answer = left.pop(0)
            if isinstance(answer, float):
                return time.sleep(answer)
            status, reply = answer if isinstance(answer, tuple) else (200, said(content=answer))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")  # for a redirection
            self.end_headers()
            return self.wfile.write(reply.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()  # looked at every 0.01 s
        named(monkeypatch, f"http://127.0.0.1:{server.server_port}/v1/")
        yield lambda *answers: left.extend(answers) or asked
        server.shutdown()


def named(monkeypatch, url):
    for name, value in {"BASE_URL": url, "API_KEY": "the key", "MODEL": "a model"}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)


def proposal(*configurations):
    return json.dumps({"configurations": configurations})


def proposed(kept, count, about=""):
    return model.Model(space(), about, 1.0).propose(kept, count)


def test_a_model_proposes(serve):
    kept = History(ABOUT, [tried(gemm.DEFAULT, 1.0), tried({**TINY, "STAGES": 4}, None)])
    asked = serve(proposal(TINY))
    assert proposed(kept, 4, "a product") == [TINY]
    ((path, key, body),) = asked
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer the key", "a model")
    texts = "a product", "wrong (element 3 of 9 is 0)", "Propose 4"  # a failure, too, is told
    assert [text for text in texts if text not in body["messages"][0]["content"]] == []


@pytest.mark.parametrize(("answer", "says"), [
    ("Here you are: {}", "the answer is not JSON alone"), ("[]", 'must be {"configurations"'),
    ((200, "[]"), "not that of a chat"), ((500, "oh"), "status 500"), ((302, ""), "status 302"), (1.5, "within 1 s"),
    ('{"configurations": [7]}', "no proposal could be tried"),
    ((200, said(content=None, refusal="I would rather not")), "the model refused: I would rather not"),
])  # fmt: skip
def test_a_useless_answer_is_told_to_the_model_and_asked_again(serve, answer, says):
    kept, asked = History(ABOUT), serve(answer, proposal(TINY))
    assert proposed(kept, 2) == [TINY]
    assert says in kept.of(Remark)[-1].text and says in asked[1][2]["messages"][0]["content"]


def test_what_is_wrong_with_one_proposal_does_not_cost_the_others(serve):
    kept = History(ABOUT, [tried(gemm.DEFAULT, 1.0)])
    serve(proposal({**TINY, "WARPS": 5}, {"WARPS": 4}, gemm.DEFAULT, but_for(WARPS=4), TINY, TINY))
    assert proposed(kept, 6) == [TINY]
    texts = ("WARPS must be one of 4, 8", "exactly the keys", ": tried before", "would spill")
    said = zip(kept.of(Remark), texts, strict=True)
    assert all(text in remark.text for remark, text in said)


def test_a_model_that_gives_nothing_ends_the_search(serve):
    asked = serve(*["nothing"] * 3)
    with pytest.raises(ProposerError, match="3 times in a row; the last time: the answer is not JSON"):
        proposed(History(ABOUT), 2)
    assert len(asked) == 3


def test_a_model_must_be_there_and_named(monkeypatch):
    named(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(ProposerError, match="cannot be reached"):
        proposed(History(ABOUT), 2)
    monkeypatch.delenv("OPENAI_MODEL")
    with pytest.raises(UserError, match="OPENAI_MODEL must be set"):
        proposed(History(ABOUT), 2)


# The command line


def tune(*arguments):
    command = [sys.executable, ROOT / "ch4/tune.py", *map(str, arguments)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def here(monkeypatch, capsys):
    """here(*arguments): (status, what it says), in this process, which has imported torch."""

    def of(*arguments):
        monkeypatch.setattr(sys, "argv", ["tune.py", *map(str, arguments)])
        return command_line.main(), capsys.readouterr()

    return of


@pytest.mark.parametrize("arguments", [
    ["--problem", "0x1x1"], ["--device", "cuda:99"], ["--exhaustive", "--evaluations", "3"],
    ["--compare", "none", "none"], ["--load", "none"], ["--proposer", "llm", "--evaluations", "1"],
    ["--export", "/none/x.json"],
])  # fmt: skip
def test_bad_input_is_one_line(arguments, monkeypatch, here):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    status, text = here(*arguments)
    assert (status, text.err.count("\n"), text.out) == (2, 1, "")


def test_a_search_without_a_gpu(tmp_path, monkeypatch, here):
    """Searched, exported, drawn; then, with what the compiler would say known, gone on with and loaded."""
    kept, best, drawn = (tmp_path / name for name in ("h.jsonl", "best.json", "h.png"))
    search = ["--problem", "64x64x64", "--history", kept, "--export", best, "--plot", drawn]
    done = tune(*search, "--evaluations", 2)
    assert done.returncode == 0, done.stderr
    lines, before = done.stdout.splitlines(), history.read(kept)
    assert lines[0].endswith("no GPU is timed, the score is a proxy (X-ray)")
    assert {f"written: {path}" for path in (best, drawn)} <= {*lines}
    assert done.stdout.count(" (default) ") == 1
    assert gemm.load(best) == show.best_of(before)
    assert drawn.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(generations, "examined", lambda _, these, *rest: [tried(each, 1e-9) for each in these])
    again = partial(here, "--arch", "sm_90")
    assert "going on after 2" in again(*search, "--evaluations", 4)[1].out
    after = history.read(kept)
    assert (after.trials[:2], len(after.names)) == (before.trials, 4)
    status, loaded = again("--problem", "64x64x64", "--load", best)
    assert (status, "it was found for" in loaded.out) == (0, False)
    assert "it was found for 64 x 64 x 64 float16" in again("--problem", "64x64x128", "--load", best)[1].out
    assert again("--compare", kept, kept)[1].err.endswith("were not tried\n")
    best.write_text(json.dumps({"configuration": {**gemm.load(best), "WARPS": 3}}))
    status, refused = again("--problem", "64x64x64", "--load", best)
    assert (status, refused.err.count("\n")) == (2, 1)


@pytest.fixture
def sweep(kept):
    kept.add(*(tried(space().valid[name], score) for name, score in landscape(1).items()))
    return kept


def replayed(sweep, capsys, proposer, evaluations, seeds):
    """What is said of the sweep's replay."""
    assert sweeps.replay(sweep, Namespace(proposer=proposer, evaluations=evaluations, seeds=seeds), no_bar) == 0
    return capsys.readouterr().out


def test_a_sweep_is_replayed(sweep, capsys):
    found = replayed(sweep, capsys, "random", None, 4)
    assert f"{len(space().valid) // 10} of {len(space().valid)} evaluations (10.0%), 4 seeds" in found
    default = landscape(1)[name_of(gemm.DEFAULT)] / sweep.measured[0].score
    assert f"the default is {default:.4f} of it" in found


def of_older_space(sweep):
    """The sweep without the values that axes have got since."""
    known = Space.of(PROBLEM, H100, ADDED).valid
    return replace(sweep, lines=[trial for trial in sweep.trials if trial.name in known])


def test_a_sweep_of_an_older_space_is_replayed_in_that_space(sweep, capsys):
    old = of_older_space(sweep)
    found = replayed(old, capsys, "evolutionary", 30, 2)
    assert found.startswith(f"the sweep is of an older space: without WARPS 16, 1344 of {len(space().valid)}\n")
    assert "30 of 1344 evaluations" in found
    for path in (ROOT / "recorded").glob("*/ch4_sweep.jsonl"):
        older, trials = sweeps.recorded(history.read(path))
        assert older.valid.keys() <= trials.keys()
    old.lines.pop()
    with pytest.raises(RecordError, match="no whole sweep: 757 of 2100 were not tried"):
        sweeps.recorded(old)


def test_a_search_is_compared_with_a_sweep(sweep, capsys):
    second = sweep.measured[1]
    found = History(BY_EVOLUTION, [second])
    assert sweeps.compare(found, sweep, "cpu", no_bar) == 0
    text, ratio = capsys.readouterr().out, second.score / sweep.measured[0].score
    assert f"{ratio:.4f}x" in text and f"evaluations: 1 of {len(space().valid)}" in text
    with pytest.raises(UserError, match="their problem differs"):
        sweeps.compare(History(structs.replace(ABOUT, problem=replace(PROBLEM, m=1))), sweep, "cpu", no_bar)


def test_the_report_says_the_noise_beside_the_win(monkeypatch, capsys):
    kept = searched(History(ABOUT), Shuffled(space(), 0), landscape(0), 24)
    one = Estimate(1.02, 1.01, 1.03)
    kept.add(Final(TINY, one, replace(one, ratio=1.0), "unsure", "", {}, one))
    monkeypatch.setenv("COLUMNS", "200")
    show.print_report(kept, space(), make_console())
    report = capsys.readouterr().out
    texts = [
        "best over default: 1.0200x (1.0100 to 1.0300): unsure", "default over itself (A/A control): 1.0000x",
        "A/A control of 2 generations: the default was 1.0010 to 1.0010 of itself",
        "the compiler's registers a thread minus those predicted: median +8, from +8 to +8",
        "registers spill, against the prediction, in 0 of ",
    ]  # fmt: skip
    assert [text for text in texts if text not in report] == []
    assert show.figure(kept).axes[0].get_xlabel() == "generation"
