"""Statistics of samples, errors and memory as a table; averages of classes of sizes; peak memory in a README."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from samples import arm, pair_result, record, rows_of

from common.record.result import Row
from common.show.layout import layout, markdown
from common.show.stats_table import HEADINGS, stats_entries, stats_remarks
from common.show.summary import class_averages
from tools import readmes

JUDGED = {"max_error": 1.3e-6, "rms_error": 2e-7, "peak_bytes": 64 << 20}


def cells(*pairs):
    """(title, name -> cells) of each pair."""
    found = []
    for entry in stats_entries(record(*pairs)):
        if entry.is_title:
            found.append((entry.name, {}))
        else:
            found[-1][1][entry.name] = entry.cells
    return found


def test_times_are_those_of_all_samples_in_one_unit():
    samples = [[1e-3, 3e-3], [2e-3, 6e-3]]
    arms = {"baseline": arm(1.5, seconds=[[1.5]]), "optimized/b": arm(2.5e-3, seconds=samples), "control": arm(1.5)}
    ((title, lines),) = cells(pair_result(arms=arms))
    assert title == "double, in ms" and list(lines) == ["baseline", "b"], "the control is no candidate"
    assert lines["baseline"] == {"n": "1", "mean": "1500", "min": "1500", "max": "1500"}, "one sample has no deviation"
    sd = np.std([1, 3, 2, 6], ddof=1)
    assert lines["b"] == {"n": "4", "mean": "3.00", "sd": f"{sd:.1f}", "min": "1.00", "max": "6.00"}


def test_errors_memory_and_host_time_stand_where_they_are_known():
    arms = {
        "baseline": arm(**JUDGED, host_s=2e-5),
        "optimized": arm(max_error=0.0, rms_error=0.0, peak_bytes=0),
        "yardstick/copy": arm(peak_bytes=3 << 30),
    }
    ((title, lines),) = cells(pair_result(size="large/8", arms=arms))
    assert title == "double large/8, in ms"
    shown = [{heading: line.get(heading) for heading in HEADINGS[5:]} for line in lines.values()]
    assert shown == [
        {"max err": "1.3e-06", "RMS err": "2.0e-07", "peak": "64 MiB", "host": "0.0200"},
        {"max err": "0", "RMS err": "0", "peak": "0", "host": None},
        {"max err": None, "RMS err": None, "peak": "3 GiB", "host": None},
    ]
    assert list(lines)[-1] == "ceiling/copy"


def test_nothing_is_missed_in_a_new_record_and_a_run_of_checks_has_no_table():
    assert stats_remarks(record(pair_result(arms={"baseline": arm(**JUDGED)}), pair_result(arms={}))) == []
    untimed = record(pair_result(arms={}, rows=[Row("optimized", "baseline", "verified")]))
    assert (stats_entries(untimed), stats_remarks(untimed)) == ([], ["no statistics: nothing was timed"])
    assert (layout(HEADINGS, [], 80), markdown(HEADINGS, [])) == ([], "")


# Averages


def result(name, size, ratio, of_limit, library=None, verdict="faster", precision=""):
    """A pair whose variant `b` is the faster of two, with its share of the limit and library time / variant time."""
    against = {"library": {"ratio": library, "interval": None}} if library else {}
    rows = [Row("optimized", "baseline", "same", None, 1.0, None),
            Row("optimized/b", "baseline", verdict, "", ratio, None, against, precision)]  # fmt: skip
    arms = {"optimized": arm(of_limit=0.01), "optimized/b": arm(of_limit=of_limit)}
    return pair_result(name, size=size, rows=rows, arms=arms)


def test_averages_are_of_the_best_versions_by_class():
    found = record(
        result("a", "xlarge/1", 2.0, 0.5), result("a", "large/1", 2.0, 0.9, 4.0), result("a", "large/2", 2.0, 0.7, 1.0),
        result("b", "large/1", 2.0, None, 0.25), result("a", "cpu", 3.0, None), result("a", "own", 2.0, 0.004),
        result("c", "large/1", None, 0.1, verdict="too short"),  # it may be the best of c
    )  # fmt: skip
    assert class_averages(found) == [
        "default, best versions of 1 pair: no limit and no library",
        "large, best versions of 2 pairs at 3 sizes: mean 80 % of the limit (of 2), geometric mean 1.00x vs library",
        "xlarge, best versions of 1 pair: mean 50 % of the limit",
        "own, best versions of 1 pair: mean 0.4 % of the limit",
    ]


def test_a_version_of_another_precision_is_not_the_best():
    assert class_averages(record(result("a", "default", 9.0, 0.9, 4.0, precision="tf32"))) == [
        "default, best versions of 1 pair: mean 1 % of the limit"
    ]
    assert class_averages(record(pair_result(rows=[], arms={}))) == []


# Peak memory


@pytest.fixture
def table(monkeypatch):
    """table(*results): the rows between a README's markers, of a chapter with these results."""
    functions = {"a": ["library_source"], "b": ["library_tf32"], "none": ["library"]}
    pairs = [SimpleNamespace(name=name, versions=[SimpleNamespace(functions=of)]) for name, of in functions.items()]
    monkeypatch.setattr(readmes, "discover", lambda folder: pairs)
    monkeypatch.setattr(
        readmes.store, "current_filter", lambda pairs: lambda pair: pair.name in [of.name for of in pairs]
    )

    def made(*results):
        recorded = [("r.json", record(*results))] if results else []
        monkeypatch.setattr(readmes.store, "recorded_sizes", lambda chapter, problems: recorded)
        text = readmes.fill_in_tables(f"{readmes.MEMORY.format('ch5')}\nold\n{readmes.END}")
        assert "old" not in text
        return rows_of(text)[1:], text.splitlines()[-2]

    return made


def test_peak_memory_is_compared_with_the_sources_formula(table):
    def sized(name, size, peak, source=None, label="library/source", precision=""):
        pair = result(name, size, 2.0, 0.5, precision=precision)
        versions = {label: replace(each, peak_bytes=peak) for label, each in pair.arms.items()}
        return replace(pair, arms={**versions, **({label: arm(peak_bytes=source)} if source else {})})

    mib = 1 << 20
    rows, end = table(
        sized("a", "default", 64 * mib), sized("a", "sweep/8", 64 * mib),
        sized("a", "sweep/16", 64 * mib, 80 * mib), sized("b", "default", None),
        sized("b", "2d/8", 96 * mib, 64 * mib, "library/tf32", "tf32"), sized("none", "default", mib, 2 * mib),
    )  # fmt: skip
    assert rows == [
        ["a", "default", "b", "64 MiB", "not recorded", ""],
        ["a", "sweep/16", "b", "64 MiB", "80 MiB `library/source`", "20 %"],
        ["b", "2d/8", "b", "96 MiB", "64 MiB `library/tf32`", "-50 %"],
    ]
    assert end == "</details>", "nothing is missing"
    assert table(sized("a", "default", mib, 2 * mib))[1] == "Not recorded: b."
    assert table() == ([], readmes.NOTHING)
