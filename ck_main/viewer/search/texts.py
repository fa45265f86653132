"""The texts of a run for the search: each with its place, the prompts without repetitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ck_main.viewer.runs.outline import ModelCall, SessionOutline, StepOutline, mapping_of, text_of
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.step_view import message_json
from ck_pro.events import EventKind
from ck_pro.session.observed import observation_text
from ck_pro.trajectory.reading.big_json import is_list, plain

MAX_CHARS = 2_000_000
"""Limit for one text."""
_PIECE = 20_000
_SLACK = 80
"""Characters of a reply beside its thought and code, such as the marks of a code block."""
_SHORT = 40
_PAGE_TEXTS = ("current_accessibility_tree", "html_md", "text", "page_text")

_WITH_ERROR = (EventKind.UNREADABLE, EventKind.ERROR, EventKind.MODEL_FAILED, EventKind.CALL)

Seen = Callable[[bytes], bool]
"""Returns whether a prompt's message with this hash was given before, and remembers it."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a run: in which session and step, and what it is."""

    sid: str
    step: int
    where: str
    text: str


def pieces(text: str) -> Iterator[str]:
    """Split a long text between words, so that snippets are found fast."""
    text = text[:MAX_CHARS]
    while len(text) > _PIECE:
        at = max(text.rfind(" ", _PIECE // 2, _PIECE), text.rfind("\n", _PIECE // 2, _PIECE))
        at = at if at > 0 else _PIECE
        yield text[:at]
        text = text[at:]
    if text.strip():
        yield text


def task_text(session: SessionOutline) -> Text:
    """Return the task of a session."""
    return Text(session.sid, 0, "task", session.task)


def output_texts(session: SessionOutline) -> Iterator[Text]:
    """Yield the result of a session that ended."""
    last = max(0, len(session.steps) - 1)
    text = "\n".join(text_of(session.results.get(name)) for name in ("output", "log"))
    yield Text(session.sid, last, "output", text)
    if session.message:
        yield Text(session.sid, last, "error", session.message)


def step_texts(reader: RunReader, sid: str, step: StepOutline, seen: Seen) -> Iterator[Text]:
    """Yield the texts of a step, prompts last."""
    known: list[str] = []

    def text(where: str, value: Any) -> Iterator[Text]:
        found = text_of(value)
        if found.strip():
            known.append(found)
            yield Text(sid, step.i, where, found)

    replies: list[Mapping[str, Any]] = []
    for event in reader.events(sid, step.i):
        kind, data = text_of(event.get("kind")), mapping_of(event.get("data"))
        if kind in (EventKind.PLAN, EventKind.ACTION, EventKind.END):
            yield from text("thought", data.get("thought"))
            yield from text("code", data.get("code"))
            if "state" in data:
                yield from text("thought", _plan_text(data["state"]))
        elif kind == EventKind.OBSERVATION:
            yield from text("observation", observation_text(_light(data.get("observation"))))
        elif kind == EventKind.WORLD:
            state = mapping_of(data.get("web_state_before"))
            for name in ("step_url", "title", *_PAGE_TEXTS):
                yield from text("page", state.get(name))
        elif kind == EventKind.SCREEN:
            yield from text("page", data.get("text"))
        elif kind in _WITH_ERROR:
            yield from text("error", data.get("error"))
        elif kind == EventKind.MODEL_CALL:
            replies.append(data)
    for data in replies:
        yield from _reply_texts(sid, step.i, data, known)
    for call in list(step.model_calls):
        yield from _prompt_texts(reader, call, known, seen)


def _light(observation: Any) -> Any:
    """Return an observation without the sessions in it."""
    if is_list(observation):
        return [_light(entry) for entry in observation]
    if isinstance(observation, Mapping):
        return {k: plain(v) for k, v in observation.items() if k not in ("session", "sel_cands")}
    return observation


def _plan_text(state: Any) -> str:
    return json.dumps(plain(state), ensure_ascii=False, default=str)


def _reply_texts(sid: str, i: int, data: Mapping[str, Any], known: list[str]) -> Iterator[Text]:
    """Yield a reply, unless its thought and code are all of it."""
    output = text_of(data.get("output"))
    rest = _without(output, known)
    if len(rest.strip()) > _SLACK:
        yield Text(sid, i, "reply", output)
    if data.get("tool_calls"):
        yield Text(sid, i, "reply", json.dumps(plain(data["tool_calls"]), ensure_ascii=False))
    reasoning = text_of(data.get("reasoning"))
    if reasoning.strip():
        yield Text(sid, i, "reply", reasoning)


def _prompt_texts(
    reader: RunReader, call: ModelCall, known: list[str], seen: Seen
) -> Iterator[Text]:
    """Yield the new messages of a prompt, without the texts of this step in them."""
    for message in reader.new_messages(call):
        shown = message_json(message)
        if shown.get("role") == "assistant":
            continue  # a reply of an earlier call
        content = shown.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        text = "\n".join(text_of(part.get("text")) for part in parts)
        name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        rest = _without(text, known)
        if rest.strip() and not seen(name):
            yield Text(call.sid, call.step, "prompt", rest)


def _without(text: str, known: list[str]) -> str:
    for one in known:
        if len(one) > _SHORT or len(one) * 2 > len(text):
            text = text.replace(one, " ")
    return text
