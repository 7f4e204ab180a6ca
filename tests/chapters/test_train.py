"""Chapter 5's training example: it learns, its answers turn with what it is given, and its command line."""

import sys
from functools import partial
from unittest.mock import Mock

import pytest
import signed_volume
import torch
import train as command_line

from common.pairs.pair import ROOT

pytestmark = pytest.mark.rest  # a program beside the pairs

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
PRODUCTS = pytest.mark.parametrize("product", ["sgp", "fcgp"])


@pytest.fixture(autouse=True)
def _one_thread():
    """Operations are this small; and a run of the program sets threads, too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def losses_of(device, steps, **how):
    return signed_volume.train(signed_volume.models(0, device, **how)[0], steps)


close = partial(pytest.approx, rel=1e-3)  # rounding grows from step to step


def test_a_volume_is_a_determinant_and_turns_its_sign_in_a_mirror():
    corner = torch.tensor([[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]]).float()
    assert signed_volume.volumes(corner).item() == pytest.approx(1 / 6)
    points, expected = signed_volume.bodies(300_000, 0)
    assert expected.square().mean().item() == pytest.approx(2 / 3, rel=0.05)
    assert points.mean(1).abs().max() < 1e-6
    q, handedness = signed_volume.turns(300_000, 1), torch.tensor([1, -1]).repeat(150_000)
    assert torch.allclose(signed_volume.volumes(points @ q.mT), expected * handedness, atol=1e-4)
    assert q.mean(0).abs().max() < 0.01  # no direction is preferred


@pytest.mark.parametrize("features", [1, 99])
@PRODUCTS
def test_the_plain_network_has_as_many_parameters(features, product):
    clifford, plain = map(signed_volume.size, signed_volume.models(features=features, product=product))
    assert 0.8 * clifford < plain <= clifford


@PRODUCTS
def test_layers_learn_what_the_plain_network_does_not(product):
    clifford, plain = signed_volume.models(0, DEVICE, features=8, product=product)
    tell = Mock()
    losses = signed_volume.train(clifford, 120, tell=tell)
    assert [each.args for each in tell.call_args_list] == [*enumerate(losses)]
    assert len(signed_volume.train(plain, 120)) == 120
    assert sum(losses[-16:]) < sum(losses[:16]) / 50  # 16 steps see every body once
    points, q = signed_volume.bodies(500, 1, DEVICE)[0], signed_volume.turns(500, 0, DEVICE)
    assert signed_volume.error(clifford, points) < 0.15
    assert signed_volume.error(clifford, points @ q.mT) == close(signed_volume.error(clifford, points))
    assert signed_volume.gap(clifford, points, q) < 1e-5
    assert signed_volume.error(plain, points @ q.mT) > 0.5


def test_a_bias_on_another_blade_shows():
    clifford, _ = signed_volume.models(0, DEVICE, features=4)
    points, q = signed_volume.bodies(50, 1, DEVICE)[0], signed_volume.turns(50, 0, DEVICE)
    assert signed_volume.gap(clifford, points, q) < 1e-5
    as_it_was = clifford.layers[0].forward
    clifford.layers[0].forward = lambda x: as_it_was(x) + 0.1  # on all blades
    assert signed_volume.gap(clifford, points, q) > 1e-2


@PRODUCTS
def test_both_forms_draw_one_curve(product):
    fused, eager = (losses_of(DEVICE, 16, features=5, product=product, eager=eager) for eager in (False, True))
    assert fused == close(eager)
    assert losses_of(DEVICE, 16, features=5, product=product) == fused  # the same seed, the same bits


@PRODUCTS
def test_the_kernels_draw_it_too(run_on, product):
    pytest.importorskip("triton")
    fused = run_on("cpu", losses_of, "cpu", 2, features=3, product=product)
    assert fused == close(losses_of("cpu", 2, features=3, product=product, eager=True))


# The command line


def run(capsys, monkeypatch, *arguments):
    """(status, stdout, stderr), in this process, which has imported torch already."""
    monkeypatch.setattr(sys, "argv", ["train.py", *map(str, arguments)])
    return command_line.main(), *capsys.readouterr()


def test_a_run_prints_losses_errors_and_times(tmp_path, monkeypatch, capsys):
    drawn, small = tmp_path / "loss.png", ("--device", "cpu", "--steps", 25, "--features", 4)
    status, out, err = run(capsys, monkeypatch, *small, "--plot", drawn)
    assert (status, err, "ms a step" in out) == (0, "", True)
    lines = out.splitlines()
    assert "316 parameters, 4 features, sgp by operators" in lines[0]
    steps = [line.split()[1] for line in lines if line.startswith("step")]
    assert (*steps[:2], steps[-1]) == ("0", "2", "24")
    errors = {line[:15].strip(): line.split()[-2:] for line in lines if line.endswith("%")}
    assert errors["Clifford layers"][0] == errors["Clifford layers"][1] != errors["plain network"][1]
    assert drawn.read_bytes().startswith(b"\x89PNG") and list(tmp_path.iterdir()) == [drawn]
    again = run(capsys, monkeypatch, *small)[1].splitlines()
    assert again[: len(lines) - 3] == lines[:-3]  # all but the times


@pytest.mark.parametrize("arguments", [
    ["--steps", "0"], ["--features", "1000000"], ["--device", "cuda:99"], ["--plot", "/none/x.png"],
])  # fmt: skip
def test_bad_input_is_one_line(arguments, monkeypatch, capsys):
    status, out, err = run(capsys, monkeypatch, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("train.py: ")


def test_a_loss_that_is_no_number_is_one_line():
    with pytest.raises(command_line.UserError, match="nan after 3 steps"):
        command_line.timed(lambda model, steps, seed, tell: [1.0, 2.0, float("nan")], None, 3, 0)


def test_the_readmes_code_runs(monkeypatch):
    code = (ROOT / "ch5/README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(ROOT)
    exec(compile(code, "ch5/README.md", "exec"), {})
