"""A person at the terminal, or a pipe, completes the prompts."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ck_pro.exceptions import InputError, ManualAbort, ReplayError
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.recordings.elements import fill_reply
from ck_pro.model.shorten import estimate_tokens
from ck_pro.model.types import Message, RawReply
from ck_pro.terminal import read_line, terminal_turn

HELP = """\
Write the reply, in any number of lines. Commands, each on a separate line:
  /send   send the reply (the end of input, Ctrl-D, does the same)
  /show   show the prompt again
  /raw    show the messages as JSON
  /edit   write the reply in $EDITOR
  /undo   remove the last line
  /abort  stop the whole run
  /help   show this help
//send stands for the text "/send". {{button 'Search'}} becomes the id of that page element.
"""
_EMPTY = "The reply is empty."
_DATA_SHOWN = 60  # characters of an image's data URL that /raw shows


class ManualBackend(Backend):
    """A person who writes the replies. Calls from several threads wait in a queue.

    Args:
        input: the source of replies; None: standard input.
        output: the destination of prompts; None: standard error, so that results stay separate.
    """

    free = True

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None):
        self._input, self._output = input, output

    def describe(self) -> str:
        return "a person at the terminal (manual)"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "manual"

    def complete(self, request: ChatRequest) -> RawReply:
        with request.context.asking(), terminal_turn(request.context.cancel):
            dialog = _Dialog(self._input or sys.stdin, self._output or sys.stderr, request)
            return RawReply(text=dialog.reply(), model="manual")


class _Dialog:
    """Show one prompt and read its reply."""

    def __init__(self, input: TextIO, output: TextIO, request: ChatRequest):
        self.input, self.output, self.request = input, output, request
        self.tty = input.isatty()
        self.lines: list[str] = []

    def reply(self) -> str:
        messages, where = self.request.messages, self.request.context.where()
        size = f"{len(messages)} messages, about {estimate_tokens(messages)} tokens"
        self.say(f"=== you are the model: {where} ({size}) ===")
        self.show(shown_messages(messages))
        if self.tty:
            self.say("Write the reply; /send on a separate line sends it, /help lists commands.")
        while True:
            ended = self.read_lines()
            text = "\n".join(self.lines)
            if not text.strip():
                if ended:
                    raise ManualAbort("manual: the input ended before a reply was complete")
                self.say(_EMPTY)
                continue
            try:
                return fill_reply(text, messages, self.request.context)
            except ReplayError as e:
                if ended or not self.tty:
                    raise
                self.say(f"{e}\nCorrect it with /edit or /undo, then /send again.")

    def read_lines(self) -> bool:
        """Read up to `/send`, or to the end of input; return whether the input ended."""
        while True:
            line = self.read_line()
            if line is None:
                return True
            if not self.lines:
                line = line.removeprefix("\ufeff")  # some editors start a file with this mark
            command = line.strip().lower()
            if command == "/send":
                return False
            if command in _COMMANDS:
                _COMMANDS[command](self)
                continue
            if meant := _meant_command(command):
                self.refuse(command, meant)
                continue
            if self.tty and command.startswith("/") and not command.startswith("//"):
                self.say("Added as text. /undo removes it; /help lists the commands.")
            self.lines.append(line[1:] if line.startswith("//") else line)

    def refuse(self, command: str, meant: str) -> None:
        """Report a mistyped command; in a pipe, where it would end the reply elsewhere, abort."""
        text = f"there is no command {command}; did you mean {meant}? Write /{command} for the text"
        if not self.tty:
            raise ManualAbort(f"manual: {text}")
        self.say(f"Not added: {text}.")

    def read_line(self) -> str | None:
        """Return the next line without its end; None at the end of input."""
        while True:
            try:
                return self._next_line()
            except UnicodeDecodeError as e:
                if not self.tty:
                    raise ManualAbort(f"manual: the input is not {e.encoding}") from None
                self.say(f"The line is not {e.encoding}. Write it again.")

    def _next_line(self) -> str | None:
        try:
            line = read_line(self.input, self.request.context.cancel, edit=True)
        except InputError as e:
            raise ManualAbort(f"manual: {e}") from None
        return line.rstrip("\r\n") if line else None

    def say(self, text: str) -> None:
        # a page in the prompt must not send control characters to the terminal
        safe = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        self.output.write(safe + "\n")
        self.output.flush()

    def show(self, text: str) -> None:
        """Show a text page by page; without a terminal, all at once."""
        lines, size = text.splitlines(), shutil.get_terminal_size()
        rows = max(5, size.lines - 2) if self.tty else len(text) + 1
        while lines:
            page = lines[: _lines_that_fit(lines, rows, size.columns)]
            del lines[: len(page)]
            self.say("\n".join(page))
            if lines:
                more = f"-- {len(lines)} more lines: Enter for the next page, q to write, /help --"
                self.output.write(more)
                self.output.flush()
                answer = self.read_line()
                if answer is None or not self.turns_page(answer):
                    return

    def turns_page(self, answer: str) -> bool:
        """Handle a line typed at the end of a page; return whether it asks for the next page."""
        typed = answer.strip().lower()
        if typed == "/help":
            self.say(HELP)
        if typed in ("", "/help"):
            return True
        if typed in _COMMANDS:
            _COMMANDS[typed](self)
        elif typed == "/send":
            self.say(_EMPTY)
        elif meant := _meant_command(typed):
            self.refuse(typed, meant)
        elif typed not in ("q", "quit"):
            self.lines.append(answer)
            self.say("Added as the first line of the reply. /undo removes it.")
        return False

    def edit(self) -> None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            self.say("/edit needs the environment variable EDITOR.")
            return
        with tempfile.TemporaryDirectory(prefix="ck-pro-") as folder:
            path = Path(folder) / "reply.md"
            path.write_text("\n".join(self.lines), encoding="utf-8", errors="replace")
            try:
                subprocess.run([*shlex.split(editor), str(path)], check=True)
                written = path.read_text(encoding="utf-8-sig")
            except (OSError, ValueError, subprocess.CalledProcessError) as e:
                self.say(f"The editor '{editor}' failed: {e}")
                return
        self.lines = written.rstrip("\n").split("\n")
        self.say("\n".join(self.lines) + "\n(/send sends this)")

    def undo(self) -> None:
        self.say(f"Removed: {self.lines.pop()}" if self.lines else _EMPTY)

    def abort(self) -> None:
        raise ManualAbort(f"manual: aborted by the user ({self.request.context.where()})")


_COMMANDS = {
    "/help": lambda d: d.say(HELP),
    "/show": lambda d: d.show(shown_messages(d.request.messages)),
    "/raw": lambda d: d.show(raw_messages(d.request.messages)),
    "/edit": _Dialog.edit,
    "/undo": _Dialog.undo,
    "/abort": _Dialog.abort,
}


_SIMILAR = 0.75
"""Similarity from which a line is a mistyped command; "/home" is less similar to "/help"."""


def _meant_command(line: str) -> str:
    """Return the command that a line mistypes; "" for any other text."""
    if not line.startswith("/") or line.startswith("//"):
        return ""
    near = difflib.get_close_matches(line, ("/send", *_COMMANDS), n=1, cutoff=_SIMILAR)
    return near[0] if near else ""


def _lines_that_fit(lines: Sequence[str], rows: int, columns: int) -> int:
    """Return how many lines fit on a screen of this size, at least one; long lines wrap."""
    from rich.cells import cell_len

    for n, line in enumerate(lines):
        rows -= max(1, -(-cell_len(line.expandtabs()) // max(1, columns)))
        if rows < 0:
            return max(1, n)
    return len(lines)


def shown_messages(messages: Sequence[Message]) -> str:
    """Return a prompt as text, each message below its role."""
    out: list[str] = []
    for message in messages:
        out.append(f"--- {message.get('role', '?')} ---")
        content = message.get("content")
        parts = content if isinstance(content, list) else [content or ""]
        out.extend(_shown_part(p) for p in parts)
        if message.get("tool_calls"):
            out.append(json.dumps(message["tool_calls"], ensure_ascii=False))
    return "\n".join(out)


def _shown_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part["text"]) if part.get("text") else f"[{part.get('type', 'part')}]"


def raw_messages(messages: Sequence[Message]) -> str:
    """Return the messages as JSON, with the data of images shortened."""
    return json.dumps(_shorten_data(list(messages)), ensure_ascii=False, indent=2)


def _shorten_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _shorten_data(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shorten_data(v) for v in value]
    if isinstance(value, str) and value.startswith("data:") and len(value) > _DATA_SHOWN:
        return f"{value[:_DATA_SHOWN]}... ({len(value)} characters)"
    return value
