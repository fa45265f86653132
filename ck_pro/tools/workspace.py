"""Tools of a code-acting agent's workspace: commands and files, inside the sandbox of its code.

A call is approved and logged like that of any tool; then the worker does it itself, with the rights
of the code and no more (`ck_pro/executor/worker/workspace.py`). See `docs/workspace.md`.
"""

from __future__ import annotations

from typing import Any, cast

from ck_pro.exceptions import ToolError
from ck_pro.executor import LocalCall
from ck_pro.tool import Tool

COMMAND_SECONDS = 30.0
"""Time limit of a command in the foreground that gives none itself."""


class RunCommandTool(Tool):
    """A shell command in the working directory."""

    name = "run_command"

    def execute(
        self, command: str, timeout: float = COMMAND_SECONDS, background: bool = False
    ) -> str:
        """Run a shell command in the working directory; returns its output (stderr included) and
        its exit code as text.

        The middle of a long output is cut out. The result has the attributes `output` and
        `exit_code` too. There is no input and no network beyond what the code has.

        Args:
            command: text for bash.
            timeout: seconds until it is killed; they also count as time of the code.
            background: return at once; the command lives on in later steps, and the result's `id`
                is for command_output and kill_command.
        """
        _check_text(self.name, "command", command)
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise ToolError(f"{self.name}: timeout must be seconds, more than 0, not {timeout!r}")
        given = {"command": command, "timeout": timeout, "background": bool(background)}
        return _in_worker(self.name, given, stays=bool(background))


class CommandOutputTool(Tool):
    """What a command in the background has printed."""

    name = "command_output"

    def execute(self, id: int) -> str:
        """Return what a command in the background has printed so far, and whether it still runs.

        Args:
            id: of the command, as run_command gave it.
        """
        return _in_worker(self.name, {"id": _check_id(self.name, id)})


class KillCommandTool(Tool):
    """Ends a command in the background."""

    name = "kill_command"

    def execute(self, id: int) -> str:
        """End a command in the background with all its processes; returns its last output.

        Args:
            id: of the command, as run_command gave it.
        """
        return _in_worker(self.name, {"id": _check_id(self.name, id)})


class ReadFileTool(Tool):
    """Lines of a text file."""

    name = "read_file"

    def execute(self, path: str, start_line: int = 1, max_lines: int = 500) -> str:
        """Return lines of a text file in the working directory; a last line in brackets says what
        is not shown.

        Args:
            path: of the file.
            start_line: the first line to show, from 1.
            max_lines: show at most so many (and 32 KB).
        """
        _check_text(self.name, "path", path)
        for what, value in (("start_line", start_line), ("max_lines", max_lines)):
            if type(value) is not int or value < 1:
                raise ToolError(f"{self.name}: {what} must be a whole number from 1, not {value!r}")
        given = {"path": path, "start_line": start_line, "max_lines": max_lines}
        return _in_worker(self.name, given)


class WriteFileTool(Tool):
    """Writes a text file."""

    name = "write_file"

    def execute(self, path: str, content: str) -> str:
        """Write a text file in the working directory: the whole of it, in place of what was there.

        Args:
            path: of the file; folders that are missing are made.
            content: all of its text.
        """
        _check_text(self.name, "path", path)
        if not isinstance(content, str):
            raise ToolError(f"{self.name}: content must be text, not {type(content).__name__}")
        return _in_worker(self.name, {"path": path, "content": content})


class ListFilesTool(Tool):
    """Names of files."""

    name = "list_files"

    def execute(self, path: str = ".", pattern: str = "*") -> list[str]:
        """Return the sorted paths of files and folders (these with a / at the end), relative to
        the working directory.

        Args:
            path: the folder to look in.
            pattern: "*.py" in that folder itself; "**/*.py" in all folders below too.
        """
        _check_text(self.name, "path", path)
        _check_text(self.name, "pattern", pattern)
        return cast("list[str]", _in_worker(self.name, {"path": path, "pattern": pattern}))


def workspace_tools() -> list[Tool]:
    """Make all tools of the workspace, to be added to an agent's `tools`."""
    return [
        RunCommandTool(),
        CommandOutputTool(),
        KillCommandTool(),
        ReadFileTool(),
        WriteFileTool(),
        ListFilesTool(),
    ]


def _in_worker(name: str, kwargs: dict[str, Any], stays: bool = False) -> str:
    # what arrives in the code is what the worker makes of it
    return cast("str", LocalCall(name, kwargs, stays))


def _check_text(tool: str, what: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{tool}: {what} must be a text that is not empty, not {value!r}")


def _check_id(tool: str, id: object) -> int:
    if type(id) is not int:
        raise ToolError(f"{tool}: id must be a number that run_command gave, not {id!r}")
    return id
