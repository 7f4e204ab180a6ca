"""What each candidate sends to other ranks, counted in an untimed call: less than its cost is impossible."""

from common.checks.arrays import clone
from common.checks.comm_bytes import Sent
from common.engine.candidates import Candidate, count_costs
from common.engine.inputs import InputSet, harvest_grads
from common.engine.session import Session
from common.record.outcome import Cause, Finding

SLACK = 0.99  # of the useful minimum: a cost may be rounded


def count_sent(session: Session, inputs: InputSet, other: InputSet) -> dict[str, list[int]]:
    """Label -> bytes that each rank sends in a call; empty for one process. Who sends too little is disqualified.

    A version that calls no collective is not counted, and not in the result: it may access another GPU's memory itself.
    """
    found: dict[str, list[int]] = {}
    if session.ranks.count == 1:
        return found
    costs, _ = count_costs(session.remaining, inputs.by_label)
    for each in session.judged():
        sent: Sent | None = session.attempt(each.label, _count, each, inputs, other)
        if sent is None:
            continue
        least = costs[each.label].get("link_bytes", 0.0)
        if sent.counted and sent.total < SLACK * least and not each.differs:
            facts = {"sent": sent.total, "least": least}
            session.disqualify(each.label, Finding(Cause.SENDS_TOO_LITTLE, facts))
        if session.ranks.any(sent.counted):
            found[each.label] = session.ranks.share(sent.total, "sent")
        session.agree()
    return found


def _count(each: Candidate, inputs: InputSet, other: InputSet) -> Sent:
    mine = inputs.by_label[each.label]
    call = each.bind(mine, each.prepared(clone(other.by_label[each.label]), mine))
    with Sent() as sent:
        call()
    harvest_grads(mine)
    return sent
