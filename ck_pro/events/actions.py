"""Actions of agents; for mouse and keyboard see `ck_pro.events.computer`."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from ck_pro.events.base import Action


class CodeAction(Action):
    """Run Python in the executor.

    Attributes:
        code: the code.
        thought: the model's text before the code.
        note: the part of the reply that was ignored, and why; the next observation reports it.
    """

    kind: ClassVar[str] = "code"
    code: str
    thought: str = ""
    note: str = ""


class ToolCall(Action):
    """Call one tool or sub-agent by name with keyword arguments; for `note` see `CodeAction`."""

    kind: ClassVar[str] = "tool_call"
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    call_id: str = ""
    note: str = ""


class BrowserAction(Action):
    """One browser action by name, with its target and arguments.

    Attributes:
        target: id of the element.
        value_name: the function's parameter that `value` came from, for approvers.
        element: description of the target from the environment ("button 'Buy'"), for approvers.
        url: address of the page, for approvers.
        secret: whether the text goes into a field for a password, a code or a card.
    """

    kind: ClassVar[str] = "browser"
    name: str
    target: str = ""
    value: str | None = None
    value_name: str = "text"
    arguments: dict[str, Any] = Field(default_factory=dict)
    element: str = ""
    url: str = ""
    secret: bool = False

    @property
    def role(self) -> str:
        """Role of the element, such as "button"; "" if unknown."""
        return self.element.partition(" '")[0] if " '" in self.element else ""

    @property
    def element_name(self) -> str:
        """Name of the element, such as "Buy now"; "" if unknown."""
        return self.element.partition(" '")[2].partition("'")[0]

    def given(self) -> dict[str, Any]:
        """Return the action as the agent gave it, as JSON data."""
        fields = {"name": self.name, "target": self.target, "value": self.value}
        return {k: v for k, v in {**fields, "arguments": self.arguments}.items() if v}

    def __str__(self) -> str:
        number: Any = int(self.target) if self.target.isdecimal() else self.target
        arguments = {"id": number, self.value_name: self.value, **self.arguments}
        texts = [f"{k}={v!r}" for k, v in arguments.items() if v not in ("", None, [])]
        return f"{self.name}({', '.join(texts)})"


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


class BrowseURLAction(Action):
    """Open a page and read it; the agent's environment must be a browser."""

    kind: ClassVar[str] = "browse_url"
    url: str


class RecallAction(Action):
    """Search the session, and the agent's memory of earlier ones."""

    kind: ClassVar[str] = "recall"
    query: str


class AddTaskAction(Action):
    """Add a sub-task to the plan. `parent` is a task id such as "0.1"."""

    kind: ClassVar[str] = "add_task"
    goal: str
    parent: str = "0"


class ModifyTaskAction(Action):
    """Change the state of a task of the plan: one of `ck_pro.session.goals.TASK_STATES`."""

    kind: ClassVar[str] = "modify_task"
    task_id: str
    state: str


class ThinkAction(Action):
    """Record a thought; has no effect."""

    kind: ClassVar[str] = "think"
    thought: str


class MessageAction(Action):
    """A message to the user (`source` is "agent") or from the user ("user")."""

    kind: ClassVar[str] = "message"
    content: str
    source: str = "agent"


class FinishAction(Action):
    """End the run by a terminal tool: `output` is the answer, `log` explains it."""

    kind: ClassVar[str] = "finish"
    output: str = ""
    log: str = ""


class RejectAction(Action):
    """End the run because the agent declines the task."""

    kind: ClassVar[str] = "reject"
    reason: str = ""
