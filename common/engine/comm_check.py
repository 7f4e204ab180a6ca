"""What each candidate sends to other ranks, counted in an untimed call: less than its cost is impossible."""

from common.checks.arrays import clone
from common.checks.comm_bytes import Sent
from common.engine.candidates import Candidate, count_costs
from common.engine.inputs import InputSet, harvest_grads
from common.engine.stage import Stage
from common.record.outcome import Cause, Finding

SLACK = 0.99  # of the useful minimum: a cost may be rounded


def count_sent(stage: Stage, inputs: InputSet, other: InputSet) -> dict[str, list[int]]:
    """Label -> bytes that each rank sends in a call; empty for one process. Who sends too little is disqualified.

    A version that calls no collective is not counted, and not in the result: it may access another GPU's memory itself.
    """
    found: dict[str, list[int]] = {}
    if stage.ranks.count == 1:
        return found
    costs, _ = count_costs(stage.remaining, inputs.by_label)
    for each in stage.judged():
        sent: Sent | None = stage.attempt(each.label, _count, each, inputs, other)
        if sent is None:
            continue
        least = costs[each.label].get("link_bytes", 0.0)
        if sent.counted and sent.total < SLACK * least and not each.differs:
            facts = {"sent": sent.total, "least": least}
            stage.disqualify(each.label, Finding(Cause.SENDS_TOO_LITTLE, facts))
        if stage.ranks.any(sent.counted):
            found[each.label] = stage.ranks.share(sent.total, "sent")
        stage.agree()
    return found


def _count(each: Candidate, inputs: InputSet, other: InputSet) -> Sent:
    mine = inputs.by_label[each.label]
    call = each.bind(mine, each.prepared(clone(other.by_label[each.label]), mine))
    with Sent() as sent:
        call()
    harvest_grads(mine)
    return sent
