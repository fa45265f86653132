"""The workspace tools in the worker: commands and files, with the rights of the code."""

from __future__ import annotations

import importlib.util
import itertools
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from . import stubs
from .commands import GRACE_SECONDS, Command

MAX_BACKGROUND = 16
MAX_READ_BYTES = 32_768
"""Maximum bytes of text that `read_file` returns."""
MAX_LINE = 4000
MAX_FILES = 2000
_MAX_ENDED = 64
_PROBE_BYTES = 8192
_LAST_OUTPUT_SECONDS = 0.5


class CommandText(str):
    """The result of a command: its output and a note, as text for a model.

    Attributes:
        output: the output without the note.
        exit_code: a number (negative: the signal that killed it), or None while it runs.
        id: of a background command, else None.
    """

    output: str
    exit_code: int | None
    id: int | None

    @classmethod
    def make(cls, output: str, note: str, exit_code: int | None, id: int | None) -> CommandText:
        """Create the result."""
        end = "" if not output or output.endswith("\n") else "\n"
        made = cls(f"{output}{end}[{note}]")
        made.output, made.exit_code, made.id = output, exit_code, id
        return made

    def __reduce__(self) -> Any:
        return str, (str(self),)


class Workspace:
    """The commands and files of one worker.

    Args:
        workdir: the working directory, a path without symbolic links.
        scratch: a second folder whose files can be read and written, also without links.
    """

    def __init__(self, workdir: str, scratch: str):
        self._workdir = Path(workdir)
        self._scratch = Path(scratch)
        self._ids = itertools.count(1)
        self._background: dict[int, Command] = {}
        self._foreground: set[Command] = set()
        self._actions: dict[str, Callable[..., Any]] = {
            "run_command": self._run_command,
            "kill_command": self._kill_command,
            "command_output": self._command_output,
            "read_file": self._read_file,
            "write_file": self._write_file,
            "list_files": self._list_files,
        }

    def do(self, name: str, kwargs: dict[str, Any], package: str) -> Any:
        """Run a call that the parent sent back.

        Args:
            name: of the function.
            kwargs: its arguments.
            package: folder of the package with the function; "" for one of the workspace.

        Raises:
            Exception: an error with the class name `ToolError` and one line for the model.
        """
        try:
            function = getattr(_load(package), name) if package else self._actions[name]
            return function(**kwargs)
        except OSError as error:
            where = f": {error.filename!r}" if error.filename is not None else ""
            raised = tool_error(f"{name}: {error.strerror or error}{where}")
        except (ValueError, MemoryError) as error:
            raised = tool_error(f"{name}: {error or 'not enough memory'}")
        except Exception as error:
            if not package or type(error).__name__ != "ToolError":
                raise
            raised = tool_error(f"{name}: {error}")
        raise raised

    def kill_foreground(self) -> None:
        """Kill all foreground commands. Their calls have been cancelled."""
        for command in list(self._foreground):
            command.kill()
        self._foreground.clear()

    # -- commands

    def _run_command(self, command: str, timeout: float, background: bool) -> CommandText:
        if background:
            return self._start(command)
        running = Command(command, str(self._workdir))
        self._foreground.add(running)
        in_time = False
        try:
            in_time = running.wait(timeout)
        finally:
            left = running.end(grace=0.0 if in_time else GRACE_SECONDS)
            self._foreground.discard(running)
            running.read_rest()
        code = running.process.returncode
        if not in_time:
            note = f"killed after {timeout:g} s; use a larger timeout or background=True"
            return CommandText.make(running.output.text(), note, code, None)
        note = _ending(code)
        if left:
            note += "; killed the processes it left running; to keep them, use background=True"
        return CommandText.make(running.output.text(), note, code, None)

    def _start(self, command: str) -> CommandText:
        alive = [n for n, one in self._background.items() if one.process.poll() is None]
        if len(alive) >= MAX_BACKGROUND:
            raise tool_error(
                f"run_command: {MAX_BACKGROUND} background commands are already running; "
                "end one with kill_command(id)"
            )
        ended = [number for number in self._background if number not in alive]
        for number in ended[: max(0, len(self._background) - _MAX_ENDED)]:
            del self._background[number]
        running = Command(command, str(self._workdir))
        number = next(self._ids)
        self._background[number] = running
        running.drain_in_background()
        note = (
            f"command {number} runs in the background; command_output({number}) returns its "
            f"output, kill_command({number}) ends it"
        )
        return CommandText.make("", note, None, number)

    def _find(self, tool: str, id: int) -> Command:
        found = self._background.get(id)
        if found is None:
            known = ", ".join(map(str, self._background)) or "none"
            raise tool_error(f"{tool}: no background command {id!r}; known ids: {known}")
        return found

    def _command_output(self, id: int) -> CommandText:
        found = self._find("command_output", id)
        if found.process.poll() is None:
            return CommandText.make(found.output.text(), f"command {id} is running", None, id)
        found.await_drained(_LAST_OUTPUT_SECONDS)
        return self._describe_end(id, found, "has ended")

    def _kill_command(self, id: int) -> CommandText:
        found = self._find("kill_command", id)
        was_alive = found.process.poll() is None
        if was_alive:
            found.end()
        else:
            found.kill_strays()
        found.await_drained(_LAST_OUTPUT_SECONDS)
        how = "was killed" if was_alive else "had already ended"
        return self._describe_end(id, found, how)

    def _describe_end(self, id: int, command: Command, how: str) -> CommandText:
        command.close_leash()
        code = command.process.returncode
        note = f"command {id} {how}: {_ending(code)}"
        return CommandText.make(command.output.text(), note, code, id)

    # -- files

    def _resolve(self, tool: str, path: str) -> Path:
        target = Path(os.path.realpath(self._workdir / path))
        roots = (self._workdir, self._scratch) if PurePath(path).is_absolute() else (self._workdir,)
        if any(root in (target, *target.parents) for root in roots):
            return target
        raise tool_error(f"{tool}: {path!r} is outside the working directory")

    def _read_file(self, path: str, start_line: int, max_lines: int) -> str:
        source = self._resolve("read_file", path)
        facts = source.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise tool_error(f"read_file: {path!r} is a folder; use list_files({path!r})")
        if not stat.S_ISREG(facts.st_mode):
            raise tool_error(f"read_file: {path!r} is not a regular file")
        with source.open("rb") as file:
            if b"\0" in file.read(_PROBE_BYTES):
                raise tool_error(
                    f"read_file: {path!r} is binary ({facts.st_size} bytes); read it in code"
                )
            file.seek(0)
            for number in range(1, start_line):
                if not _skip_line(file):
                    raise tool_error(
                        f"read_file: {path!r} has only {number - 1} lines, so no line {start_line}"
                    )
            return _read_lines(file, start_line, max_lines)

    def _write_file(self, path: str, content: str) -> str:
        target = self._resolve("write_file", path)
        if target.is_dir():
            raise tool_error(f"write_file: {path!r} is a folder")
        if target.exists() and not target.is_file():
            raise tool_error(f"write_file: {path!r} is not a regular file")
        data = content.encode()  # may fail, so encode before the old content is overwritten
        existed = target.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return f"{'replaced' if existed else 'wrote'} {path}: {len(data)} bytes"

    def _list_files(self, path: str, pattern: str) -> list[str]:
        folder = self._resolve("list_files", path)
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "does not exist"
            raise tool_error(f"list_files: {path!r} {what}; name a folder")
        if ".." in PurePath(pattern).parts or PurePath(pattern).is_absolute():
            raise tool_error(f"list_files: the pattern {pattern!r} leads outside the folder")
        found = []
        for one in folder.glob(pattern):
            if one == folder:  # "**" matches it too
                continue
            shown = one.relative_to(self._workdir) if self._workdir in one.parents else one
            found.append(shown.as_posix() + ("/" if one.is_dir() else ""))
            if len(found) > MAX_FILES:
                raise tool_error(
                    f"list_files: more than {MAX_FILES} files match {pattern!r} in {path!r}; "
                    f"use a narrower pattern. Some of them: {', '.join(sorted(found)[:10])}"
                )
        return sorted(found)


def _load(folder: str) -> ModuleType:
    """Import a package from its folder, under a name that no package of the code has."""
    name = f"_ck_{os.path.basename(folder)}"  # noqa: PTH119
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, f"{folder}/__init__.py", submodule_search_locations=[folder]
        )
        assert spec is not None and spec.loader is not None
        package = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    return sys.modules[name]


def tool_error(message: str) -> Exception:
    """Create the error that a tool in the parent would raise."""
    described: dict[str, Any] = {"type": "ToolError", "bases": [], "args": None, "text": message}
    return stubs.make_error(described)


def _ending(code: int | None) -> str:
    if code is None:
        return "its process cannot be killed"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _skip_line(file: Any) -> bool:
    """Skip one line of any length; return False at the end of the file."""
    seen = False
    while piece := file.readline(_PROBE_BYTES):
        seen = True
        if piece.endswith(b"\n"):
            break
    return seen


def _read_lines(file: Any, start_line: int, max_lines: int) -> str:
    lines: list[str] = []
    size, shortened = 0, 0
    while len(lines) < max_lines and size < MAX_READ_BYTES:
        line = file.readline(MAX_LINE)
        if not line:
            break
        size += len(line)
        if len(line) == MAX_LINE and not line.endswith(b"\n") and _skip_line(file):
            shortened += 1
            line += b" [...]\n"
        lines.append(line.decode("utf-8", "replace"))
    last = start_line + len(lines) - 1
    notes = []
    if shortened:
        notes.append(f"lines shortened to {MAX_LINE} bytes, at [...]: {shortened}")
    if file.readline(1):
        notes.append(f"lines {start_line} to {last}; more from start_line={last + 1}")
    return "".join(lines) + (f"[{'; '.join(notes)}]" if notes else "")
