"""Progress events of a run, for displays (`on_event`); the journal does not store them."""

from enum import Enum
from typing import Any

from typing_extensions import NotRequired, TypedDict


class ProgressKind(str, Enum):
    """The kind of a progress event."""

    RUN_STARTED = "run_started"
    STEP_STARTED = "step_started"
    MODEL_STARTED = "model_started"
    MODEL_WAITS = "model_waits"
    MODEL_CALL = "model_call"
    CALL_STARTED = "call_started"
    CALL_ENDED = "call_ended"
    UNREADABLE = "unreadable"
    MESSAGE = "message"
    STEP_ENDED = "step_ended"
    RUN_ENDED = "run_ended"
    TRY_ENDED = "try_ended"
    """Sent by the runner, when one of several tries of a task ended."""

    def __str__(self) -> str:
        return self.value


class ProgressFacts(TypedDict, total=False):
    """Facts that only some kinds have.

    Keys:
        text: the task, a function, an observation or a message, shortened.
        phase: of the model call.
        status, stop_reason: of the run that ended.
    """

    text: str
    phase: str
    status: str
    stop_reason: str


class ProgressEvent(ProgressFacts):
    """One progress event.

    Keys:
        kind: a `ProgressKind`.
        path: names of the agents, from the main agent down.
        sid: id of the session.
        step: index of the step; -1 before the first.
        tokens, money: used by the whole run; `money` in USD.
        number, tries, row: of a try that ended: its number, how many there are, and its row.
    """

    kind: str
    path: list[str]
    sid: NotRequired[str]
    step: int
    tokens: int
    money: float
    number: NotRequired[int]
    tries: NotRequired[int]
    row: NotRequired[Any]
