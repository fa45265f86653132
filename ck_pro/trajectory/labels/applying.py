"""Apply labels to model calls. All formats of one row per call get their calls from here."""

from __future__ import annotations

from dataclasses import replace

from ck_pro.trajectory.labels.label import Reply
from ck_pro.trajectory.labels.label_set import NO_DECISION, Decision, Labels
from ck_pro.trajectory.labels.tool_check import tool_call_problem
from ck_pro.trajectory.reading.model_calls import Call, Unusable

WRONG_TOOL_CALL = "wrong tool call in a corrected reply"
_BEFORE = Decision(judgement="bad", labelled=True, corrected=True)
"""The decision about the reply that a correction replaces."""

Labelled = tuple[Call | Unusable, Decision]


def apply_labels(found: Call | Unusable, labels: Labels, *, originals: bool) -> list[Labelled]:
    """Return a call as its labels want it, with the decision.

    A corrected call gets the corrected reply as a good one.

    Args:
        found: the call.
        labels: of the export.
        originals: whether the reply before a correction follows as a bad one.
    """
    if not labels:
        return [(found, NO_DECISION)]
    call = found.call if isinstance(found, Unusable) else found
    decision = labels.of_call(call)
    if decision.excluded or (isinstance(found, Unusable) and not found.has_prompt):
        return [(found, decision)]
    if decision.reply is not None:
        return _corrected(found, call, labels, decision, decision.reply, originals)
    if isinstance(found, Unusable) or not decision.judgement:
        return [(found, decision)]
    judged = None if decision.of_run else labels.value(decision.judgement)
    return [(replace(call, label=decision.judgement, judged=judged), decision)]


def _corrected(
    found: Call | Unusable,
    call: Call,
    labels: Labels,
    decision: Decision,
    reply: Reply,
    originals: bool,
) -> list[Labelled]:
    decision = replace(decision, judgement="good", of_run=False)
    if tool_call_problem(reply.tool_calls, call.tools):
        return [(Unusable(WRONG_TOOL_CALL, call), decision)]
    call = replace(call, label="good", judged=labels.good)
    if not isinstance(found, Unusable) and _same(call, reply):
        return [(call, decision)]
    new = replace(
        call,
        reply=reply.message(),
        reasoning=reply.reasoning,
        unreadable="",
        error="",
        corrected=True,
    )
    if not originals or isinstance(found, Unusable):
        return [(new, decision)]
    new.corrects = call.reply_key
    return [(new, decision), (replace(call, label="bad", judged=labels.bad), _BEFORE)]


def _same(call: Call, reply: Reply) -> bool:
    """Return whether a correction changes nothing."""
    calls = [c["function"] for c in call.reply.get("tool_calls", ())]
    new = [c["function"] for c in reply.tool_calls]
    return call.reply["content"] == reply.content and calls == new and not reply.reasoning
