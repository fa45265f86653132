"""Events of the journal: their kinds, and the shape of each kind's data.

A writer checks each event against `REQUIRED_KEYS`. Readers accept unknown kinds and missing keys,
since a journal may come from another version.
"""

# no `from __future__ import annotations`: TypedDict must see NotRequired when the class is made

import difflib
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from typing_extensions import NotRequired, TypedDict

from ck_pro.events.event_parts import (
    AskedQuestion,
    BudgetUsage,
    FileFacts,
    FinalResults,
    GivenAnswer,
    GivenApproval,
    ProgressState,
    UsageCounts,
)
from ck_pro.exceptions import JournalError


class EventKind(str, Enum):
    """The kind of a journal event; `EVENT_DATA` has the shape of its `data`."""

    SESSION = "session"
    STEP = "step"
    WORLD = "world"
    MODEL_CALL = "model_call"
    MODEL_FAILED = "model_failed"
    PLAN = "plan"
    ACTION = "action"
    UNREADABLE = "unreadable"
    STARTED = "started"
    CALL = "call"
    SUB_SESSION = "sub_session"
    SELECTED = "selected"
    SCREEN = "screen"
    PICTURE = "picture"
    OBSERVATION = "observation"
    ERROR = "error"
    FINISH = "finish"
    END = "end"
    STATUS = "status"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    ANSWERED = "answered"
    TURN = "turn"
    ACTED = "acted"
    TASK_CHANGED = "task_changed"
    APPROVED = "approved"
    LEASED = "leased"
    USER_ACTED = "user_acted"
    FILES = "files"
    FORKED = "forked"
    TASK = "task"
    EVAL = "eval"
    ROW = "row"
    MESSAGE = "message"

    def __str__(self) -> str:
        return self.value


class JournalEvent(TypedDict):
    """One line of a journal, as `read_events` yields it and `Journal.append` returns it.

    Keys:
        kind: an `EventKind`, or a kind of another version.
        sid, parent: ids of the session and of its caller's session.
        i: index of the step.
        phase: "plan", "action", "end", or "tool:NAME".
        data: see `EVENT_DATA`.
        time: Unix seconds.
        duration: seconds.
    """

    kind: str
    sid: str
    parent: str | None
    i: int | None
    phase: str | None
    data: Any
    time: float
    duration: NotRequired[float]


class SessionData(TypedDict):
    """A session starts. `path` has the agents' names from the main agent down."""

    task: str
    agent: str
    info: NotRequired[dict[str, Any]]
    config: NotRequired[dict[str, Any]]
    path: NotRequired[list[str]]
    workdir: NotRequired[str]
    version: NotRequired[str]
    settings_hash: NotRequired[str]
    prompts_hash: NotRequired[str]


class StepData(TypedDict):
    """A step starts. `taken` is False for the empty step of a run that took none."""

    taken: NotRequired[bool]


class WorldData(TypedDict, total=False):
    """The state of the environment before a step."""

    web_state_before: dict[str, Any]
    file_state_before: dict[str, Any]


class ModelCallData(TypedDict):
    """A model call. `messages`, `output` and `reasoning` are absent without `store_io`."""

    model: str
    target: NotRequired[str]
    """The `call_target`, if a person handed the call over to it; it differs from the settings."""
    usage: UsageCounts
    params: NotRequired[dict[str, Any]]
    attempts: NotRequired[int]
    finish_reason: NotRequired[str]
    cost: NotRequired[float | None]
    """USD; None if unknown."""
    shortened: NotRequired[bool]
    prefix_share: NotRequired[float]
    messages: NotRequired[Sequence[dict[str, Any]]]
    output: NotRequired[str]
    reasoning: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]
    items: NotRequired[list[dict[str, Any]]]


class ModelFailedData(TypedDict):
    """A model call failed after all retries. `usage` and `cost` are present if it was billed."""

    error: str
    usage: NotRequired[UsageCounts]
    cost: NotRequired[float | None]


class ParsedReply(TypedDict, total=False):
    """What an agent parses from a reply of its model."""

    thought: str
    code: str


class PlanData(ParsedReply, total=False):
    """What the agent parsed from a reply of the plan phase; `state` is the progress state."""

    state: ProgressState


class ActionData(ParsedReply, total=False):
    """What the agent parsed from a reply of the action phase."""


class UnreadableData(TypedDict):
    """The agent could not fully parse a reply."""

    error: str


class StartedData(TypedDict):
    """A function call starts; `call` is its number in the session."""

    call: int
    name: str
    arguments: dict[str, Any]


class CallOutcome(TypedDict, total=False):
    """How a function call ended.

    Keys:
        value: text of the result, shortened.
        result: the result, if it is JSON data and short.
        error: the error, if the call raised one.
        interrupted: whether that error ended the run.
    """

    value: str
    result: Any
    error: str
    interrupted: bool


class CallData(CallOutcome):
    """A function call ended."""

    call: int
    name: str


class SubSessionData(TypedDict):
    """A function call started the session of a sub-agent."""

    session: str
    name: str
    call: NotRequired[int]


class SelectedData(TypedDict):
    """One of several attempts of a sub-agent was chosen.

    Keys:
        aggr: how.
        index: index of the chosen session in `sessions`.
    """

    aggr: str
    index: int
    sessions: list[str]
    call: NotRequired[int]


class ScreenData(TypedDict):
    """The screen after an action; the fields of `ComputerObservation` except `pictures`."""

    kind: str
    text: str
    current_url: str
    call_id: str
    acknowledged_safety_checks: list[dict[str, Any]]
    image: NotRequired[str]
    content: NotRequired[str]


class PictureData(TypedDict):
    """A small picture of the environment, for viewers of the run.

    The first one of a step shows what the model saw. Those with `call` precede an action. Another
    one without it, at the end of the last step, shows what its actions led to.
    Boxes are `[x, y, width, height]` in the units of `width` and `height`.

    Keys:
        image: data URL.
        width, height: of the pictured part; CSS pixels for a page. The image may be smaller.
        url: of the page.
        elements: boxes by id of the elements in view.
        call: number of the call that follows.
        targets: what that call acts on, in order: boxes of elements, also out of view, and points
            as boxes without size.
    """

    image: str
    width: int
    height: int
    url: NotRequired[str]
    elements: NotRequired[dict[str, list[int]]]
    call: NotRequired[int]
    targets: NotRequired[list[list[int]]]


class ObservationData(TypedDict):
    """The observation of a step; see `ck_pro.session.observed` for its form."""

    observation: Any


class ErrorData(TypedDict):
    """The type of the error of a step."""

    error: str


class FinishData(FinalResults):
    """The result of a terminal action; `rejected` if the agent declined the task."""

    rejected: NotRequired[bool]


class EndData(ParsedReply):
    """The final result of a session, and what the agent parsed from a reply of the end phase."""

    final_results: FinalResults


class StatusData(TypedDict):
    """A session ended.

    Keys:
        budget: what the run has used.
        asked: the question that the run waits for.
        interrupted: whether the session stopped together with its caller.
        lease: data that the environment needs to resume.
        variables: plain data in the code's variables, if the session ended without an answer.
    """

    status: str
    stop_reason: str
    message: str
    variables: NotRequired[dict[str, Any]]
    budget: NotRequired[BudgetUsage]
    asked: NotRequired[AskedQuestion]
    interrupted: NotRequired[bool]
    lease: NotRequired[Any]


class SuspendedData(TypedDict):
    """A session paused; `lease` is what the environment needs to resume."""

    lease: Any


class ResumedData(TypedDict):
    """A session resumed.

    Keys:
        redo: whether the last step starts again.
        learned: the user's answers, as text for the progress state.
        answer: the answer given now.
        approved: the approval given now.
    """

    redo: bool
    learned: str
    answer: NotRequired[GivenAnswer]
    approved: NotRequired[GivenApproval]


class AnsweredData(TypedDict):
    """The session used the user's answer to this question."""

    question: str


class TurnData(TypedDict):
    """The user sent a further message to a session that had ended."""

    text: str


class ApprovedData(TypedDict):
    """The session used the user's approval of this action, which follows."""

    action: dict[str, Any]


class LeasedData(TypedDict):
    """The session has an environment to which a resumed run can reconnect after a kill."""

    lease: Any


class UserActedData(TypedDict):
    """The user acted in the browser of a stopped run.

    Keys:
        action: what they did and what came of it, in one line, without secrets.
        url: of the page after it.
    """

    action: str
    url: str


class ActedData(TypedDict):
    """A typed action, or an action of an external loop, and its observation."""

    action: dict[str, Any]
    observation: dict[str, Any]


class TaskChangedData(TypedDict):
    """The task tree changed: a sub-task was added (`parent`, `goal`), or the state of a task."""

    id: str
    state: str
    goal: NotRequired[str]
    parent: NotRequired[str]


class FilesData(TypedDict, total=False):
    """Changes in the working directory since the last snapshot; or `too_many` alone.

    Keys:
        whole: whether `changed` lists all files.
        changed: path -> facts.
        removed: paths.
        too_many: the limit of entries that the directory exceeds.
    """

    whole: bool
    changed: dict[str, FileFacts]
    removed: list[str]
    too_many: int


class ForkedData(TypedDict):
    """The journal is a fork of the one in the folder `origin`, before the step `at`.

    Keys:
        reply: text to use as the model's reply of that step.
    """

    origin: str
    at: int
    reply: NotRequired[str]


class TaskData(TypedDict):
    """The fields of a row about its task. The runner may add fields."""

    id: str
    task: str
    file: str | None
    answer: str | None
    _orig: dict[str, Any]
    skip_hard: bool


class EvalData(TypedDict):
    """The field `eval` of a row: prediction, right answer and score. A judge may add fields."""

    pred: str
    gold: str | None
    corr: float | None


class RowData(TypedDict):
    """The runner wrote the row; no data."""


class MessageData(TypedDict):
    """A chat message, stored once; the journal writes it before the first call that has it."""

    hash: str
    message: Any


EventData = (
    SessionData
    | StepData
    | WorldData
    | ModelCallData
    | ModelFailedData
    | PlanData
    | ActionData
    | UnreadableData
    | StartedData
    | CallData
    | SubSessionData
    | SelectedData
    | ScreenData
    | PictureData
    | ObservationData
    | ErrorData
    | FinishData
    | EndData
    | StatusData
    | SuspendedData
    | ResumedData
    | AnsweredData
    | TurnData
    | ActedData
    | TaskChangedData
    | ApprovedData
    | LeasedData
    | UserActedData
    | FilesData
    | ForkedData
    | TaskData
    | EvalData
    | RowData
    | MessageData
)

EVENT_DATA: Mapping[EventKind, type] = {
    EventKind.SESSION: SessionData,
    EventKind.STEP: StepData,
    EventKind.WORLD: WorldData,
    EventKind.MODEL_CALL: ModelCallData,
    EventKind.MODEL_FAILED: ModelFailedData,
    EventKind.PLAN: PlanData,
    EventKind.ACTION: ActionData,
    EventKind.UNREADABLE: UnreadableData,
    EventKind.STARTED: StartedData,
    EventKind.CALL: CallData,
    EventKind.SUB_SESSION: SubSessionData,
    EventKind.SELECTED: SelectedData,
    EventKind.SCREEN: ScreenData,
    EventKind.PICTURE: PictureData,
    EventKind.OBSERVATION: ObservationData,
    EventKind.ERROR: ErrorData,
    EventKind.FINISH: FinishData,
    EventKind.END: EndData,
    EventKind.STATUS: StatusData,
    EventKind.SUSPENDED: SuspendedData,
    EventKind.RESUMED: ResumedData,
    EventKind.ANSWERED: AnsweredData,
    EventKind.TURN: TurnData,
    EventKind.ACTED: ActedData,
    EventKind.TASK_CHANGED: TaskChangedData,
    EventKind.APPROVED: ApprovedData,
    EventKind.LEASED: LeasedData,
    EventKind.USER_ACTED: UserActedData,
    EventKind.FILES: FilesData,
    EventKind.FORKED: ForkedData,
    EventKind.TASK: TaskData,
    EventKind.EVAL: EvalData,
    EventKind.ROW: RowData,
    EventKind.MESSAGE: MessageData,
}
"""The type of each kind's data."""

REQUIRED_KEYS: dict[str, frozenset[str]] = {
    kind: data.__required_keys__  # type: ignore[attr-defined]
    for kind, data in EVENT_DATA.items()
}


def invalid_event(kind: str, data: Mapping[str, Any]) -> JournalError:
    """Return the error for an event of unknown kind, or without a required key."""
    required = REQUIRED_KEYS.get(kind)
    if required is None:
        near = difflib.get_close_matches(kind, REQUIRED_KEYS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(REQUIRED_KEYS)}"
        return JournalError(f"cannot write an event of unknown kind '{kind}'; {hint}")
    missing = ", ".join(sorted(required - data.keys()))
    return JournalError(f"cannot write an event of kind '{kind}' without {missing}")
