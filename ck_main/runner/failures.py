"""Classify failures of an attempt: of the task, transient, or a possible service outage."""

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
"""Model calls that failed after all retries: class name and message of each error."""
# failures of one task, not of a service: a recording that does not match, a filtered prompt
_TASK_FAILURES = frozenset(e.__name__ for e in (ReplayError, ContentFiltered))
_UNREACHABLE = frozenset(e.__name__ for e in (ModelUnavailable, ModelTimeout))
_ENVIRONMENT_LOST = frozenset({StopReason.ENVIRONMENT_FAILURE, StopReason.LEASE_EXPIRED})
# stop reasons that a retry may avoid
_TRANSIENT = _ENVIRONMENT_LOST | {StopReason.INTERNAL_ERROR}


def transient_failure(session: AgentSession, failures: Failures) -> str | None:
    """Describe the infrastructure failure that ended a session if a retry may help, else None."""
    unreachable = any(name in _UNREACHABLE for name, _ in failures)
    lost = session.stop_reason is StopReason.MODEL_FAILURE and unreachable
    if session.stop_reason not in _TRANSIENT and not lost:
        return None
    return f"{session.stop_reason}: {' '.join(session.message.split())[:200]}"


def manual_abort(failures: Failures) -> ManualAbort | None:
    """Return the error if the human who plays the model aborted; a retry is impossible then."""
    return next((ManualAbort(s) for n, s in failures if n == ManualAbort.__name__), None)


def may_be_outage(session: AgentSession, failures: Failures) -> bool:
    """Whether a service failed in a session or its children, so that it should be probed."""
    names, reasons = {name for name, _ in failures}, set(_stop_reasons(session))
    unclear = StopReason.MODEL_FAILURE in reasons and not names
    return bool(_ENVIRONMENT_LOST & reasons) or unclear or bool(names - _TASK_FAILURES)


def _stop_reasons(session: AgentSession) -> Iterator[StopReason | None]:
    yield session.stop_reason
    for child in session.children.values():
        yield from _stop_reasons(child)
