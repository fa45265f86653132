"""Read one try of an output row as the events of a journal, without times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_main.viewer.runs.outline import ModelCall, Outline, mapping_of, number_of, text_of
from ck_pro.events import EventKind
from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.attempts import (
    Try,
    agent_of,
    final_results,
    nested_sessions,
    session_key,
    sid_of,
    status_of,
)
from ck_pro.trajectory.reading.big_json import is_list, plain

_PHASES = ("plan", "action", "end")
_CALL_KEYS = ("llm_input", "llm_output", "llm_info")
_TASK_KEYS = ("id", "task", "file", "answer", "_orig", "skip_hard")


class RowRun:
    """One try of an output row as a `RunReader`.

    Args:
        attempt: the try.

    Attributes:
        earlier: number of earlier tries in the row.
    """

    def __init__(self, attempt: Try) -> None:
        self.outline = Outline()
        self._attempt = attempt
        self._sessions: dict[str, Mapping[str, Any]] = {}
        self._by_key: dict[bytes, str] = {}
        self._read = False
        self.earlier = 0
        self.size = 100_000

    def refresh(self) -> bool:
        """See `RunReader`. A row is read once; a part that is not a row's is a problem."""
        if self._read:
            return False
        self._read = True
        row = self._attempt.row
        self.outline.task = {key: plain(row.get(key)) for key in _TASK_KEYS if key in row}
        scored = row.get("eval")
        if isinstance(scored, Mapping) and not self._attempt.earlier:
            self.outline.scored = plain(scored)
        self.outline.written = True
        try:
            self._walk(self._attempt.session, None, [])
        except (InputError, RecursionError, TypeError, AttributeError, ValueError) as e:
            self.outline.problems.append(f"{self._attempt.where}: not an output row: {e}")
        return True

    def _walk(self, session: Mapping[str, Any], parent: str | None, path: list[str]) -> str:
        """Apply the events of a session and of those below it; return its id."""
        sid = self._add(session)
        agent = agent_of(session, len(path))
        path = [*path, agent]
        info = mapping_of(session.get("info"))
        start = number_of(info.get("start_time"))
        event = {"kind": EventKind.SESSION, "sid": sid, "parent": parent, "time": start}
        data = {"agent": agent, "task": text_of(session.get("task")), "path": path}
        self.outline.apply({**event, "data": data}, None)
        steps = session.get("steps")
        for i, step in enumerate(steps if is_list(steps) else ()):
            for event in step_events(sid, parent, i, mapping_of(step)):
                self.outline.apply(event, None)
            for nested in nested_sessions(mapping_of(mapping_of(step).get("action"))):
                if session_key(nested) in self._by_key:
                    continue
                child = self._walk(nested, sid, path)
                self._event(EventKind.SUB_SESSION, sid, i, {"session": child})
        results = final_results(session)
        if results:
            self._event(EventKind.END, sid, None, {"final_results": dict(results)})
        ended = {key: info.get(key) for key in ("stop_reason", "message", "variables")}
        status: dict[str, Any] = {"status": status_of(session), **ended, "budget": {}}
        end = number_of(info.get("end_time"))
        self._event(EventKind.STATUS, sid, None, status, end)
        return sid

    def _add(self, session: Mapping[str, Any]) -> str:
        sid = sid_of(session)
        if sid in self._sessions:
            sid = f"session-{len(self._sessions)}"
        self._sessions[sid] = session
        self._by_key[session_key(session)] = sid
        return sid

    def _event(
        self, kind: str, sid: str, i: int | None, data: Any, time: float | None = None
    ) -> None:
        event = {"kind": kind, "sid": sid, "i": i, "data": data, "time": time}
        self.outline.apply(event, None)

    # --- parts -----------------------------------------------------------------------------

    def _step(self, sid: str, i: int) -> Mapping[str, Any]:
        steps = self._sessions.get(sid, {}).get("steps")
        return mapping_of(steps[i]) if is_list(steps) and 0 <= i < len(steps) else {}

    def events(self, sid: str, i: int) -> Sequence[Mapping[str, Any]]:
        """See `RunReader`."""
        session = self.outline.sessions.get(sid)
        if session is None:
            return []
        found = list(step_events(sid, session.parent, i, self._step(sid, i)))
        action = mapping_of(self._step(sid, i).get("action"))
        for nested in nested_sessions(action):
            child = self._by_key.get(session_key(nested))
            data = {"session": child, "name": self._agent(child)}
            found.append({"kind": EventKind.SUB_SESSION, "sid": sid, "i": i, "data": data})
        return found

    def _agent(self, sid: str | None) -> str:
        session = self.outline.sessions.get(sid or "")
        return session.agent if session else ""

    def session_id(self, session: Mapping[str, Any]) -> str | None:
        """Return the id under which a nested session is in the outline."""
        return self._by_key.get(session_key(session))

    def session_data(self, sid: str) -> Mapping[str, Any]:
        """See `RunReader`."""
        info = mapping_of(self._sessions.get(sid, {}).get("info"))
        return {"info": plain(info), "config": plain(info.get("config") or {})}

    def call_event(self, call: ModelCall) -> Mapping[str, Any]:
        """See `RunReader`."""
        return self._call(call)

    def _call(self, call: ModelCall) -> Mapping[str, Any]:
        events = step_events(call.sid, None, call.step, self._step(call.sid, call.step))
        calls = [e for e in events if e["kind"] == EventKind.MODEL_CALL]
        return calls[call.n] if call.n < len(calls) else {}

    def messages(self, call: ModelCall) -> Sequence[Any]:
        """See `RunReader`."""
        found = mapping_of(self._call(call).get("data")).get("messages")
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        return found if is_list(found) else []

    def new_messages(self, call: ModelCall) -> Sequence[Any]:
        """See `RunReader`."""
        return self.messages(call)[self.shared_prefix(call) or 0 :]

    def shared_prefix(self, call: ModelCall) -> int | None:
        """See `RunReader`."""
        if call.previous is None:
            return None
        same = 0
        for one, other in zip(self.messages(call), self.messages(call.previous), strict=False):
            if plain(one) != plain(other):
                break
            same += 1
        return same

    def blob(self, name: str) -> bytes | None:
        """See `RunReader`. The images of a row are inside its messages."""
        return None


def step_events(
    sid: str, parent: str | None, i: int, step: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the events of a row's step."""

    def event(kind: str, data: Mapping[str, Any], phase: str | None = None) -> dict[str, Any]:
        base = {"kind": kind, "sid": sid, "parent": parent, "i": i, "phase": phase, "time": None}
        return {**base, "data": data}

    yield event(EventKind.STEP, {})
    action = mapping_of(step.get("action"))
    states = {k: action[k] for k in ("web_state_before", "file_state_before") if k in action}
    if states:
        yield event(EventKind.WORLD, states)
    for phase in _PHASES:
        part = mapping_of(step.get(phase))
        if not part:
            continue
        tools = part.get("model_calls") if phase == "end" else None
        for tool in tools if is_list(tools) else ():
            yield event(EventKind.MODEL_CALL, _call_data(mapping_of(tool)), phase)
        if any(key in part for key in ("llm_info", "llm_output")) or part.get("llm_input"):
            yield event(EventKind.MODEL_CALL, _call_data(part), phase)
        parsed = {k: plain(part[k]) for k in ("thought", "code", "state") if k in part}
        if phase == "end":
            results = mapping_of(part.get("final_results"))
            yield event(EventKind.END, {**parsed, "final_results": results}, phase)
            continue
        yield event(phase, parsed, phase)
        if part.get("unreadable"):
            yield event(EventKind.UNREADABLE, {"error": part["unreadable"]}, phase)
        if phase == "action":
            for kind, data, of in _action_events(part):
                yield event(kind, data, of)


def _action_events(action: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield kind, data and phase of what happened in an action."""
    for tool in _entries(action.get("model_calls")):
        yield EventKind.MODEL_CALL, _call_data(tool), text_of(tool.get("phase")) or "tool"
    for acted in _entries(action.get("acted")):
        yield EventKind.ACTED, plain(acted), ""
    for screen in _entries(action.get("screens")):
        yield EventKind.SCREEN, plain(screen), ""
    if "observation" in action:
        yield EventKind.OBSERVATION, {"observation": action["observation"]}, ""
    if action.get("error"):
        yield EventKind.ERROR, {"error": action["error"]}, ""


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    for entry in value if is_list(value) else ():
        if isinstance(entry, Mapping):
            yield entry


def _call_data(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's model call in the form of a journal's event."""
    info = plain(mapping_of(part.get("llm_info")))
    return {**info, "messages": part.get("llm_input"), "output": part.get("llm_output")}
