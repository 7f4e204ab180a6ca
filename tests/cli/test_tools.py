"""python -m tools: all maintainers' tools in one list, each with its options, and a mistake in one line."""

import ast

import pytest

from common.cli.arguments import parse
from common.pairs.pair import ROOT
from tools.__main__ import COMMANDS, main


def test_help_has_a_line_for_each_tool_and_each_has_a_help(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], *([file.split("/")[-1].removesuffix(".py")] for file in COMMANDS)):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0
        if not words:
            lines = capsys.readouterr().out.split("[OPTION]\n")[-1].splitlines()
    assert [line.split()[0] for line in lines] == [file.split("/")[-1].removesuffix(".py") for file in COMMANDS]
    assert all(len(line) <= 80 and line.endswith(".") for line in lines)


@pytest.mark.parametrize("file", COMMANDS)
def test_a_tool_has_what_the_command_calls(file):
    functions = [node for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)]
    (run,) = [node for node in functions if node.name == "run"]
    assert [argument.arg for argument in run.args.args] == ["args"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "python -m tools: the following arguments are required: COMMAND"),
        ("recrd", "python -m tools: argument COMMAND"),
        ("carry_records", "carry_records: the following arguments are required: revision"),
        ("carry_records HEAD --chapter 99", "carry_records: there is no chapter 99: there are 1"),
        ("carry_records no-such-revision", "carry_records: no-such-revision: "),
        ("random_sizes --seed a --chapter ch99", "random_sizes: there is no chapter 99: there are 1"),
        ("second_gpu abacus", "second_gpu: abacus: no datasheet of this name"),
        ("solutions no_such", "solutions: no exercise is called 'no_such'"),
        ("given_profiles ch8/slow_script", "given_profiles: ch8/slow_script gives no profile to its readers: "),
    ],
)
def test_a_mistake_is_one_line(words, said, capsys):
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


@pytest.mark.parametrize("text", ["3", "ch3"])
def test_a_chapter_is_named_by_its_number_or_its_folder(text):
    assert parse(["--chapter", text], "benchmark.py", "").chapter == 3
