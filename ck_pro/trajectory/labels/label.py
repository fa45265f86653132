"""One label: the line of a label file, and its checked form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, cast

from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.messages import MessageError, normal_tool_calls

Verdict = Literal["good", "bad", "exclude", "include"]
Level = Literal["run", "session", "step", "call"]
VERDICTS: tuple[Verdict, ...] = ("good", "bad", "exclude", "include")
LEVELS: tuple[Level, ...] = ("run", "session", "step", "call")
MAX_TEXT = 1_000_000
"""Characters of a comment or a corrected reply."""

_NUMBERS = ("try", "step", "call")
_TEXTS = ("id", "run", "session", "agent", "agent_path", "phase")
KEYS = ("id", "try", "run", "session", "agent", "agent_path", "step", "call", "phase")
"""Keys of a target."""
_FACTS = ("label", "comment", "reply", "when", "who", "recorded")
"""Keys of a line beside those of its target."""


TargetLine = TypedDict(
    "TargetLine",
    {
        "id": str,
        "try": int,
        "run": str,
        "session": str,
        "agent": str,
        "agent_path": str,
        "step": int,
        "call": int,
        "phase": str,
    },
    total=False,
)
"""The target of a label: the calls whose facts equal all given values.

- `id`: of the task
- `try`: index of the try, from 0
- `run`: id of the run's main session
- `session`: id of the session that made the call; `agent`, `agent_path`: of its agent
- `step`: index of the step in its session
- `call`: index of the call in its step, see `step_calls`
- `phase`: "plan", "action", "end" or "tool:NAME"
"""


class LabelLine(TypedDict, total=False):
    """A line of a label file: the whole state of one target. The last line of a target applies.

    Args:
        when: time of the decision, ISO 8601 in UTC.
        who: name of the person or program.
        target: see `TargetLine`; in lines that are written by hand, its keys may be in the line.
        label: "good", "bad", "exclude" or "include"; null or missing: none.
        comment: text.
        reply: the corrected reply of a call: text, or `{content, tool_calls, reasoning}`.
        recorded: `reply_mark` of the reply that the label is about.
    """

    when: str
    who: str
    target: TargetLine
    label: Verdict | None
    comment: str
    reply: str | dict[str, Any]
    recorded: str


@dataclass(frozen=True)
class Target:
    """The checked keys of a `TargetLine`, sorted."""

    keys: tuple[tuple[str, str | int], ...]

    @classmethod
    def of(cls, keys: Mapping[str, Any]) -> Target:
        """Check the keys of a target.

        Raises:
            InputError: a key is unknown, or its value has a wrong type.
        """
        found: dict[str, str | int] = {}
        for key, value in keys.items():
            if key not in KEYS:
                raise InputError(f"unknown key '{key}'; known keys: {', '.join(KEYS)}")
            if key == "id" and isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            kind = "a number" if key in _NUMBERS else "text"
            fits = isinstance(value, int) if key in _NUMBERS else isinstance(value, str)
            if not fits or isinstance(value, bool):
                raise InputError(f"'{key}' of a target must be {kind}, not {_short(value)}")
            found[key] = value
        return cls(tuple(sorted(found.items())))

    @property
    def level(self) -> Level:
        """What the target names: a run, a session, a step or a call."""
        names = {key for key, _ in self.keys}
        if "step" in names:
            return "call" if names & {"call", "phase"} else "step"
        return "session" if names - {"id", "try", "run"} else "run"

    def matches(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a call with these facts is in the target."""
        return all(facts.get(key) == value for key, value in self.keys)

    def __getitem__(self, key: str) -> str | int | None:
        return next((value for name, value in self.keys if name == key), None)

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.keys) or "all"


@dataclass(frozen=True)
class Reply:
    """A corrected reply.

    Args:
        content: its text.
        tool_calls: its tool calls, see `normal_tool_calls`.
        reasoning: the reasoning to train on.
    """

    content: str
    tool_calls: tuple[Any, ...] = ()
    reasoning: str = ""

    @classmethod
    def of(cls, value: Any) -> Reply:
        """Check a corrected reply.

        Raises:
            InputError: it is neither text nor an object with text and tool calls, or is empty.
        """
        body = {"content": value} if isinstance(value, str) else value
        if not isinstance(body, Mapping):
            raise InputError(f"'reply' must be text or an object, not {_short(value)}")
        content, reasoning = body.get("content") or "", body.get("reasoning") or ""
        for name, text in (("content", content), ("reasoning", reasoning)):
            _check_text(f"'{name}' of the reply", text)
        try:
            calls = tuple(normal_tool_calls(body.get("tool_calls") or []))
        except MessageError:
            raise InputError(
                "'tool_calls' of the reply must be a list of calls with a name and arguments "
                "(an object)"
            ) from None
        if not content.strip() and not calls:
            raise InputError("'reply' is empty; write null to take a correction back")
        return cls(content, calls, reasoning)

    def to_json(self) -> str | dict[str, Any]:
        """Return the value of `reply` in a line."""
        if not self.tool_calls and not self.reasoning:
            return self.content
        out: dict[str, Any] = {"content": self.content, "tool_calls": list(self.tool_calls)}
        return {**out, "reasoning": self.reasoning} if self.reasoning else out

    def message(self) -> dict[str, Any]:
        """Return the reply as an assistant's message in normal form."""
        out: dict[str, Any] = {"role": "assistant", "content": self.content}
        return {**out, "tool_calls": list(self.tool_calls)} if self.tool_calls else out


@dataclass(frozen=True)
class Label:
    """The state of one target.

    Args:
        target: what it is about.
        verdict: "good", "bad", "exclude", "include"; None without a judgement.
        comment: text.
        reply: the corrected reply; only for calls.
        when, who, recorded: see `LabelLine`.
        where: file and line, "" for a new label.
    """

    target: Target
    verdict: Verdict | None = None
    comment: str = ""
    reply: Reply | None = None
    when: str = ""
    who: str = ""
    recorded: str = ""
    where: str = ""

    @property
    def empty(self) -> bool:
        """Whether it takes back an earlier label."""
        return self.verdict is None and not self.comment and self.reply is None

    @classmethod
    def parse(cls, text: str | bytes, where: str = "") -> Label:
        """Parse a line.

        Raises:
            InputError: it is not a label; the message says why, without `where`.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError("not JSON") from None
        return replace(cls.of(data), where=where)

    @classmethod
    def of(cls, data: Any) -> Label:
        """Check a `LabelLine`.

        Raises:
            InputError: it is not a label.
        """
        if not isinstance(data, Mapping) or not (data.keys() & {"label", "comment", "reply"}):
            raise InputError('a label is an object with "target" and "label"')
        keys = data.get("target", {k: v for k, v in data.items() if k not in _FACTS})
        if not isinstance(keys, Mapping):
            raise InputError(f"'target' must be an object, not {_short(keys)}")
        verdict = data.get("label")
        if verdict is not None and verdict not in VERDICTS:
            known = ", ".join(VERDICTS)
            raise InputError(f"a label is {known} or null, not {_short(verdict)}")
        target = Target.of(keys)
        reply = None if data.get("reply") is None else Reply.of(data["reply"])
        if reply is not None and (target.level != "call" or target["session"] is None):
            raise InputError("a corrected reply needs a target with session, step and call")
        texts = {k: data.get(k) or "" for k in ("comment", "when", "who", "recorded")}
        for name, text in texts.items():
            _check_text(f"'{name}'", text)
        return cls(target, verdict, reply=reply, **texts)

    def to_line(self) -> LabelLine:
        """Return the label as an object for its line."""
        line: dict[str, Any] = {
            "when": self.when,
            "who": self.who,
            "target": dict(self.target.keys),
            "label": self.verdict,
            "comment": self.comment,
            "reply": None if self.reply is None else self.reply.to_json(),
            "recorded": self.recorded,
        }
        kept = {k: v for k, v in line.items() if v or k in ("label", "target")}
        return cast(LabelLine, kept)


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {_short(value)}")
    if len(value) > MAX_TEXT:
        raise InputError(f"{name} has {len(value):,} characters; the limit is {MAX_TEXT:,}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
