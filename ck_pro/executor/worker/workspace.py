"""The workspace tools, done here: commands and files, with the rights of the code and no more."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

from . import stubs
from .commands import GRACE_SECONDS, Command

MAX_BACKGROUND = 16
MAX_READ_BYTES = 32_768
"""Bytes of text that one `read_file` gives."""
MAX_LINE = 4000
MAX_FILES = 2000
_REMEMBERED = 64
_PROBE = 8192
_LAST_OUTPUT_SECONDS = 0.5


class CommandText(str):
    """What a command said, as text for a model.

    Attributes:
        output: that without the line about its end.
        exit_code: a number (negative: ended by that signal), or None while it runs.
        id: of a command in the background, else None.
    """

    output: str
    exit_code: int | None
    id: int | None

    @classmethod
    def make(cls, output: str, note: str, exit_code: int | None, id: int | None) -> CommandText:
        """Put the text and its facts together."""
        end = "" if not output or output.endswith("\n") else "\n"
        made = cls(f"{output}{end}[{note}]")
        made.output, made.exit_code, made.id = output, exit_code, id
        return made

    def __reduce__(self) -> Any:
        return str, (str(self),)


class Workspace:
    """The commands and files of one worker.

    Args:
        workdir: the working directory, without symbolic links on its way.
        scratch: another such place that the worker may write; files of both can be read and
            written.
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

    def do(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Do what the parent said of a call: do it yourself.

        Raises:
            Exception: named ToolError, with one line for the model.
        """
        try:
            return self._actions[name](**kwargs)
        except OSError as error:
            where = f": {error.filename!r}" if error.filename is not None else ""
            said = tool_error(f"{name}: {error.strerror or error}{where}")
        except (ValueError, MemoryError) as error:
            said = tool_error(f"{name}: {error or 'not enough memory'}")
        raise said

    def kill_foreground(self) -> None:
        """Kill the commands that calls wait for: those calls never go on."""
        for command in list(self._foreground):
            command.kill()
        self._foreground.clear()

    # -- commands

    def _run_command(self, command: str, timeout: float, background: bool) -> CommandText:
        if background:
            return self._begin(command)
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
            note = (
                f"killed after {timeout:g} s; what takes longer: give a larger timeout, "
                "or background=True"
            )
            return CommandText.make(running.ends.text(), note, code, None)
        note = _ending(code)
        if left:
            note += "; processes that it left running were killed: background=True lets them live"
        return CommandText.make(running.ends.text(), note, code, None)

    def _begin(self, command: str) -> CommandText:
        alive = [n for n, one in self._background.items() if one.process.poll() is None]
        if len(alive) >= MAX_BACKGROUND:
            raise tool_error(
                f"run_command: {MAX_BACKGROUND} commands run in the background already; "
                "end one by kill_command(id)"
            )
        ended = [number for number in self._background if number not in alive]
        for number in ended[: max(0, len(self._background) - _REMEMBERED)]:
            del self._background[number]
        running = Command(command, str(self._workdir))
        number = next(self._ids)
        self._background[number] = running
        running.drain_in_background()
        note = (
            f"command {number} runs in the background; command_output({number}) shows what it "
            f"has printed, kill_command({number}) ends it"
        )
        return CommandText.make("", note, None, number)

    def _find(self, tool: str, id: int) -> Command:
        found = self._background.get(id)
        if found is None:
            known = ", ".join(map(str, self._background)) or "none"
            raise tool_error(f"{tool}: no command {id!r} in the background; known are: {known}")
        return found

    def _command_output(self, id: int) -> CommandText:
        found = self._find("command_output", id)
        if found.process.poll() is None:
            return CommandText.make(found.ends.text(), f"command {id} is running", None, id)
        found.await_drained(_LAST_OUTPUT_SECONDS)
        return self._told(id, found, "has ended")

    def _kill_command(self, id: int) -> CommandText:
        found = self._find("kill_command", id)
        was_alive = found.process.poll() is None
        if was_alive:
            found.end()
        else:
            found.kill_strays()
        found.await_drained(_LAST_OUTPUT_SECONDS)
        return self._told(id, found, "was killed" if was_alive else "had ended before")

    def _told(self, id: int, command: Command, how: str) -> CommandText:
        command.let_go()
        code = command.process.returncode
        note = f"command {id} {how}: {_ending(code)}"
        return CommandText.make(command.ends.text(), note, code, id)

    # -- files

    def _place(self, tool: str, path: str) -> Path:
        place = Path(os.path.realpath(self._workdir / path))
        roots = (self._workdir, self._scratch) if PurePath(path).is_absolute() else (self._workdir,)
        if any(root in (place, *place.parents) for root in roots):
            return place
        raise tool_error(f"{tool}: {path!r} is outside the working directory")

    def _read_file(self, path: str, start_line: int, max_lines: int) -> str:
        place = self._place("read_file", path)
        facts = place.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise tool_error(f"read_file: {path!r} is a folder; list_files({path!r}) lists it")
        if not stat.S_ISREG(facts.st_mode):
            raise tool_error(f"read_file: {path!r} is no ordinary file")
        with place.open("rb") as file:
            if b"\0" in file.read(_PROBE):
                raise tool_error(
                    f"read_file: {path!r} is binary ({facts.st_size} bytes): read it by code"
                )
            file.seek(0)
            for number in range(1, start_line):
                if not _skip_line(file):
                    raise tool_error(
                        f"read_file: {path!r} has only {number - 1} lines, none at {start_line}"
                    )
            return _read_lines(file, start_line, max_lines)

    def _write_file(self, path: str, content: str) -> str:
        place = self._place("write_file", path)
        if place.is_dir():
            raise tool_error(f"write_file: {path!r} is a folder")
        if place.exists() and not place.is_file():
            raise tool_error(f"write_file: {path!r} is no ordinary file")
        data = content.encode()  # before the old content is gone: this may fail
        existed = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return f"{'replaced' if existed else 'wrote'} {path}: {len(data)} bytes"

    def _list_files(self, path: str, pattern: str) -> list[str]:
        place = self._place("list_files", path)
        if not place.is_dir():
            what = "is a file" if place.exists() else "is not there"
            raise tool_error(f"list_files: {path!r} {what}; give a folder")
        if ".." in PurePath(pattern).parts or PurePath(pattern).is_absolute():
            raise tool_error(f"list_files: the pattern {pattern!r} leads outside of the folder")
        found = []
        for one in place.glob(pattern):
            if one == place:  # "**" gives it too
                continue
            shown = one.relative_to(self._workdir) if self._workdir in one.parents else one
            found.append(shown.as_posix() + ("/" if one.is_dir() else ""))
            if len(found) > MAX_FILES:
                raise tool_error(
                    f"list_files: more than {MAX_FILES} files match {pattern!r} in {path!r}; "
                    f"narrow it down. Some of them: {', '.join(sorted(found)[:10])}"
                )
        return sorted(found)


def tool_error(message: str) -> Exception:
    """Make the error that a tool of the parent's would have raised."""
    described: dict[str, Any] = {"type": "ToolError", "bases": [], "args": None, "text": message}
    return stubs.make_error(described)


def _ending(code: int | None) -> str:
    if code is None:
        return "it does not end"
    return f"exit code {code}" if code >= 0 else f"ended by signal {-code}"


def _skip_line(file: Any) -> bool:
    """Read over one line, however long it is; False at the end of the file."""
    seen = False
    while piece := file.readline(_PROBE):
        seen = True
        if piece.endswith(b"\n"):
            break
    return seen


def _read_lines(file: Any, start_line: int, max_lines: int) -> str:
    lines: list[str] = []
    size, cut = 0, 0
    while len(lines) < max_lines and size < MAX_READ_BYTES:
        line = file.readline(MAX_LINE)
        if not line:
            break
        size += len(line)
        if len(line) == MAX_LINE and not line.endswith(b"\n") and _skip_line(file):
            cut += 1
            line += b" [...]\n"
        lines.append(line.decode("utf-8", "replace"))
    last = start_line + len(lines) - 1
    notes = []
    if cut:
        notes.append(f"lines are shown to {MAX_LINE} bytes: {cut} cut, at [...]")
    if file.readline(1):
        notes.append(f"lines {start_line} to {last}; more follow: start_line={last + 1}")
    return "".join(lines) + (f"[{'; '.join(notes)}]" if notes else "")
