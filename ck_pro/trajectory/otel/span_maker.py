"""Convert the events of a run to spans, after OpenTelemetry's conventions for generative AI. Pure.

The conventions are https://opentelemetry.io/docs/specs/semconv/gen-ai/, development version of
2026; their attribute names may still change. A session is a span `invoke_agent`, a model call is
`chat`, and a function call or a run of code is `execute_tool`. A sub-agent's span is a child of
the call that started it:

    invoke_agent ck_agent
      chat gpt-4.1                     the action phase of step 0
      execute_tool python              its code
        execute_tool web_agent         the call of a sub-agent in that code
          invoke_agent web_agent
            chat gpt-4.1
            ...

Attributes without a name in the conventions are `ck.*`. Texts of prompts, replies and arguments are
optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ck_pro.events import EventKind, JournalEvent
from ck_pro.trajectory.otel.span_attributes import (
    USAGE,
    Attributes,
    error_type,
    json_text,
    messages_text,
    nanoseconds,
    of_model_call,
    provider_of,
    with_value,
)
from ck_pro.trajectory.reading.attempts import value_at

Kind = Literal["internal", "client"]
_TOTALS = ("prompt_tokens", "completion_tokens")
_OUTSIDE = frozenset({EventKind.TASK, EventKind.EVAL, EventKind.ROW, EventKind.FORKED})
"""Kinds of events that describe a run and have no span."""


class Emitter(Protocol):
    """Receives spans. Times are in Unix nanoseconds."""

    def start(self, name: str, kind: Kind, parent: Any, start: int, attributes: Attributes) -> Any:
        """Start a span and return it; `parent` is a span that an earlier call returned, or None."""

    def end(self, span: Any, end: int, attributes: Attributes, error: str) -> None:
        """End a span; `error` is the type of its error, or ""."""


@dataclass
class _Session:
    """A session, with its open spans."""

    agent: str
    parent: str | None
    provider: str
    span: Any = None
    code: Any = None
    """Span of the running code."""
    code_error: str = ""
    has_tool_calls: bool = False
    """Whether the last reply has tool calls instead of code."""
    calls: dict[Any, tuple[str, Any]] = field(default_factory=dict)
    """Name and span of each pending call, by number."""
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOTALS, 0))
    last: int = 0
    """Time of the last event."""


class SpanMaker:
    """Makes spans from the events of one run, in order.

    Args:
        emitter: receives the spans.
        texts: whether to include prompts, replies, arguments and results.
        conversation: id that all spans of the run share; "" means the id of the main session.
    """

    def __init__(self, emitter: Emitter, *, texts: bool = False, conversation: str = ""):
        self.emitter, self.texts = emitter, texts
        self._conversation = conversation
        self._task_id = ""
        self._sessions: dict[str, _Session] = {}
        self._caller_spans: dict[str, Any] = {}
        """Spans of the calls that started sessions, by session id."""

    def add_previous(self, events: Iterable[JournalEvent]) -> None:
        """Read the sessions that a resumed run already has; make no spans."""
        for event in events:
            if event["kind"] == EventKind.SESSION:
                self._sessions[event["sid"]] = self._session_of(event)

    def take(self, event: JournalEvent) -> None:
        """Process one event; kinds without a span have no effect."""
        kind, sid = event["kind"], event["sid"]
        if kind in _OUTSIDE:
            if kind == EventKind.TASK:
                self._task_id = str(event["data"].get("id", ""))
            return
        if kind == EventKind.SESSION:
            self._sessions[sid] = self._session_of(event)
        session = self._sessions.get(sid)
        if session is None:  # the start of the run is missing
            session = self._sessions[sid] = _Session("agent", event.get("parent"), "unknown")
        at = nanoseconds(event["time"])
        if session.span is None and kind != EventKind.STATUS:
            self._start_session(sid, session, at, event)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, session, event, event["data"], at)
        session.last = at

    def close(self) -> None:
        """End all open spans, such as those of an interrupted run."""
        for session in reversed(list(self._sessions.values())):
            if session.span is not None:
                self._end_session(session, session.last, {"ck.unfinished": True}, "")

    # --- sessions ----------------------------------------------------------------------------

    def _session_of(self, event: JournalEvent) -> _Session:
        data = event["data"]
        target = value_at(data, "config.model.call_target")
        parent = event.get("parent")
        if parent is None:
            self._conversation = self._conversation or event["sid"]
        return _Session(str(data.get("agent") or "agent"), parent, provider_of(target))

    def _start_session(self, sid: str, session: _Session, at: int, event: JournalEvent) -> None:
        above = self._sessions.get(session.parent or "")
        parent = self._caller_spans.pop(sid, None) or (above.span if above else None)
        attributes = {
            **self._common("invoke_agent", session),
            "ck.session.id": sid,
            "ck.task.id": self._task_id,
        }
        if self.texts and event["kind"] == EventKind.SESSION:
            task = [{"role": "user", "content": event["data"].get("task", "")}]
            attributes["gen_ai.input.messages"] = messages_text(task)
        name = f"invoke_agent {session.agent}"
        session.span = self.emitter.start(name, "internal", parent, at, with_value(attributes))

    def _on_status(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        if session.span is None:
            return
        status, reason = str(data.get("status", "")), str(data.get("stop_reason") or "")
        facts = {"ck.status": status, "ck.stop_reason": reason}
        self._end_session(session, at, facts, reason if status == "problem" else "")

    def _on_suspended(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        self._end_session(session, at, {"ck.status": "in_progress"}, "")

    def _end_session(self, session: _Session, at: int, facts: Attributes, error: str) -> None:
        for _, span in session.calls.values():
            self.emitter.end(span, at, {}, "")
        session.calls.clear()
        self._end_code(session, at, {})
        totals = {USAGE[k]: session.tokens[k] for k in _TOTALS}
        self.emitter.end(session.span, at, with_value({**facts, **totals}), error)
        session.span = None

    # --- model calls ---------------------------------------------------------------------------

    def _on_model_call(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        attributes = {
            **self._common("chat", session),
            **self._place(event),
            "gen_ai.provider.name": session.provider,
            **of_model_call(data, texts=self.texts),
        }
        for key in _TOTALS:
            session.tokens[key] += int((data.get("usage") or {}).get(key, 0))
        if event["phase"] == "action":
            session.has_tool_calls = bool(data.get("tool_calls"))
        start = at - nanoseconds(event.get("duration") or 0.0)
        parent = self._parent_of_call(session, str(event["phase"]))
        span = self.emitter.start(
            f"chat {attributes['gen_ai.request.model']}",
            "client",
            parent,
            start,
            with_value(attributes),
        )
        self.emitter.end(span, at, {}, "")

    def _on_model_failed(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        attributes = {
            **self._common("chat", session),
            **self._place(event),
            "gen_ai.provider.name": session.provider,
        }
        parent = self._parent_of_call(session, str(event["phase"]))
        # the duration is not recorded; the call started after the previous event
        start = session.last or at
        span = self.emitter.start("chat", "client", parent, start, with_value(attributes))
        self.emitter.end(span, at, {}, error_type(data.get("error")))

    def _parent_of_call(self, session: _Session, phase: str) -> Any:
        """Return the span of the tool that called the model, else of the session."""
        tool = phase.partition(":")[2]
        found = [span for name, span in session.calls.values() if name == tool]
        return found[-1] if tool and found else session.span

    # --- code and functions --------------------------------------------------------------------

    def _on_action(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        if not data.get("code") or session.has_tool_calls or session.code is not None:
            return
        arguments = {"code": data["code"]}
        session.code = self._start_tool(session, event, "python", session.span, arguments, at)

    def _on_error(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        session.code_error = str(data.get("error") or "")

    def _on_observation(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        observation = data.get("observation")
        result = {"gen_ai.tool.call.result": json_text(observation)} if self.texts else {}
        self._end_code(session, at, result)

    def _end_code(self, session: _Session, at: int, attributes: Attributes) -> None:
        if session.code is not None:
            self.emitter.end(session.code, at, attributes, session.code_error)
        session.code, session.code_error = None, ""

    def _on_started(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        name = str(data["name"])
        parent = session.code or session.span
        span = self._start_tool(session, event, name, parent, data.get("arguments"), at)
        session.calls[data.get("call", name)] = (name, span)

    def _on_call(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        _, span = session.calls.pop(data.get("call", data["name"]), ("", None))
        if span is not None:
            result = {"gen_ai.tool.call.result": str(data.get("value", ""))} if self.texts else {}
            self.emitter.end(span, at, with_value(result), error_type(data.get("error")))

    def _on_sub_session(
        self, session: _Session, event: JournalEvent, data: Mapping[str, Any], at: int
    ) -> None:
        _, span = session.calls.get(data.get("call", data.get("name")), ("", None))
        self._caller_spans[data["session"]] = span

    def _start_tool(
        self,
        session: _Session,
        event: JournalEvent,
        name: str,
        parent: Any,
        arguments: Any,
        at: int,
    ) -> Any:
        attributes = {
            **self._common("execute_tool", session),
            **self._place(event),
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        number = event["data"].get("call")
        if number is not None:
            attributes["gen_ai.tool.call.id"] = str(number)
        if self.texts:
            attributes["gen_ai.tool.call.arguments"] = json_text(arguments)
        start = self.emitter.start
        return start(f"execute_tool {name}", "internal", parent, at, with_value(attributes))

    # --- attributes ----------------------------------------------------------------------------

    def _common(self, operation: str, session: _Session) -> Attributes:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": session.agent,
            "gen_ai.conversation.id": self._conversation,
        }

    def _place(self, event: JournalEvent) -> Attributes:
        return {"ck.step": event.get("i"), "ck.phase": event.get("phase")}


_HANDLERS: Mapping[str, Callable[..., None]] = {
    EventKind.MODEL_CALL: SpanMaker._on_model_call,
    EventKind.MODEL_FAILED: SpanMaker._on_model_failed,
    EventKind.ACTION: SpanMaker._on_action,
    EventKind.STARTED: SpanMaker._on_started,
    EventKind.SUB_SESSION: SpanMaker._on_sub_session,
    EventKind.CALL: SpanMaker._on_call,
    EventKind.ERROR: SpanMaker._on_error,
    EventKind.OBSERVATION: SpanMaker._on_observation,
    EventKind.SUSPENDED: SpanMaker._on_suspended,
    EventKind.STATUS: SpanMaker._on_status,
}
