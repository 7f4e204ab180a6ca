"""Every liar is out for its own reason and shows no ratio anywhere; every honest twin is believed."""

import io
import json
import re
from itertools import chain

import pytest
from rich.console import Console
from samples import reason_of

from common.record.record_file import to_json
from common.show import console, heatmap
from liars import WAYS, answer, clock, state, test_alone, test_on_gpu, test_statistics
from liars.case import assert_believed, assert_out, rooms, rows_of, write_rooms
from liars.child import measure_quickly, measured
from tools import recorded_pages

FAMILIES = {**clock.FAMILIES, **state.FAMILIES, **answer.FAMILIES}
LIARS = {name: case for cases in FAMILIES.values() for name, case in cases.items()}
ROOMS, WHERE = rooms(FAMILIES)
NAMES = [*LIARS, *(pytest.param(name, marks=pytest.mark.skip(why)) for name, why in state.NOT_HERE.items())]
pytestmark = pytest.mark.xdist_group("liars")  # with pytest -n, one process: they are measured once for all tests
RATIO = re.compile(r"\d(\.\d+)?x\b|\d [mun]?s -> ")  # 1.25x, 2.50 ms -> 1.00 ms


@pytest.fixture(scope="module")
def record(machine, tmp_path_factory):
    """All of them, measured in one run."""
    with pytest.MonkeyPatch.context() as patch:
        return measured(write_rooms(ROOMS, tmp_path_factory.mktemp("liars")), patch, measure_quickly)


@pytest.fixture(scope="module")
def rows(record):
    return rows_of(record)


def test_every_way_to_lie_is_shown():
    of_the_harness = [vars(module).values() for module in (test_alone, test_statistics, test_on_gpu)]
    shown = {way for test in chain(*of_the_harness) for way in getattr(test, "ways", ())}
    assert {way for case in LIARS.values() for way in case.ways} | shown == set(WAYS)
    assert len(LIARS) == sum(map(len, FAMILIES.values()))  # no two of them share a name


@pytest.mark.parametrize("name", NAMES)
def test_a_liar_is_out_for_its_own_reason(name, rows):
    assert_out(LIARS[name], rows[WHERE[name, "liar"]])


@pytest.mark.parametrize("name", NAMES)
def test_its_honest_twin_is_believed(name, rows):
    assert_believed(rows[WHERE[name, "twin"]])


ONLY_ON_A_GPU = {"the current stream"}


def test_every_setting_that_is_watched_has_its_liar(rows):
    from common.checks.global_state import SETTINGS, _switches

    said = [reason_of(row) for row in rows.values() if reason_of(row).startswith("changes global state")]
    elsewhere = [state.LEAVES_SETTINGS[name].reason for name in state.NOT_HERE]
    on_a_gpu = [case.reason for case in test_on_gpu.LIARS.values()]
    lacking = {
        name for name in SETTINGS.keys() - _switches().keys() if not any(name in reason for reason in said + elsewhere)
    }
    assert lacking == ONLY_ON_A_GPU
    assert all(any(name in reason for reason in on_a_gpu) for name in lacking)


# No ratio of a liar appears anywhere that a reader looks. (Those of the twins do, so there are such to be seen.)


def lines_of(text, who):
    return [line for line in text.splitlines() if re.search(f"_{who}\\b", line)]


def test_a_liar_has_no_samples_in_the_record_and_nothing_is_compared_with_it(record):
    results = json.loads(to_json([record]))["results"]
    arms = [label for result in results for label in result.get("candidates", ())]
    compared = [row.versus for pair in record.pairs for row in pair.rows]
    assert len(lines_of("\n".join(arms), "twin")) == len(LIARS)
    assert lines_of("\n".join(arms + compared), "liar") == []
    assert not any(RATIO.search(reason_of(row)) for pair in record.pairs for row in pair.rows)


def test_the_console_shows_no_figure_of_a_liar(record):
    shown = io.StringIO()
    console.print_record(record, Console(file=shown, width=1000))
    said, of_twins = ("\n".join(lines_of(shown.getvalue(), who)) for who in ("liar", "twin"))
    assert len(re.findall(r"^  \w+_twin +\w+ +[\d.]+x .*s\b", of_twins, re.MULTILINE)) == len(LIARS)  # speedup ... time
    words = [line.split() for line in said.splitlines() if line.startswith("  ")]
    assert [len(line) for line in words] == [2] * len(LIARS)  # name, verdict
    assert {name for name, _ in words} == {f"{name}_liar" for name in LIARS}
    assert not RATIO.search(said)


def test_the_readmes_table_shows_no_figure_of_a_liar(record, tmp_path):
    text = recorded_pages.tables_by_device([(tmp_path / "here" / "liars.json", record)], lambda pair: True, [])
    assert len(RATIO.findall("\n".join(lines_of(text, "twin")))) == len(LIARS)
    assert not RATIO.search("\n".join(lines_of(text, "liar")))
    assert {tuple(line.split(" | ")[2:]) for line in lines_of(text, "liar")} == {("", "", " |")}


def test_the_plot_shows_twins_only(record):
    (axes,) = heatmap.figures_for(record)[""].axes
    bars = "\n".join(label.get_text() for label in axes.get_yticklabels())
    assert len(lines_of(bars, "twin")) == len(axes.patches) == len(LIARS)
    assert lines_of(bars, "liar") == []
