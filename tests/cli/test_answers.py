"""Figures in prose, and the answers to the docstrings' questions, are what is recorded."""

import json
import re

import pytest
from samples import pair_result, record, version, write_pair

from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.pairs.user_error import UserError
from common.record import profile_file
from common.record.outcome import Verdict
from common.record.profile_file import About, Event, Profile
from common.record.result import Row
from common.record.store import keep_record
from common.show import quoted_figures
from tools import answers_page

PLAIN = version(sizes={"check": {"n": 127}, "default": {"n": 8}})
ASKING = PLAIN.replace('element."""', 'element.\n\nProblem: slow.\n\nPredict: how\nmuch faster?\n"""')
CHAPTERS = [path.parent.name for path in sorted(ROOT.glob("ch[0-9]*/ANSWERS.md"))]  # test_skeletons names one without


def forget():
    """What is read of records is read once: not in a test that changes them."""
    for remembered in (quoted_figures._results, quoted_figures._is_current, quoted_figures._profile_fields):
        remembered.cache_clear()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """course(text of answers.toml, **fields of the result): a chapter of one pair that asks, recorded; its folder."""
    for module in (answers_page, quoted_figures):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    forget()
    write_pair(tmp_path / "ch1", "double", ASKING, PLAIN)

    def keep(text="", **fields):
        (pair,) = discover(tmp_path / "ch1")
        result = pair_result(size="default", **{"source_hash": source_hash(pair), **fields})
        keep_record(record(result), tmp_path / "recorded")
        (tmp_path / "ch1" / "answers.toml").write_text(text)
        return tmp_path / "ch1"

    yield keep
    forget()


QUOTED = {"optimized: ratio": "2.00x", "optimized: time": "1.00 ms", "baseline: time": "2.00 ms"}


def test_quoted_figures_are_made_anew(course):
    course()
    for what, says in {**QUOTED, "optimized: verdict": "faster"}.items():
        link = f'a [{{}}](/recorded/nvidia_h200/ch1.md "double {what}") b'
        assert quoted_figures.fill_in_figures(link.format("7x")) == link.format(says)
        in_notebook = json.dumps(link)  # as its file has it
        assert quoted_figures.fill_in_figures(in_notebook.format("7x")) == in_notebook.format(says)


def test_a_figure_of_a_pair_that_has_changed_is_stale(course):
    course(source_hash="another")
    assert quoted_figures.figure("nvidia_h200", "ch1", "double optimized: ratio") == "stale"


def test_a_figure_of_what_could_not_be_timed_is_its_verdict(course):
    course(rows=[Row("optimized", "baseline", Verdict.TOO_SHORT)])
    assert quoted_figures.figure("nvidia_h200", "ch1", "double optimized: ratio") == "too short"


@pytest.mark.parametrize("title", ["twice optimized: ratio", "twice baseline: time", "double optimized: ratio at small",
                                   "double fused: limit", "double fused vs optimized: verdict"])  # fmt: skip
def test_a_figure_of_a_pair_and_variant_without_a_record_is_not_recorded_yet(title, course, tmp_path):
    """A new pair; a new variant of a pair whose rows were carried; a size that was not measured."""
    sized = {"sizes": {"check": {"n": 127}, "default": {"n": 8}, "small": {"n": 4}}}
    write_pair(tmp_path / "ch1", "twice", ASKING, PLAIN)
    write_pair(tmp_path / "ch1", "double", version(**sized), version(**sized))
    (tmp_path / "ch1/optimized_double_fused.py").write_text(version(extra='VERSUS = ""', **sized))
    double = next(pair for pair in discover(tmp_path / "ch1") if pair.name == "double")
    keep_record(record(pair_result(size="default", source_hash=source_hash(double))), tmp_path / "recorded")
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "not recorded yet"
    changes = (("^", "no_"), ("optimized|fused|baseline", "tiled"), (": ", ": x"), ("$", " at check"), (":.*", ""))
    for right, wrong in changes:
        odd = re.sub(right, wrong, title, count=1)
        with pytest.raises(UserError, match=re.escape(odd)):
            quoted_figures.figure("nvidia_h200", "ch1", odd)


def test_a_page_has_question_answer_and_measurement(course):
    folder = course('[double]\noptimized = "Twice: {double optimized: ratio}."\n')
    text = answers_page.page("ch1", discover(folder))
    assert "*Question.* How much faster?" in text
    assert '*Answer.* Twice: [2.00x](/recorded/nvidia_h200/ch1.md "double optimized: ratio").' in text
    assert "*Measured.* optimized: faster, 2.00x [1.98, 2.02], 2.00 ms -> 1.00 ms" in text


@pytest.mark.parametrize("text", ["", '[double]\noptimized = "a"\nfused = "b"\n', '[double]\nbaseline = "a"\n'])
def test_each_question_has_an_answer_and_each_answer_a_question(text, course):
    folder = course(text)
    with pytest.raises(UserError, match="a question without an answer, or the reverse"):
        answers_page.page("ch1", discover(folder))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_committed_answers_are_what_is_recorded(chapter, committed):
    text = (ROOT / chapter / answers_page.PAGE).read_text(encoding="utf-8")
    assert text == answers_page.page(chapter, discover(ROOT / chapter)), "make readme writes the page anew"


@pytest.fixture
def profiled(course, tmp_path):
    """profiled(folder of a device): the profile of double's optimized version, of a call in which a GPU works 75 %."""

    def keep(device="NVIDIA H200", category="kernel", **changes):
        (pair,) = discover(tmp_path / "ch1")
        environment = {"device": {"kind": "cuda", "name": device}, "date": "2026-01-01"}
        fields = {"source_hash": source_hash(pair), "arguments": pair.sizes["default"], **changes}
        times = {"call_s": 1e-4, "profiled_s": 1e-4}
        about = About("ch1", "double", "optimized", "default", environment=environment, **times, **fields)
        work = [Event("k", "X", category, 0, 7, begin, length) for begin, length in ((0, 50), (60, 25))]
        profile_file.keep(Profile(about, work, COUNTERS), tmp_path / "recorded")
        forget()

    course()
    return keep


OF_PROFILE = {"busy": "75%", "idle": "25%", "launches": "2", "gap": "10.0 us, launch latency",
              "time_1": "75.0 us", "dram_1": "58%", "sectors_1": "4.0", "stall_1": "shared memory 3.1",
              "sm_2": "9%"}  # fmt: skip
COUNTERS = [{"kernel": "short", "launches": 1, "time_ns": 10.0, "sm_percent": 9.0},
            {"kernel": "k", "launches": 2, "time_ns": 30.0, "dram_percent": 58.2, "l1_load_sectors": 8.0,
             "l1_load_requests": 2.0, "stall_memory": 1.0, "stall_shared_memory": 3.14}]  # fmt: skip


@pytest.mark.parametrize("field", OF_PROFILE)
def test_a_recorded_profile_is_quoted(field, profiled):
    title = f"double optimized: profile {field}"
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "not recorded yet"
    profiled("NVIDIA H100")  # another GPU's
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "not recorded yet"
    profiled()
    link = f'[{{}}](/recorded/nvidia_h200/ch1.md "{title}")'
    assert quoted_figures.fill_in_figures(link.format("?")) == link.format(OF_PROFILE[field])
    assert quoted_figures.newest_figure(f"ch1 {title} at default") == OF_PROFILE[field]
    profiled(source_hash="another")
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "stale"


def test_a_profile_of_code_from_which_a_row_was_carried_is_quoted(course, profiled):
    profiled(source_hash="another")
    title = "double optimized: profile idle"
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "stale"
    course(carried=["another"])
    forget()
    assert quoted_figures.figure("nvidia_h200", "ch1", title) == "25%"


@pytest.mark.parametrize("title", ["double optimized: profile length", "double fused: profile idle",
                                   "twice optimized: profile idle", "double optimized: profile idle at small",
                                   "double optimized: profile", "double optimized: profile dram"])  # fmt: skip
def test_what_names_no_profile_is_refused(title, profiled):
    profiled()
    with pytest.raises(UserError, match=re.escape(f'"{title}"')):
        quoted_figures.figure("nvidia_h200", "ch1", title)


def test_a_counter_that_the_profile_lacks_is_refused(profiled):
    profiled()
    with pytest.raises(UserError, match="has no dram_2"):
        quoted_figures.figure("nvidia_h200", "ch1", "double optimized: profile dram_2")


def test_a_profile_without_work_of_a_gpu_is_not_quoted(profiled):
    profiled(category="cpu_op")
    with pytest.raises(UserError, match="has no idle"):
        quoted_figures.figure("nvidia_h200", "ch1", "double optimized: profile idle")
