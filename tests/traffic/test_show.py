"""Tables of counts: in units of the minimum work, without what no version has, and with what cannot be counted."""

from dataclasses import replace

from common.traffic import traffic_tables
from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Prediction
from common.traffic.versions import VersionTraffic

KERNEL = Kernel(
    "k", launches=2, programs=1000, read_bytes=600, written_bytes=400, read_sectors=100, written_sectors=25,
    distinct_bytes=2000, lanes=1000, masked=125,
)  # fmt: skip
COST = {"dram_bytes": 1000.0}
PLAIN = VersionTraffic("baseline", Traffic((KERNEL,)), cost=COST)


def table(*found, predicted=None, gpu="a GPU"):
    """The table as rows of cells by heading."""
    headings, rows = traffic_tables.rows(found, predicted or {}, gpu)
    return [dict(zip(headings, row, strict=True)) for row in rows]


def of(**fields):
    return replace(PLAIN, traffic=replace(PLAIN.traffic, **fields))


def test_bytes_are_in_units_of_the_cost():
    assert table(PLAIN) == [
        {
            "version": "baseline", "launches": "2", "programs": "1,000", "requested": "1.00x", "sectors": "4.00x",
            "distinct": "2.00x", "masked lanes": "12.5%",
        }
    ]  # fmt: skip
    assert traffic_tables.title("double", "count", [PLAIN]) == "double count, exact; 1.00x = 1000 B, the minimum work"


def test_where_no_cost_is_declared_they_are_bytes():
    (row,) = table(replace(PLAIN, cost={}))
    assert (row["requested"], row["sectors"], row["distinct"]) == ("1000 B", "3.906 KiB", "1.953 KiB")
    assert traffic_tables.title("double", "count", [replace(PLAIN, cost={})]) == "double count, exact"


def test_a_column_is_there_for_those_who_have_something_in_it():
    atomic = replace(KERNEL, atomics=96, max_atomics_per_address=32, flops={"fp32_flops": 4e9})
    other = VersionTraffic(
        "optimized/fused",
        Traffic((atomic,), {"h2d_bytes": 2048}, allocated_bytes=1 << 20, dram_bytes=1500, l2_bytes=1 << 20),
        cost=COST,
    )
    plain, row = table(PLAIN, other, predicted={"optimized/fused": Prediction(2e-3, {"memory": 2e-3})})
    assert row["version"] == "fused"
    expected = {
        "atomics (longest queue)": "96 (32)", "FLOPs": "4.00 GFLOP", "allocated": "1 MiB", "copied": "h2d 2 KiB",
        "DRAM, modelled L2": "1.50x", "predicted, a GPU": "2.00 ms (memory)",
    }  # fmt: skip
    assert {heading: row[heading] for heading in expected} == expected
    assert {plain[heading] for heading in expected} == {""}


def test_a_sample_says_so_and_how_far_it_may_be_off():
    sampled = replace(of(error=0.0123), sampled=True)
    assert table(sampled)[0]["sectors"] == "4.00x ±1.2%"
    assert "a sample of each grid's programs" in traffic_tables.title("double", "default", [sampled])
    assert traffic_tables.footnotes([sampled]) == ["±: the standard error of a sample's sectors"]
    no_difference = [replace(PLAIN, sampled=True)]
    assert "a sample" in traffic_tables.title("double", "default", no_difference)
    assert "exact" in traffic_tables.title("double", "default", [PLAIN])  # of torch's operations, by their shapes


def test_what_is_not_counted_has_no_row_but_a_reason():
    without = VersionTraffic("optimized/graph", reason="replays a captured graph")
    assert len(table(PLAIN, without)) == 1
    assert traffic_tables.footnotes([PLAIN, without]) == ["graph: not counted: replays a captured graph"]
    text = traffic_tables.markdown(
        "double", traffic_tables.rows([without], {}, ""), traffic_tables.footnotes([without])
    )
    assert text == "## double\n\n- graph: not counted: replays a captured graph\n"
