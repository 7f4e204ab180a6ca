"""What is said of versions whose times are known: naps. (Nothing else may run meanwhile.)"""

from itertools import pairwise

import pytest
from samples import HONEST, notes_of, version, write_pair

from common import stats
from common.engine import runner
from common.pairs.pair import discover
from common.record.decision import decide
from common.record.record_file import load_record, save_record

pytestmark = pytest.mark.alone

SLEEPS = {name: f"import time\ntime.sleep({ms}e-3)\n{HONEST}" for name, ms in {"slow": 6, "base": 3, "fast": 1}.items()}
LIBRARIES = """
def library(x, w_shift): return torch.add(w_shift, x, alpha=2)
def library_wrong(x, w_shift): return 2 * x
def library_dead(x, w_shift): raise RuntimeError("no kernel image")
def cost(x, w_shift): return {"dram_bytes": 2 * x.nbytes}
"""


@pytest.fixture(scope="module")
def measured(machine, tmp_path_factory):
    """One pair with known sleeps: its record, as it comes out of its file, and all that was reported meanwhile."""
    folder, seen = tmp_path_factory.mktemp("measured"), []
    in_tf32 = 'PRECISION = "tf32"\ndef library_tf32(x, w_shift): return torch.add(w_shift, x, alpha=2)'
    faster, slower = version(SLEEPS["fast"], extra=in_tf32), version(SLEEPS["slow"], extra='VERSUS = "faster"')
    write_pair(folder, "naps", {"faster": faster, "slower": slower}, version(SLEEPS["base"], extra=LIBRARIES))
    limits = {"dram_bytes": {"measured": 2 * 4 * 4096 / 0.5e-3, "datasheet": None, "how": "", "source": ""}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: (machine, limits))
        say = {"on_progress": lambda *said: seen.append(said[2]), "on_record": seen.append}
        found = runner.run_pairs(discover(folder), device="cpu", fast=True, **say)
    save_record(found, folder / "r.json")
    return load_record(folder / "r.json"), seen


def test_planted_ratios_are_found(measured):
    rows = {(row.variant.removeprefix("optimized/"), row.versus): row for row in measured[0].pairs[0].rows}
    said = [("faster", "baseline"), ("slower", "baseline"), ("slower", "optimized/faster")]
    assert {key: row.verdict for key, row in rows.items()} == {key: key[0] for key in said}
    assert 1.5 < rows["faster", "baseline"].ratio < 3.1  # 3 ms over 1 ms, and what a nap is too long
    assert 0.45 < rows["slower", "baseline"].ratio < 0.8
    assert rows["slower", "optimized/faster"].ratio < rows["slower", "baseline"].ratio
    assert {row.precision for key, row in rows.items() if key[0] == "faster"} == {"tf32"}


def test_libraries_are_arms_and_a_wrong_one_is_a_note(measured):
    for row in measured[0].pairs[0].rows:
        assert row.vs_library["library"]["ratio"] < 1  # it takes no nap
        assert any(note.startswith("library/wrong: wrong answer") for note in notes_of(row))
        assert any(note.startswith("library/dead: RuntimeError: no kernel image") for note in notes_of(row))


def test_a_library_of_a_lower_precision_is_compared_with_variants_of_that_precision_alone(measured):
    rows = {row.variant: {name: of.get("precision", "") for name, of in row.vs_library.items()}
            for row in measured[0].pairs[0].rows}  # fmt: skip
    assert rows == {"optimized/slower": {"library": ""}, "optimized/faster": {"library": "", "library/tf32": "tf32"}}


def test_every_verdict_can_be_computed_again_from_the_samples(measured):
    (pair,) = measured[0].pairs
    seconds = {label: arm.seconds for label, arm in pair.arms.items()}
    assert stats.noise_floor(seconds["baseline"], seconds["control"]) == pytest.approx(pair.noise_floor)
    for row in pair.rows:
        again = stats.estimate(seconds[row.versus], seconds[row.variant])
        assert (again.ratio, (again.low, again.high)) == (pytest.approx(row.ratio), pytest.approx(row.interval))
        alone = (pair.arms[label].alone for label in (row.versus, row.variant))
        assert decide(again, len(pair.orders), pair.noise_floor, *alone).verdict == row.verdict
        library = stats.estimate(seconds["library"], seconds[row.variant])
        assert library.ratio == pytest.approx(row.vs_library["library"]["ratio"])
    for arm in pair.arms.values():
        assert stats.overall_median(arm.seconds) == pytest.approx(arm.median_s)


def test_every_round_runs_every_arm_once_in_balanced_order(measured):
    (pair,) = measured[0].pairs
    assert len(pair.orders) >= 6
    for block in pair.orders:
        assert all(sorted(order) == sorted(pair.arms) for order in block)
        assert all(second == [*first[1:], first[0]] for first, second in pairwise(block))
    assert len({tuple(block[0]) for block in pair.orders}) > 1  # and it is drawn anew
    for arm in pair.arms.values():
        assert [len(block) for block in arm.seconds] == [len(block) for block in pair.orders]


def test_each_time_stands_beside_its_limit(measured):
    (pair,) = measured[0].pairs
    assert (pair.limit_s, pair.limit_by) == (pytest.approx(0.5e-3), "dram_bytes")
    assert pair.cost == {"dram_bytes": 2 * 4 * 4096}
    for arm in pair.arms.values():
        assert arm.of_limit == pytest.approx(0.5e-3 / arm.median_s)
        assert arm.of_datasheet is None


def test_progress_goes_from_loading_over_checks_and_pilot_to_blocks(measured):
    *stages, record = measured[1]
    said = list(dict.fromkeys(stage.split()[0] for stage in stages))
    assert said == ["start", "load", "check", "pilot", "block", "alone"]
    assert [pair.name for pair in record.pairs] == ["naps"]


def test_inputs_are_drawn_anew_for_every_block(measured):
    (pair,) = measured[0].pairs
    assert len(set(pair.seeds)) == len(pair.seeds) > len(pair.orders)
