"""The last look at an arm's device, where there is none: what it tells from events and times that are made up."""

from types import SimpleNamespace

import pytest
from samples import because

from common.checks import device_trace, guards
from common.engine import conclude, untimed_checks
from common.engine.candidates import Candidate
from common.engine.sampling import Samples
from common.engine.stage import Bench, Progress, Stage
from common.machine.clock import Sample
from common.show import words


def event(name, start_us, end_us):
    return SimpleNamespace(name=lambda: name, start_ns=lambda: 1000 * start_us, end_ns=lambda: 1000 * end_us)


FIRST, LAST = event("at::cuda::spin_kernel(long)", 0, 2000), event("at::cuda::spin_kernel(long)", 2050, 2052)
EARLY, LATE = "early waits for nothing on the timed stream", "late is on a stream that is not joined"


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ([], ""),
        ([event("add", 2001, 2020), event("mul", 2020, 2049)], ""),
        ([event("add", 1999, 2051)], ""),  # as far as two clocks may differ
        # the first while the device is kept busy, the last is late, too
        *(([event("early", *us)], EARLY) for us in ((500, 510), (-20, -10), (1998, 2020), (1900, 2100))),
        *(([event("late", *us)], LATE) for us in ((2020, 2053), (2060, 2070))),
        ([event("add", 2001, 2020), event("late", 2010, 2090)], LATE),
    ],
)
@pytest.mark.parametrize("turn", [1, -1])
def test_work_outside_of_the_markers_is_told(work, said, turn):
    events = [FIRST, *work, LAST][::turn]  # in whatever order they were recorded
    found, is_known = device_trace._outside(events)
    assert is_known and words.text(found) == (f"device work outside the timed interval: {said}" if said else "")


@pytest.mark.parametrize("markers", [[], [FIRST], [LAST]])
def test_where_the_markers_were_not_seen_nothing_is_known(markers):
    assert device_trace._outside([*markers, event("add", 2001, 2020)]) == (None, False)


@pytest.fixture
def look(monkeypatch):
    """(what was traced, what each call was heard to do) -> what is said of the candidate."""

    def looked(outside, *heard):
        calls = iter(heard or [set()])
        monkeypatch.setattr(guards, "untimely_actions", lambda call: next(calls))
        seen = device_trace.CallTrace(outside, 0, 0)
        monkeypatch.setattr(device_trace, "trace_call", lambda call, device, timed_by_events: seen)
        job = SimpleNamespace(device="cpu", reports_turns=False, seed=0, size="")
        candidates = (Candidate("optimized", None, lambda: None),)
        stage = Stage(Bench(job, Progress(lambda *said: None), candidates=candidates))
        source = SimpleNamespace(by_label={"optimized": {}}, overwrite=lambda *arguments: None)
        stage.inputs = lambda size: source
        untimed_checks.check_calls(stage, SimpleNamespace(name="device"), source)
        found = stage.disqualified.get("optimized")
        return words.text(found.reason) if found else ""

    return looked


def works_on(seconds, *tails, idle_s=0.0, other_s=1e-6):
    """What is said of one with such tails, beside another whose tails are `other_s`."""
    samples = {"baseline": [other_s] * len(tails), "optimized": tails}
    rounds = [
        {label: Sample(seconds, 0.0, each[i], 1.0, None, idle_s=idle_s) for label, each in samples.items()}
        for i in range(len(tails))
    ]
    found = conclude.late_work([*samples], Samples("device", None, {}, [rounds]))
    assert "baseline" not in found
    return words.text(found.get("optimized"))


JOINED = [  # seconds of a call, and from the clock's stop until the device was idle
    (1e-3, 0.0, 0.0, 0.0),
    (1e-3, 49e-6, 49e-6, 49e-6),
    (1e-3, 5e-6, 1.0, 5e-6),  # once, for whatever reason
    (10e-3, 199e-6, 199e-6, 199e-6),  # of long calls a part
]


@pytest.mark.parametrize("times", JOINED)
def test_a_device_that_is_soon_idle_was_waited_for(times):
    assert works_on(*times) == ""


@pytest.mark.parametrize(
    ("times", "late"), [((1e-3, 51e-6, 0.0, 51e-6), 51), ((1e-6, 60e-6), 60), ((10e-3, 201e-6, 0.0, 201e-6), 201)]
)
def test_a_device_that_works_on_was_not(times, late):
    """Whatever the profiler has seen: a version may behave while it is watched."""
    assert works_on(*times) == f"its device works on for {late} us after the clock stopped: a stream is not joined"


@pytest.mark.parametrize(("idle_s", "late"), [(9e-6, False), (7e-6, True)])
def test_a_wait_that_is_dear_on_an_idle_device_too_is_none(idle_s, late):
    """The first after many launches costs the host more, several times so where others keep it busy."""
    assert bool(works_on(1e-3, 80e-6, 80e-6, idle_s=idle_s)) is late


@pytest.mark.parametrize(("other_s", "late"), [(40e-6, False), (20e-6, True)])
def test_a_host_that_waits_long_for_all_is_busy(other_s, late):
    """And its honest versions are not blamed for that."""
    assert bool(works_on(1e-3, 119e-6, 119e-6, other_s=other_s)) is late


def test_what_is_heard_once_is_a_late_beginning(look):
    assert look(None, {"imports late"}, set()) == ""
    said = "every warm call compiles, imports inside the timed region"
    assert look(None, {"forks", "imports", "compiles"}, {"imports", "compiles"}) == said


def test_what_the_profiler_has_seen_is_told(look):
    assert look(because("device work outside")) == "device work outside"
