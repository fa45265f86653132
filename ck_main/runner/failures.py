"""Which faults of an attempt are its own, which pass, and which may be an outage of a service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ck_pro.exceptions import (
    ContentFiltered,
    ManualAbort,
    ModelTimeout,
    ModelUnavailable,
    ReplayError,
)
from ck_pro.session import AgentSession, StopReason

Failures = Sequence[tuple[str, str]]
"""Model calls that failed for good: name of the error's class, and what it said."""
# faults of one task, and of no service: a recording that does not fit it, a filtered prompt
_OWN_FAULTS = frozenset(e.__name__ for e in (ReplayError, ContentFiltered))
_UNREACHABLE = frozenset(e.__name__ for e in (ModelUnavailable, ModelTimeout))
# ends that another attempt may not come to, though nothing that lasts is known to be wrong
_LOST = frozenset({StopReason.ENVIRONMENT_FAILURE, StopReason.LEASE_EXPIRED})
_PASSING = _LOST | {StopReason.INTERNAL_ERROR}


def passing_fault(session: AgentSession, failures: Failures) -> str | None:
    """What the infrastructure did to a session that ended, if another attempt may fare better."""
    unreachable = any(name in _UNREACHABLE for name, _ in failures)
    lost = session.stop_reason is StopReason.MODEL_FAILURE and unreachable
    if session.stop_reason not in _PASSING and not lost:
        return None
    return f"{session.stop_reason}: {' '.join(session.message.split())[:200]}"


def person_gone(failures: Failures) -> ManualAbort | None:
    """What was said if the person who plays the model has left: there is nobody to ask again."""
    return next((ManualAbort(s) for n, s in failures if n == ManualAbort.__name__), None)


def may_be_outage(session: AgentSession, failures: Failures) -> bool:
    """Whether a service failed in a session or below it: then it is asked whether it is there."""
    names, reasons = {name for name, _ in failures}, set(_stop_reasons(session))
    unclear = StopReason.MODEL_FAILURE in reasons and not names
    return bool(_LOST & reasons) or unclear or bool(names - _OWN_FAULTS)


def _stop_reasons(session: AgentSession) -> Iterator[StopReason | None]:
    yield session.stop_reason
    for child in session.children.values():
        yield from _stop_reasons(child)
