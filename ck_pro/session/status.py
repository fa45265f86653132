"""The state of a run (`Status`), and the reason for its end (`StopReason`)."""

from __future__ import annotations

from enum import Enum


class Status(str, Enum):
    """The state of a run."""

    IN_PROGRESS = "in_progress"
    DONE = "done"
    AMBIGUITY = "ambiguity"
    HUMAN_INTERVENTION = "human-intervention"
    SENSITIVE_ACTION = "sensitive-action"
    PROBLEM = "problem"

    def __str__(self) -> str:
        return self.value


class StopReason(str, Enum):
    """The reason for the end of a run."""

    FINISHED = "finished"
    REJECTED = "rejected"
    STEPS = "steps"
    TIME = "time"
    TOKENS = "tokens"
    MONEY = "money"
    STUCK = "stuck"
    MODEL_FAILURE = "model_failure"
    ENVIRONMENT_FAILURE = "environment_failure"
    LEASE_EXPIRED = "lease_expired"
    PAGE_REFUSED = "page_refused"
    INTERNAL_ERROR = "internal_error"
    AMBIGUITY = "ambiguity"
    HUMAN = "human"
    GUARD = "guard"
    CANCELLED = "cancelled"

    def __str__(self) -> str:
        return self.value

    @property
    def status(self) -> Status:
        """The status of a session that ended for this reason."""
        return _STATUS_OF.get(self, Status.PROBLEM)


_STATUS_OF = {
    StopReason.FINISHED: Status.DONE,
    StopReason.AMBIGUITY: Status.AMBIGUITY,
    StopReason.HUMAN: Status.HUMAN_INTERVENTION,
    StopReason.GUARD: Status.SENSITIVE_ACTION,
    StopReason.CANCELLED: Status.IN_PROGRESS,
}
