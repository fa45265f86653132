"""Actions and observations: what an agent decides, and what came of it, as typed values.

Every event can be written as a dict and read back (`to_dict`, `action_from_dict`,
`observation_from_dict`); the field `kind` names the type, and nothing else steers on it.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ck_pro.exceptions import InputError

_E = TypeVar("_E", bound="Event")


class Event(BaseModel):
    """Base of actions and observations: immutable, with `kind` as the name of its type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str] = ""
    registry: ClassVar[dict[str, type[Event]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if cls.kind:
            cls.registry[cls.kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """This event as JSON-able data: its `kind` and its fields."""
        return {"kind": self.kind, **self.model_dump(mode="json")}


class Action(Event):
    """Something that an agent decided to do."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Action:
        """The action written by `to_dict`; see `action_from_dict`."""
        return action_from_dict(data)


class Observation(Event):
    """What the world answered. `text` is what a model reads of it."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    text: str = ""

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Observation:
        """The observation written by `to_dict`; see `observation_from_dict`."""
        return observation_from_dict(data)

    def __str__(self) -> str:
        return self.text


# --- actions ---------------------------------------------------------------------------------


class CodeAction(Action):
    """Run Python in the executor. `thought` is the model's text around the code."""

    kind: ClassVar[str] = "code"
    code: str
    thought: str = ""


class ToolCall(Action):
    """Call one tool or sub-agent by name, with keyword arguments."""

    kind: ClassVar[str] = "tool_call"
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    call_id: str = ""


class BrowserAction(Action):
    """One step of a browser: an action of the wire by name, with its target and arguments."""

    kind: ClassVar[str] = "browser"
    name: str
    target: str = ""
    value: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)


class CmdRunAction(Action):
    """Run a shell command in the workspace, in the foreground or the background."""

    kind: ClassVar[str] = "cmd_run"
    command: str
    background: bool = False


class CmdKillAction(Action):
    """Kill a background command."""

    kind: ClassVar[str] = "cmd_kill"
    command_id: int


class FileReadAction(Action):
    """Read a file of the workspace."""

    kind: ClassVar[str] = "file_read"
    path: str


class FileWriteAction(Action):
    """Write a file of the workspace."""

    kind: ClassVar[str] = "file_write"
    path: str
    content: str


class RecallAction(Action):
    """Search the session's own history."""

    kind: ClassVar[str] = "recall"
    query: str


class AddTaskAction(Action):
    """Add a sub-task to the plan. `parent` is a task id such as "0.1"."""

    kind: ClassVar[str] = "add_task"
    goal: str
    parent: str = "0"


class ModifyTaskAction(Action):
    """Change the state of a task of the plan."""

    kind: ClassVar[str] = "modify_task"
    task_id: str
    state: str


class ThinkAction(Action):
    """A thought, for the record; does nothing."""

    kind: ClassVar[str] = "think"
    thought: str


class MessageAction(Action):
    """A message to the user (or from, by `source`)."""

    kind: ClassVar[str] = "message"
    content: str
    source: str = "agent"


class FinishAction(Action):
    """The run ends: a terminal tool was called. `output` is the answer, `log` says how."""

    kind: ClassVar[str] = "finish"
    output: str = ""
    log: str = ""


class RejectAction(Action):
    """The run ends: the agent declines the task."""

    kind: ClassVar[str] = "reject"
    reason: str = ""


# --- observations ----------------------------------------------------------------------------


class CodeObservation(Observation):
    """What a code action printed, its last value and its error, as one text."""

    kind: ClassVar[str] = "code_output"
    error: str | None = None
    duration: float = 0.0


class ToolObservation(Observation):
    """What a tool or sub-agent returned."""

    kind: ClassVar[str] = "tool_output"
    name: str = ""
    call_id: str = ""


class BrowserObservation(Observation):
    """A page as a model reads it. `image` is a data URL of the screenshot, where wanted."""

    kind: ClassVar[str] = "browser_output"
    url: str = ""
    image: str = ""


class ErrorObservation(Observation):
    """A fault of the model's own making, told so that it can learn from it."""

    kind: ClassVar[str] = "error"


class SuccessObservation(Observation):
    """An action that has nothing to tell but that it worked."""

    kind: ClassVar[str] = "success"


def action_from_dict(data: dict[str, Any]) -> Action:
    """The action written by `Action.to_dict`.

    Raises:
        InputError: an unknown kind, or fields that do not fit it.
    """
    return _from_dict(Action, data)


def observation_from_dict(data: dict[str, Any]) -> Observation:
    """The observation written by `Observation.to_dict`.

    Raises:
        InputError: an unknown kind, or fields that do not fit it.
    """
    return _from_dict(Observation, data)


def _from_dict(base: type[_E], data: dict[str, Any]) -> _E:
    what = base.__name__.lower()
    cls = base.registry.get(str(data.get("kind", "")))
    if cls is None:
        known = ", ".join(sorted(base.registry))
        raise InputError(f"{what}: unknown kind {data.get('kind')!r}; known are: {known}")
    try:
        event = cls.model_validate({k: v for k, v in data.items() if k != "kind"})
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(str(p) for p in first["loc"])
        raise InputError(f"{what} '{cls.kind}', field '{field}': {first['msg']}") from None
    assert isinstance(event, base)
    return event
