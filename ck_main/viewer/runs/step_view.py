"""One step and one model call of a run as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ck_main.viewer.runs.outline import (
    ModelCall,
    Outline,
    mapping_of,
    number_of,
    text_of,
    usage_in,
)
from ck_main.viewer.runs.row_run import RowRun
from ck_main.viewer.runs.run_reader import RunReader
from ck_pro.events import EventKind
from ck_pro.trajectory.reading.big_json import is_list, plain

_BLOB = re.compile(r"blob:([0-9a-f]{64}\.[a-z0-9]+)")
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/=\s]*")
_PAGE_TEXTS = ("current_accessibility_tree", "html_md", "text", "page_text")
_ACTED_ON = re.compile(r"\w+ \[(\d+)\]")
"""The start of an action's result: "click [20] link 'Help'"."""
_LABEL_CHARS = 160


def step_json(reader: RunReader, sid: str, i: int) -> dict[str, Any] | None:
    """Return a step; None if it is missing."""
    if reader.outline.step(sid, i) is None:
        return None
    view = _StepView(reader, sid, i)
    for event in reader.events(sid, i):
        view.take(event)
    return view.json()


class _StepView:
    """Collects the events of a step."""

    def __init__(self, reader: RunReader, sid: str, i: int) -> None:
        self._reader, self._outline = reader, reader.outline
        self._sid, self._i = sid, i
        self.plan: dict[str, Any] | None = None
        self.end: dict[str, Any] | None = None
        self.action: Mapping[str, Any] = {}
        self.error = self.unreadable = ""
        self.observation: Any = None
        self.state: dict[str, Any] | None = None
        self.calls: dict[Any, dict[str, Any]] = {}
        self.model_calls: list[dict[str, Any]] = []
        self.pictures: list[Mapping[str, Any]] = []
        self.screens: list[Mapping[str, Any]] = []
        self.acted: list[Any] = []
        self.notes: list[dict[str, Any]] = []

    def take(self, event: Mapping[str, Any]) -> None:
        """Add an event."""
        kind, data = text_of(event.get("kind")), mapping_of(event.get("data"))
        if kind == EventKind.MODEL_CALL:
            self.model_calls.append(model_call_json(event, len(self.model_calls)))
        elif kind in (EventKind.STARTED, EventKind.CALL, EventKind.SUB_SESSION):
            self._take_call(kind, event, data)
        elif kind == EventKind.PLAN:
            self.plan = {**(self.plan or {}), **plain(data)}
        elif kind == EventKind.ACTION:
            self.action = {**self.action, **plain(data)}
        elif kind == EventKind.WORLD:
            self.state = plain(data)
        elif kind == EventKind.OBSERVATION:
            self.observation = data.get("observation")
        elif kind == EventKind.END:
            self.end = {**(self.end or {}), **plain(data)}
        elif kind == EventKind.SCREEN:
            self.screens.append(data)
        elif kind == "picture":
            self.pictures.append(data)
        elif kind == EventKind.ACTED:
            self.acted.append(plain(data))
        else:
            self._take_note(kind, event, data)

    def _take_note(self, kind: str, event: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        if kind == EventKind.UNREADABLE:
            self.unreadable = text_of(data.get("error"))
        elif kind == EventKind.ERROR:
            self.error = text_of(data.get("error"))
        elif kind == EventKind.MODEL_FAILED:
            self.error = self.error or text_of(data.get("error"))
            self.notes.append({"kind": kind, "data": plain(data)})
        elif kind not in (EventKind.STEP, EventKind.FINISH):
            self.notes.append({"kind": kind, "data": plain(data)})

    def _take_call(self, kind: str, event: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        n = data.get("call")
        key = n if isinstance(n, int) else f"session {data.get('session')}"
        call = self.calls.setdefault(
            key, {"n": n, "name": data.get("name"), "arguments": None, "sid": None}
        )
        time, start = number_of(event.get("time")), self._start()
        if kind == EventKind.STARTED:
            call["arguments"] = plain(data.get("arguments"))
            call["start"] = _since(time, start)
        elif kind == EventKind.SUB_SESSION:
            call["sid"] = data.get("session")
        else:
            seconds = number_of(event.get("duration"))
            call["seconds"] = seconds
            if call.get("start") is None and time is not None and seconds is not None:
                call["start"] = _since(time - seconds, start)
            for name in ("value", "error", "interrupted"):
                if name in data:
                    call[name] = plain(data[name])

    def _start(self) -> float | None:
        main = self._outline.main
        return main.start if main else None

    def json(self) -> dict[str, Any]:
        """Return the step."""
        step = self._outline.step(self._sid, self._i)
        start = self._start()
        return {
            "sid": self._sid,
            "i": self._i,
            "start": _since(step.start if step else None, start),
            "plan": self._plan(),
            "thought": self.action.get("thought"),
            "code": self.action.get("code"),
            "error": self.error,
            "unreadable": self.unreadable,
            "calls": list(self.calls.values())
            or [_acted_json(n, a) for n, a in enumerate(self.acted)],
            "observation": observation_parts(self._reader, self.observation),
            "state_before": _without_texts(self.state),
            "page": self._page(),
            "model_calls": self.model_calls,
            "notes": self.notes,
            "end": self._end(),
        }

    def _plan(self) -> dict[str, Any] | None:
        """Return the plan, with what changed since the session's last one."""
        if self.plan is None:
            return None
        changed: dict[str, Any] = {}
        state = self.plan.get("state")
        if isinstance(state, Mapping):
            before = self._state_before()
            changed = {
                name: [before.get(name), state.get(name)]
                for name in dict.fromkeys((*before, *state))
                if before.get(name) != state.get(name)
            }
        names = ("thought", "code", "state")
        return {**{name: self.plan.get(name) for name in names}, "changed": changed}

    def _state_before(self) -> Mapping[str, Any]:
        for i in range(self._i - 1, -1, -1):
            for event in reversed(self._reader.events(self._sid, i)):
                state = mapping_of(event.get("data")).get("state")
                if event.get("kind") == EventKind.PLAN and isinstance(state, Mapping):
                    return mapping_of(plain(state))
        return {}

    def _end(self) -> dict[str, Any] | None:
        session = self._outline.sessions[self._sid]
        if self.end is None and (self._i + 1 < len(session.steps) or not session.results):
            return None
        self.end = self.end or {}
        results = mapping_of(self.end.get("final_results")) or session.results
        parsed = {name: text_of(self.end.get(name)) for name in ("thought", "code")}
        return {**parsed, "output": results.get("output"), "log": results.get("log")}

    def _page(self) -> dict[str, Any] | None:
        state = mapping_of((self.state or {}).get("web_state_before"))
        pictures = [self._picture(data) for data in self.pictures]
        pictures = [picture for picture in pictures if picture["picture"]]
        screens = [_screen_json(screen) for screen in self.screens]
        if not (state or pictures or screens):
            return None
        text = next((state[k] for k in _PAGE_TEXTS if isinstance(state.get(k), str)), None)
        page: dict[str, Any] = {
            "url": state.get("step_url") or state.get("target_url"),
            "title": state.get("title"),
            "text": text,
            "picture": None,
            "width": None,
            "height": None,
            "targets": [],
        }
        if not pictures:
            page["targets"] = self._targets()
        shown = pictures or [screen for screen in screens if screen["picture"]]
        if shown:
            page.update({k: shown[0][k] for k in ("picture", "width", "height") if k in shown[0]})
            page["url"] = page["url"] or shown[0]["url"]
            same = [p["targets"] for p in pictures if p["picture"] == page["picture"]]
            page["targets"] = next(filter(None, same), page["targets"])
        page["text"] = page["text"] or next((s["text"] for s in screens if s.get("text")), None)
        return {**page, "pictures": pictures, "screens": screens}

    def _picture(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return a step picture; one that precedes an action has the action's targets."""
        number = data.get("call")
        call = mapping_of(self.calls.get(number) if isinstance(number, int) else None)
        label = _label(call.get("error") or call.get("value") or call.get("name"))
        boxes = data.get("targets")
        found = [_box(box) for box in boxes] if is_list(boxes) else []
        named = _ACTED_ON.match(label)
        facts = {"name": call.get("name"), "id": named[1] if named else None, "label": label}
        targets = [{**facts, "box": box} for box in found if box is not None]
        more = {"call": number if call else None, "name": call.get("name"), "label": label}
        return {**picture_json(data, targets if call else []), **more}

    def _targets(self) -> list[dict[str, Any]]:
        """Return the elements that this step's calls act on, for the page's text."""
        found = []
        for call in self.calls.values():
            label = _label(call.get("value"))
            named = _ACTED_ON.match(label)
            if named is not None:
                place = {"id": named[1], "box": None, "label": label}
                found.append({"name": call.get("name"), **place})
        return found


def _label(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= _LABEL_CHARS else f"{text[: _LABEL_CHARS - 1]}…"


def _box(value: Any) -> list[Any] | None:
    """Return `[x, y, width, height]`; None if it is not one."""
    good = is_list(value) and len(value) == 4 and all(number_of(v) is not None for v in value)
    return list(value) if good else None


def _without_texts(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the state before a step without the text of the page, which is in `page`."""
    web = mapping_of((state or {}).get("web_state_before"))
    if not web or state is None:
        return state
    return {**state, "web_state_before": {k: v for k, v in web.items() if k not in _PAGE_TEXTS}}


def _acted_json(n: int, acted: Any) -> dict[str, Any]:
    """Return a typed action as a call."""
    action, observed = mapping_of(acted.get("action")), mapping_of(acted.get("observation"))
    arguments = {k: v for k, v in action.items() if k != "kind"}
    value = observed.get("text") or observed.get("content") or json.dumps(observed)
    return {"n": n, "name": action.get("kind"), "arguments": arguments, "value": value, "sid": None}


def picture_json(data: Mapping[str, Any], targets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a step picture."""
    return {
        "picture": blob_name(data.get("image")),
        "url": data.get("url"),
        "width": number_of(data.get("width")),
        "height": number_of(data.get("height")),
        "targets": targets,
    }


def _screen_json(data: Mapping[str, Any]) -> dict[str, Any]:
    image = data.get("image")
    picture = blob_name(image) or image_url(image)
    return {"picture": picture, "url": data.get("current_url"), "text": text_of(data.get("text"))}


def observation_parts(reader: RunReader, observation: Any) -> list[dict[str, Any]]:
    """Return an observation as texts, and references to sessions of sub-agents."""
    parts: list[dict[str, Any]] = []
    for entry in observation if is_list(observation) else (observation,):
        if isinstance(entry, str):
            parts.append({"text": entry})
        elif isinstance(entry, Mapping):
            session = entry.get("session")
            if isinstance(session, Mapping):
                session = reader.session_id(session) if isinstance(reader, RowRun) else None
            text = entry.get("repr")
            if not isinstance(text, str):
                rest = {k: v for k, v in entry.items() if k not in ("session", "sel_cands")}
                text = json.dumps(plain(rest), ensure_ascii=False, default=str)
            parts.append({"session": session, "text": text})
        elif entry is not None:
            parts.append({"text": json.dumps(plain(entry), ensure_ascii=False, default=str)})
    return parts


# --- model calls -----------------------------------------------------------------------------


def model_call_json(event: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return the facts about a model call without its texts."""
    data = mapping_of(event.get("data"))
    return {
        "n": n,
        "phase": event.get("phase"),
        "model": data.get("model"),
        "target": data.get("target"),
        "usage": usage_in(data),
        "estimated": bool(mapping_of(data.get("usage")).get("estimated")),
        "money": number_of(data.get("cost")),
        "seconds": number_of(event.get("duration")),
        "finish_reason": data.get("finish_reason"),
        "attempts": data.get("attempts"),
        "prefix_share": number_of(data.get("prefix_share")),
    }


def find_call(outline: Outline, sid: str, i: int, n: int) -> ModelCall | None:
    """Return a model call of a step; None if it is missing."""
    step = outline.step(sid, i)
    calls = step.model_calls if step else []
    return calls[n] if 0 <= n < len(calls) else None


def call_json(reader: RunReader, sid: str, i: int, n: int) -> dict[str, Any] | None:
    """Return a model call with its messages; None if it is missing."""
    call = find_call(reader.outline, sid, i, n)
    if call is None:
        return None
    messages = [message_json(message) for message in reader.messages(call)]
    same = reader.shared_prefix(call)
    characters = 0 if same is None else sum(map(message_size, messages[:same]))
    return {
        **call_facts(reader, call),
        "messages": messages,
        "same": None if same is None else {"messages": same, "characters": characters},
    }


def call_facts(reader: RunReader, call: ModelCall) -> dict[str, Any]:
    """Return a model call without its messages."""
    event = reader.call_event(call)
    data = mapping_of(event.get("data"))
    before = call.previous
    return {
        **model_call_json(event, call.n),
        "output": data.get("output"),
        "reasoning": data.get("reasoning"),
        "tool_calls": plain(data.get("tool_calls")),
        "items": plain(data.get("items")),
        "params": plain(data.get("params")),
        "previous": before and {"sid": before.sid, "step": before.step, "n": before.n},
    }


def message_json(message: Any) -> dict[str, Any]:
    """Return a chat message: `content` is text, or a list of `{text}` and `{image}` parts."""
    if not isinstance(message, Mapping):
        return {"role": "", "content": _as_text(message)}
    content = message.get("content")
    rest = {k: plain(v) for k, v in message.items() if k not in ("role", "content")}
    if is_list(content):
        content = [_part(part) for part in content]
    elif content is not None and not isinstance(content, str):
        content = _as_text(content)
    return {"role": text_of(message.get("role")), "content": content, **rest}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            return {"text": part["text"]}
        for key in ("image_url", "image", "url"):
            value = part.get(key)
            url = value.get("url") if isinstance(value, Mapping) else value
            image = blob_name(url) or image_url(url)
            if image:
                return {"image": image}
    return {"text": _as_text(part)}


def blob_name(value: Any) -> str | None:
    """Return the name of a stored image, from a reference in a journal."""
    found = _BLOB.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def image_url(value: Any) -> str | None:
    """Return a value if it is the data URL of an image that cannot contain scripts."""
    return value if isinstance(value, str) and _DATA_URL.fullmatch(value) else None


def _as_text(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def message_size(message: Mapping[str, Any]) -> int:
    """Return the number of characters in a message."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return sum(len(part.get("text") or "") for part in parts)


def _since(time: float | None, start: float | None) -> float | None:
    return None if time is None or start is None else round(time - start, 6)
