"""Typed actions, such as commands: the tools of the workspace and the session do them."""

from __future__ import annotations

from typing import Any

from ck_pro.events import (
    Action,
    AddTaskAction,
    BrowserAction,
    BrowserObservation,
    BrowseURLAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileReadAction,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
    MessageAction,
    ModifyTaskAction,
    Observation,
    RecallAction,
    RecallObservation,
    SuccessObservation,
)
from ck_pro.exceptions import ends_run, error_text
from ck_pro.executor import LocalCall
from ck_pro.run.run import Run
from ck_pro.run.session_changes import record_acted
from ck_pro.tools.session_tools import session_tools
from ck_pro.tools.workspace import workspace_tools

_TOOLS = {tool.name: tool for tool in [*workspace_tools(), *session_tools()]}
_MOST_LINES = 100_000


def call_of(action: Action) -> tuple[str, dict[str, Any]] | None:
    """Return the tool that carries out an action, with its arguments; None if there is none."""
    match action:
        case CmdRunAction(command=command, background=background):
            return "run_command", {"command": command, "background": background}
        case CmdKillAction(command_id=number):
            return "kill_command", {"id": number}
        case FileReadAction(path=path):
            return "read_file", {"path": path, "max_lines": _MOST_LINES}
        case FileWriteAction(path=path, content=content):
            return "write_file", {"path": path, "content": content}
        case RecallAction(query=query):
            return "search_memory", {"query": query}
        case AddTaskAction(goal=goal, parent=parent):
            return "add_task", {"goal": goal, "parent": parent}
        case ModifyTaskAction(task_id=task_id, state=state):
            return "modify_task", {"task_id": task_id, "state": state}
        case MessageAction(content=content, source="agent"):
            return "send_message", {"text": content}
    return None


def is_typed(action: Action) -> bool:
    """Whether `carry_out` can execute an action."""
    return isinstance(action, BrowseURLAction) or call_of(action) is not None


def carry_out(run: Run, action: Action) -> Observation:
    """Execute an action as a call of its tool, approved and logged, and record both.

    The agent need not have the tool.

    Returns:
        The observation; an `ErrorObservation` if the action failed or was rejected.

    Raises:
        RunEnding, EnvironmentFailure: the run must end.
    """
    try:
        seen = _execute(run, action)
    except BaseException as e:
        if ends_run(e):
            raise
        seen = ErrorObservation(text=error_text(e))
    record_acted(run, action, seen)
    return seen


def _execute(run: Run, action: Action) -> Observation:
    if isinstance(action, BrowseURLAction):
        return _browse(run, action)
    call = call_of(action)
    assert call is not None
    name, arguments = call
    result = run.functions.exposed(_TOOLS[name])(**arguments)
    exit_code = number = None
    if isinstance(result, LocalCall):
        text, exit_code, number = run.run_code.local_result(result)
    else:
        text = str(result)
    match action:
        case CmdRunAction(command=command):
            return CmdOutputObservation(
                text=text, command=command, exit_code=exit_code, command_id=number
            )
        case CmdKillAction(command_id=killed):
            return CmdOutputObservation(text=text, exit_code=exit_code, command_id=killed)
        case FileReadAction(path=path):
            return FileReadObservation(text=text, path=path)
        case FileWriteAction(path=path):
            return FileWriteObservation(text=text, path=path)
        case RecallAction(query=query):
            return RecallObservation(text=text, query=query, memories=run.search_memory(query))
    return SuccessObservation(text=text)


def _browse(run: Run, action: BrowseURLAction) -> Observation:
    """Open a page in the browser of the run, and return it."""
    if run.environment is None:
        return ErrorObservation(text="this agent has no browser; use an agent that has one")
    opened = run.act(BrowserAction(name="goto", value=action.url, value_name="url"))
    if isinstance(opened, ErrorObservation):
        return opened
    page = run.environment.observe()
    return BrowserObservation(
        text=f"{opened}\n\n{page}",
        url=getattr(page, "url", "") or action.url,
        image=getattr(page, "image", ""),
    )
