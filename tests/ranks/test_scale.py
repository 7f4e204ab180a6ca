"""ch6/scale.py: tables, figure, numbers, predictions beside measurements, bad input."""

import json
import math

import pytest

from common.pairs.pair import ROOT


@pytest.fixture
def run(monkeypatch, capsys):
    """run(arguments): exit status, stdout, stderr of scale.py, in this process."""
    monkeypatch.syspath_prepend(str(ROOT / "ch6"))
    import scale

    def of(*arguments):
        monkeypatch.setattr("sys.argv", ["scale.py", *map(str, arguments)])
        status = scale.main()
        return status, *capsys.readouterr()

    return of


def test_tables_figure_and_numbers(run, tmp_path):
    files = ["--json", tmp_path / "s.json", "--plot", tmp_path / "s.png"]
    status, out, _ = run("--model", "mixtral-8x7b", "--gpus", "64,8", *files)
    told = json.loads((tmp_path / "s.json").read_text())
    assert status == 0 and (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert {row["strategy"] for row in told["rows"]} >= {"data", "ZeRO-3", "tensor", "pipeline", "expert", "any"}
    assert all(each in out for each in told["assumptions"]) and {row["gpus"] for row in told["rows"]} == {8, 64}
    for row in told["rows"]:
        assert row["least_s"] <= row["step_s"] == pytest.approx(math.fsum(row["parts_s"].values()))
        assert 0 < row["efficiency"][0] <= row["efficiency"][1] <= 1


def test_the_check_shows_steps_and_collectives(run, record, tmp_path):
    records = [record(tmp_path / f"{ranks}.json", ranks) for ranks in (2, 4)]
    status, out, _ = run("--check", *records, "--json", tmp_path / "c.json")
    told = json.loads((tmp_path / "c.json").read_text())
    assert status == 0 and "Narayanan 2021" in out and "2 ranks" in out
    firsts = {each["source"]: each for each in reversed(told["steps"])}
    assert all(each["predicted_s"] == pytest.approx(each["measured_s"]) for each in firsts.values())  # set the share
    assert len(told["collectives"]) == 6 * 3


def test_published_steps_are_predicted_as_the_readme_says(run, tmp_path):
    assert run("--check", "--json", tmp_path / "c.json")[0] == 0
    steps = json.loads((tmp_path / "c.json").read_text())["steps"]
    ratios = {(each["layout"]["stage"], each["gpus"]): each["predicted_s"] / each["measured_s"] for each in steps}
    assert all(abs(ratio - 1) < 0.02 for (stage, _), ratio in ratios.items() if stage < 3)
    assert 1 / 3 < ratios[3, 1536] < 0.4
    needs = [sum(each["memory_bytes"].values()) / 1e9 for each in steps if each["machine"] == "h100"]
    assert [round(each) for each in needs] == [89, 81]


@pytest.mark.parametrize(
    "arguments",
    [("--gpus", "8,x"), ("--share", "2"), ("--model", "gpt5"), ("--layout", "speed=9"), ("--layout", "tensor=3"),
     ("--layout", "tensor=8,tensor=4"), ("--plot", "figure.txt"), ("--json", "/nowhere/x.json"),
     ("--check", "--fit", "x.json"), ("--batch", "8", "--per-gpu", "1"),
     ("--batch", "7", "--layout", "stage=1")],
)  # fmt: skip
def test_bad_input_is_one_line_and_an_exit_status(run, arguments):
    status, out, err = run(*arguments)
    assert status == 2 and not out and err.startswith("scale.py: ") and err.count("\n") == 1


def test_a_file_of_another_kind_is_no_record_of_collectives(run, tmp_path):
    (tmp_path / "ch6.json").write_text(json.dumps({"schema": 3, "pairs": []}))
    status, _, err = run("--check", tmp_path / "ch6.json")
    assert status == 2 and "ch6.json: not a record of ch6/collectives.py" in err
