"""ch6/scaling.py: time and memory of a step against values worked out by hand."""

from dataclasses import replace

import pytest

FAST = 1e30  # bytes per second: takes no time


@pytest.fixture
def scaling(module):
    return module("scaling")


@pytest.fixture
def small(known):
    """2 layers of 4 h^2 + 8 h^2 = 12 * 64^2 parameters, and a table of 100 * 64."""
    return known.Model(2, 64, 4, 4, 256, 100, 8, "", gated=False, tied=True)


def gpu_of(known, alpha_beta, flops=1e12, links=None):
    free = {"send_recv": alpha_beta.Link(0.0, FAST)}
    return known.Gpu(80e9, flops, FAST, links or alpha_beta.Links(8, free, free))


@pytest.mark.parametrize(("stage", "expected"), [(0, 16.0), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)])
def test_zero_divides_16_bytes_a_parameter(scaling, stage, expected):
    assert scaling.state_bytes(1e9, stage, 8) == pytest.approx(expected * 1e9)


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [("gpt3-175b", 174.6, 174.6), ("llama3-8b", 8.03, 8.03), ("llama3-70b", 70.6, 70.6), ("llama3-405b", 405.8, 405.8),
     ("mixtral-8x7b", 46.7, 12.9)],
)  # fmt: skip
def test_parameters_are_those_of_the_papers_and_flops_are_6_for_each(known, name, billions, active):
    model = known.MODELS[name]
    assert model.parameters == pytest.approx(billions * 1e9, rel=1e-3)
    met = model.flops(0) / 6 + (0 if model.tied else model.table)  # looking up the embedding takes none
    assert met == pytest.approx(active * 1e9, rel=2e-3)
    assert model.flops(1000) - model.flops(0) == pytest.approx(12 * model.layers * model.hidden * 1000)


def test_gpt3_keeps_34_bytes_a_layer_as_korthikanti_counts(known, small):
    assert known.MODELS["gpt3-175b"].kept == small.kept == 34
    assert small.parameters == 2 * 12 * 64**2 + 6400
    assert small.flops(8, recompute=True) == pytest.approx(4 / 3 * (small.flops(8) - 6 * 6400) + 6 * 6400)


@pytest.mark.parametrize(("stages", "micros", "chunks"), [(4, 8, 1), (8, 8, 1), (4, 8, 2), (1, 8, 1)])
def test_the_bubble_is_p_minus_1_over_m_plus_p_minus_1(scaling, known, alpha_beta, small, stages, micros, chunks):
    model, layout = replace(small, layers=8), scaling.Layout(pipeline=stages, chunks=chunks)
    step = scaling.predict(model, layout, gpu_of(known, alpha_beta), stages, micros, 8)
    assert step.parts["bubble"] / step.seconds == pytest.approx((stages - 1) / (chunks * micros + stages - 1))
    flops = model.flops(8) * 8 * micros
    assert step.parts["compute"] == pytest.approx(flops / (stages * 1e12))


def test_data_parallel_ranks_exchange_two_bytes_a_parameter(scaling, known, alpha_beta, small, links):
    gpu, times = gpu_of(known, alpha_beta, links=links), []
    for stage in range(4):
        step = scaling.predict(small, scaling.Layout(stage=stage), gpu, 8, 16, 8)  # 2 micro-batches for each
        times.append(step.parts["data"])
        assert 0 <= step.hideable <= step.parts["data"] and step.parts["tensor"] == step.parts["bubble"] == 0
    bytes_sent = 7 / 8 * 2 * small.parameters / 100e9
    calls = 3  # 2 layers and the table; a ring of 8 is 7 us, and for these few bytes a tree of 3 rounds is faster
    assert times[0] == pytest.approx(calls * 6e-6 + 2 * 2 * small.parameters / 100e9)
    assert times[1] == pytest.approx(2 * (calls * 7e-6 + bytes_sent))
    assert times[2] == pytest.approx(3 * (calls * 7e-6 + bytes_sent))
    assert times[3] == pytest.approx(2 * 3 * (calls * 7e-6 + bytes_sent))


def test_tensor_ranks_sum_rows_four_times_a_layer(scaling, known, alpha_beta, small, links):
    step = scaling.predict(small, scaling.Layout(tensor=4), gpu_of(known, alpha_beta, links=links), 4, 3, 8)
    once = alpha_beta.seconds("all_reduce", 2 * 8 * 64, 4, 4, links)
    assert step.parts["tensor"] == pytest.approx(3 * 2 * 4 * once)
    again = scaling.predict(
        small, scaling.Layout(tensor=4, recompute=True), gpu_of(known, alpha_beta, links=links), 4, 3, 8
    )
    assert again.parts["tensor"] == pytest.approx(3 * 2 * 6 * once)


def test_tokens_travel_to_their_experts_four_times_a_layer(scaling, known, alpha_beta, small, links):
    model = replace(small, experts=8, active=2)
    step = scaling.predict(model, scaling.Layout(expert=8), gpu_of(known, alpha_beta, links=links), 8, 8, 8)
    once = 7 * 1e-6 + 7 / 8 * (2 * 2 * 8 * 64) / 100e9
    assert step.parts["expert"] == pytest.approx(2 * 4 * once)
    whole = scaling.predict(model, scaling.Layout(), gpu_of(known, alpha_beta, links=links), 8, 8, 8)
    assert whole.memory["state"] - step.memory["state"] == pytest.approx(16 * 7 / 8 * 2 * 8 * model.mlp)


def test_activations_of_a_pipeline_are_those_of_as_many_micro_batches_as_stages(scaling, small):
    def of(micros, **layout):
        return scaling.activation_bytes(small, scaling.Layout(**layout), micros, 8)

    layer, logits = 34 * 8 * 64, 4 * 8 * 100
    assert of(4) == 2 * layer + logits
    assert of(4, micro=3) == 3 * of(4)
    assert of(4, pipeline=2) == 2 * layer and of(1, pipeline=2) == layer + logits
    assert of(8, pipeline=2, tensor=4) == 2 * layer / 4
    assert of(4, recompute=True) == 2 * 2 * 8 * 64 + logits + layer


def test_a_strategy_takes_the_fastest_layout_that_fits(scaling, known):
    model, (gpu, _) = known.MODELS["llama3-8b"], known.gpu_of("h100", 0.5)
    for strategy in ("data", "ZeRO-3", "tensor", "pipeline", "any"):
        layouts = scaling.candidates(model, gpu, strategy)
        _, step = scaling.best(model, layouts, gpu, 64, 512, 8192)
        able = [each for each in layouts if not scaling.skip_reason(model, each, 64, 512)]
        steps = [scaling.predict(model, each, gpu, 64, 512, 8192) for each in able]
        fitting = [each.seconds for each in steps if each.bytes <= 0.9 * gpu.memory]
        expected = min(fitting) if fitting else None
        assert (step.seconds if step.bytes <= 0.9 * gpu.memory else None) == expected
        assert fitting or step.bytes == min(each.bytes for each in steps)
    assert not [each for each in scaling.candidates(model, gpu, "any") if each.expert > 1]


@pytest.mark.parametrize(
    ("layout", "reason"),
    [({"tensor": 3}, "64 GPUs cannot be divided"), ({"tensor": 64}, "32 heads cannot be divided among 64 GPUs"),
     ({"pipeline": 64}, "32 layers are too few"), ({"chunks": 2}, "only a pipeline"),
     ({"expert": 2}, "1 experts cannot be divided"), ({"micro": 3}, "512 sequences cannot be divided among 64")],
)  # fmt: skip
def test_a_layout_that_is_not_possible_has_a_reason(scaling, known, layout, reason):
    assert scaling.skip_reason(known.MODELS["llama3-8b"], scaling.Layout(**layout), 64, 512).startswith(reason)
