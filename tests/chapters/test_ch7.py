"""Chapter 7: machine code of its kernels, and generate.py. (Right answers: test_pairs.py.)"""

import importlib
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.record.outcome import Verdict
from common.record.result import PairResult, Record, Row
from common.traffic import count
from common.xray.occupancy import ARCHITECTURES
from common.xray.picture import xray

TILE = 32 * 4  # registers of 32 loads of 16 bytes, if all are on the way
SMALL = {"hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "width": 32, "inner": 96, "vocabulary": 256,
         "context": 64, "dtype": "float32", "device": "cpu"}  # fmt: skip


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", ["gemv", "gate_up"])
def test_a_barrier_keeps_all_loads_of_a_tile_before_their_sums(name):
    """Without it the compiler sorts them in between: the lesson of `loads_first`, also on generations to come."""
    pytest.importorskip("triton")
    (pair,) = discover(ROOT / "ch7", name)
    sorted_in = {"baseline", "optimized/rows"}
    seen = {(p.label, k.registers >= TILE) for p in xray(pair, ARCHITECTURES) for k in p.kernels}
    assert seen == {(v.label, v.label not in sorted_in) for v in pair.versions if v.has_kernel}


@pytest.fixture(scope="module")
def chapter():
    """What imports a module of the chapter."""
    sys.path.insert(0, str(ROOT / "ch7"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "ch7"))


@pytest.fixture
def decoders(chapter):
    """The baseline, the version with a fixed cache, and a first token."""
    torch.manual_seed(0)
    inputs = chapter("baseline_decode").inputs(**SMALL)
    names = {"baseline": "baseline_decode", "static": "optimized_decode_static"}
    make = chapter("decoding").decoder
    return {label: make(label, chapter(name), inputs) for label, name in names.items()}, inputs["token"]


def test_versions_choose_the_same_tokens_and_each_has_its_own_cache(decoders, chapter):
    decoding, (each, token) = chapter("decoding"), decoders
    chosen = {label: decoding.generate(decoder, token, 20, 30).tolist() for label, decoder in each.items()}
    assert chosen["baseline"] == chosen["static"] and len(set(chosen["static"])) > 1
    assert decoding.generate(each["static"], token, 20, 30).tolist() == chosen["static"]  # the rows are written again


def test_another_model_is_found_out(decoders, chapter):
    decoding, (each, _) = chapter("decoding"), decoders
    tokens = torch.arange(8) * 7
    assert decoding.compare(each["static"], each["baseline"], tokens, 20) == (pytest.approx(0, abs=1e-9), 0)
    other = decoding.Decoder("late", lambda token, position: each["static"].step(token=token, position=position - 1))
    divergence, wrong = decoding.compare(other, each["baseline"], tokens, 20)
    assert divergence > 1e-3 and wrong


def test_a_waterfall_adds_up(decoders, chapter):
    decoding, (each, token) = chapter("decoding"), decoders
    parts = decoding.waterfall(each["baseline"], token, 20, seconds=1e-3)
    assert sum(parts.values()) == pytest.approx(1000)
    assert {"products", "attention", "copies by cat", "Python"} <= parts.keys()


@pytest.mark.parametrize(("us", "says"), [(100.0, ""), (0.0, ""), (-250.0, "exceed its time by 25%")])
def test_parts_that_exceed_the_time_are_not_hidden(us, says, chapter):
    remark = chapter("decoding").excess({"products": 1000 - us, "Python": us}, seconds=1e-3)
    assert says in remark and bool(remark) == bool(says)


@pytest.mark.parametrize(("name", "beside"), [("baseline_decode", 10), ("optimized_decode_static", 14)])
@pytest.mark.parametrize("layers", [1, 4])
def test_a_layer_is_52_operations_in_16_bits(name, beside, layers, chapter):
    """So 22 layers are 1154 and 1158, from which the docstrings and the notebook compute."""
    size = SMALL | {"layers": layers, "dtype": "bfloat16"}
    assert count(chapter(name).run, **chapter("baseline_decode").inputs(**size)).total.launches == 52 * layers + beside


@pytest.fixture
def generate(chapter, monkeypatch, capsys):
    """generate(*words) -> the exit status of generate.py in this process, what it says, and its errors."""
    program = chapter("generate")
    monkeypatch.setattr(program, "use_device", lambda device: None)  # this process keeps its threads
    monkeypatch.setattr(sys, "path", [*sys.path])  # the program adds its folder

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["generate.py", *words])
        return program.main(), *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "huge"], "no size huge: choose one of default, cpu, large"),
        (["--tokens", "0"], "--tokens: at least 1"),
        (["--plot", "/no/folder/ladder.png", "--device", "cpu"], "ladder.png: cannot be written"),
        *(
            pytest.param(words.split(), said, marks=pytest.mark.rest)  # a child looks at the device first
            for words, said in {
                "--device cuda:99": "device cuda:99:",
                "--version other --device cpu": "there is none; here run baseline, static",
                "--version graph --device cpu": "--version graph: needs a GPU",
                "--tokens 2000 --device cpu": "--tokens 2000: size cpu has room for 1024",
            }.items()
        ),
    ],
)
def test_what_cannot_be_decoded_is_one_line(words, said, generate):
    status, out, errors = generate(*words)
    assert (status, out) == (2, "")
    assert len(errors.splitlines()) == 1 and said in errors


def test_the_least_times_of_five_gpus_follow_from_their_datasheets(generate):
    _, out, _ = generate("--predict")
    lines = out.splitlines()
    assert len(lines) == 6 and lines[0].startswith("a token reads 2.09 GB")
    rates = [float(line.split("TB/s")[0].split()[-1]) for line in lines[1:]]
    times = [float(line.split(" ms")[0].split()[-1]) for line in lines[1:]]
    assert [rate * ms for rate, ms in zip(rates, times, strict=True)] == pytest.approx([2.09] * 5, rel=5e-3)
    recorded = [line.partition("recorded ")[2].split(" ")[0] for line in lines[1:]]
    assert all(float(rate) < 1e3 / ms for rate, ms in zip(recorded, times, strict=True) if rate)


def test_beside_a_prediction_stands_the_fastest_recorded_version_of_the_present_code(chapter, monkeypatch):
    generate, (pair,) = chapter("generate"), discover(ROOT / "ch7", "decode")
    arms = {label: SimpleNamespace(median_s=s) for label, s in [("optimized/a", 0.002), ("optimized/b", 0.001)]}
    rows = [Row(label, "baseline", Verdict.FASTER, ratio=0.004 / arm.median_s) for label, arm in arms.items()]
    result = PairResult("ch7", "decode", "default", {}, source_hash(pair), rows, arms=arms)
    records = [
        ("", Record({"device": {"name": name}}, {}, [replace(result, source_hash=code)]))
        for name, code in [("one", result.source_hash), ("other", "changed since")]
    ]
    monkeypatch.setattr(generate, "chapter_records", lambda *_: records)
    assert generate.fastest_recorded(pair, "default") == {"one": ", recorded 1000 (b)"}
    assert not generate.fastest_recorded(pair, "large")


def test_transformers_gives_the_same_logits_and_writes_the_same_rows(chapter):
    """Also of other weights and caches later: it then reads and writes those."""
    pytest.importorskip("transformers")
    baseline = chapter("baseline_decode")
    for seed in range(2):
        torch.manual_seed(seed)
        inputs = baseline.inputs(**SMALL)
        history = {name: x.clone() for name, x in inputs.items() if name.startswith("cache")}
        for _ in range(2):
            caches = {name: inputs[name].clone() for name in history}
            logits = baseline.library_transformers(**inputs | history)
            torch.testing.assert_close(logits, baseline.run(**inputs | caches), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(history, caches, rtol=1e-4, atol=1e-4)
            inputs |= {"token": inputs["token"] + 1, "position": inputs["position"] - 1, **caches}
