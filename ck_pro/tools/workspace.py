"""Tools for commands and files, which run inside the sandbox of an agent's code.

A call is approved and logged like any other. Then the worker runs it with the rights of the code
(`ck_pro/executor/worker/code/workspace.py`). See `docs/workspace.md`.
"""

from __future__ import annotations

from typing import Any, cast

from ck_pro.exceptions import ToolError
from ck_pro.executor import LocalCall
from ck_pro.tool import Tool

COMMAND_SECONDS = 30.0
"""Default time limit of a foreground command."""


class WorkspaceTool(Tool):
    """A tool that runs in the worker of an agent's code."""

    checks_arguments = False  # `execute` checks them


class RunCommandTool(WorkspaceTool):
    """A shell command in the working directory."""

    name = "run_command"

    def execute(
        self, command: str, timeout: float = COMMAND_SECONDS, background: bool = False
    ) -> str:
        """Run a shell command in the working directory; return its output and exit code as text.

        The output includes stderr; the middle of a long output is omitted. The result also has the
        attributes `output` and `exit_code`. The command has no input, and no network if the code
        has none.

        Args:
            command: text for bash.
            timeout: seconds until it is killed; they also count as time of the code.
            background: return at once; the command keeps running in later steps, and the result's
                `id` is for command_output and kill_command.
        """
        _check_text(self.name, "command", command)
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise ToolError(f"{self.name}: timeout must be seconds above 0, not {timeout!r}")
        given = {"command": command, "timeout": timeout, "background": bool(background)}
        return _in_worker(self.name, given, stays=bool(background))


class CommandOutputTool(WorkspaceTool):
    """The output of a background command."""

    name = "command_output"

    def execute(self, id: int) -> str:
        """Return the output of a background command so far, and whether it is still running.

        Args:
            id: the `id` of run_command's result.
        """
        return _in_worker(self.name, {"id": _check_id(self.name, id)})


class KillCommandTool(WorkspaceTool):
    """Ends a background command."""

    name = "kill_command"

    def execute(self, id: int) -> str:
        """Kill a background command with all its processes; return its output.

        Args:
            id: the `id` of run_command's result.
        """
        return _in_worker(self.name, {"id": _check_id(self.name, id)})


class ReadFileTool(WorkspaceTool):
    """Reads lines of a text file."""

    name = "read_file"

    def execute(self, path: str, start_line: int = 1, max_lines: int = 500) -> str:
        """Return lines of a text file in the working directory.

        If text is omitted, the last line in brackets says so.

        Args:
            path: path of the file.
            start_line: the first line, from 1.
            max_lines: maximum number of lines (and 32 KB).
        """
        _check_text(self.name, "path", path)
        for what, value in (("start_line", start_line), ("max_lines", max_lines)):
            if type(value) is not int or value < 1:
                raise ToolError(f"{self.name}: {what} must be a whole number from 1, not {value!r}")
        given = {"path": path, "start_line": start_line, "max_lines": max_lines}
        return _in_worker(self.name, given)


class WriteFileTool(WorkspaceTool):
    """Writes a text file."""

    name = "write_file"

    def execute(self, path: str, content: str) -> str:
        """Write a whole text file in the working directory, replacing an existing one.

        Args:
            path: path of the file; missing folders are created.
            content: the whole text.
        """
        _check_text(self.name, "path", path)
        if not isinstance(content, str):
            raise ToolError(f"{self.name}: content must be text, not {type(content).__name__}")
        return _in_worker(self.name, {"path": path, "content": content})


class ListFilesTool(WorkspaceTool):
    """Lists files and folders."""

    name = "list_files"

    def execute(self, path: str = ".", pattern: str = "*") -> list[str]:
        """Return the sorted paths of files and folders, relative to the working directory.

        Folders end with a /.

        Args:
            path: the folder to list.
            pattern: "*.py" for that folder only; "**/*.py" also for all folders below.
        """
        _check_text(self.name, "path", path)
        _check_text(self.name, "pattern", pattern)
        return cast("list[str]", _in_worker(self.name, {"path": path, "pattern": pattern}))


def workspace_tools() -> list[Tool]:
    """Return all tools of the workspace, for an agent's `tools`."""
    return [
        RunCommandTool(),
        CommandOutputTool(),
        KillCommandTool(),
        ReadFileTool(),
        WriteFileTool(),
        ListFilesTool(),
    ]


def _in_worker(name: str, kwargs: dict[str, Any], stays: bool = False) -> str:
    # the code gets the result of the worker's function
    return cast("str", LocalCall(name, kwargs, stays))


def _check_text(tool: str, what: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{tool}: {what} must be a non-empty text, not {value!r}")


def _check_id(tool: str, id: object) -> int:
    if type(id) is not int:
        raise ToolError(f"{tool}: id must be a number from run_command, not {id!r}")
    return id
