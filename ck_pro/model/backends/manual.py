"""`call_target: manual`: a person at the terminal, or a pipe, answers in the model's place."""

from __future__ import annotations

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

from ck_pro.exceptions import ManualAbort, ReplayError
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.backends.terminal import read_line, terminal_turn
from ck_pro.model.recordings.elements import fill_reply
from ck_pro.model.shorten import estimate_tokens
from ck_pro.model.types import Message, RawReply

HELP = """\
Write the reply, in as many lines as it takes. A line by itself does this:
  /send   send the reply (so does the end of input, Ctrl-D)
  /show   show the prompt again
  /raw    show the messages as JSON
  /edit   write the reply in $EDITOR
  /undo   take the last line back
  /abort  give up this run
  /help   this text
//send is the text "/send". {{button 'Search'}} becomes the id of that element of the page.
"""
_NOTHING = "Nothing to send yet."
_DATA_SHOWN = 60  # characters of an image's data URL that are shown


class ManualBackend(Backend):
    """A person. One at a time: calls from several threads queue up.

    Args:
        input: where replies come from; standard input when None.
        output: where prompts go; standard error when None, so that results stay apart.
    """

    free = True

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None):
        self._input, self._output = input, output

    def describe(self) -> str:
        return "a person at the terminal (manual)"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "manual"

    def complete(self, request: ChatRequest) -> RawReply:
        with terminal_turn(request.context.cancel):
            talk = _Talk(self._input or sys.stdin, self._output or sys.stderr, request)
            return RawReply(text=talk.reply(), model="manual")


class _Talk:
    """One prompt shown, one reply taken."""

    def __init__(self, input: TextIO, output: TextIO, request: ChatRequest):
        self.input, self.output, self.request = input, output, request
        self.tty = input.isatty()
        self.lines: list[str] = []

    def reply(self) -> str:
        messages, where = self.request.messages, self.request.context.where()
        size = f"{len(messages)} messages, about {estimate_tokens(messages)} tokens"
        self.say(f"=== you are the model: {where} ({size}) ===")
        if self.tty:
            self.show(shown_messages(messages))
            self.say("Write the reply; /send on a line by itself sends it, /help says more.")
        while True:
            ended = self.take_lines()
            text = "\n".join(self.lines)
            if not text.strip():
                if ended:
                    raise ManualAbort("manual: the input ended before a reply was given")
                self.say(_NOTHING)
                continue
            try:
                return fill_reply(text, messages, self.request.context)
            except ReplayError as e:
                if ended or not self.tty:
                    raise
                self.say(f"{e}\n/edit or /undo it, then /send again.")

    def take_lines(self) -> bool:
        """Read until the reply is sent; whether the input ended."""
        while True:
            line = self.read_line()
            if line is None:
                return True
            if not self.lines:
                line = line.removeprefix("\ufeff")  # some editors begin a file with this mark
            command = line.strip().lower()
            if command == "/send":
                return False
            if command in _COMMANDS:
                _COMMANDS[command](self)
                continue
            if self.tty and command.startswith("/") and not command.startswith("//"):
                self.say("Taken as text; /undo takes it back, /help lists the commands.")
            self.lines.append(line[1:] if line.startswith("//") else line)

    def read_line(self) -> str | None:
        """The next line without its end; None at the end of input."""
        while True:
            try:
                return self._next_line()
            except UnicodeDecodeError as e:
                if not self.tty:
                    raise ManualAbort(f"manual: the input is not {e.encoding}") from None
                self.say(f"That line was not {e.encoding}: write it again.")

    def _next_line(self) -> str | None:
        line = read_line(self.input, self.request.context.cancel, edit=True)
        return line.rstrip("\r\n") if line else None

    def say(self, text: str) -> None:
        # a web page in the prompt must not steer the terminal
        safe = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        self.output.write(safe + "\n")
        self.output.flush()

    def show(self, text: str) -> None:
        """The text page by page; at once when nobody sits there to turn pages."""
        lines, size = text.splitlines(), shutil.get_terminal_size()
        rows = max(5, size.lines - 2) if self.tty else len(text) + 1
        while lines:
            page = lines[: _that_fit(lines, rows, size.columns)]
            del lines[: len(page)]
            self.say("\n".join(page))
            if lines:
                told = f"-- {len(lines)} more lines: Enter for the next page, q to write, /help --"
                self.output.write(told)
                self.output.flush()
                answer = self.read_line()
                if answer is None or not self.turns_page(answer):
                    return

    def turns_page(self, answer: str) -> bool:
        """Do what was typed at the end of a page; whether the next one is wanted."""
        typed = answer.strip().lower()
        if typed == "/help":
            self.say(HELP)
        if typed in ("", "/help"):
            return True
        if typed in _COMMANDS:
            _COMMANDS[typed](self)
        elif typed == "/send":
            self.say(_NOTHING)
        elif typed not in ("q", "quit"):  # somebody began to write
            self.lines.append(answer)
            self.say("Taken as the first line of the reply; /undo takes it back.")
        return False

    def edit(self) -> None:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            self.say("Set EDITOR in the environment to use /edit.")
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
        self.say(f"Taken back: {self.lines.pop()}" if self.lines else "Nothing to take back.")

    def abort(self) -> None:
        raise ManualAbort(f"manual: aborted by the person ({self.request.context.where()})")


_COMMANDS = {
    "/help": lambda t: t.say(HELP),
    "/show": lambda t: t.show(shown_messages(t.request.messages)),
    "/raw": lambda t: t.show(raw_messages(t.request.messages)),
    "/edit": _Talk.edit,
    "/undo": _Talk.undo,
    "/abort": _Talk.abort,
}


def _that_fit(lines: Sequence[str], rows: int, columns: int) -> int:
    """How many of these lines a screen of so many rows shows, at least one; long lines wrap."""
    from rich.cells import cell_len

    for n, line in enumerate(lines):
        rows -= max(1, -(-cell_len(line.expandtabs()) // max(1, columns)))
        if rows < 0:
            return max(1, n)
    return len(lines)


def shown_messages(messages: Sequence[Message]) -> str:
    """A prompt as a person reads it: each message under its role."""
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
    """The messages as JSON, the data of images cut short."""
    return json.dumps(_cut_data(list(messages)), ensure_ascii=False, indent=2)


def _cut_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _cut_data(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut_data(v) for v in value]
    if isinstance(value, str) and value.startswith("data:") and len(value) > _DATA_SHOWN:
        return f"{value[:_DATA_SHOWN]}... ({len(value)} characters)"
    return value
