"""The outline of one run: its sessions and steps, with the places of their events.

It is a fold over the run's events, and holds no prompts, pages or observations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ck_pro.events import EventKind
from ck_web.actions import WEB_FUNCTIONS

TITLE_CHARS = 120
IN_PROGRESS = "in_progress"
_PAGE_FUNCTIONS = frozenset(WEB_FUNCTIONS)
"""Functions whose calls count as time of the page, in steps that have one."""
_USAGE = {
    "prompt": "prompt_tokens",
    "completion": "completion_tokens",
    "cached": "cached_tokens",
    "reasoning": "reasoning_tokens",
}


@dataclass(eq=False, slots=True)
class ModelCall:
    """One model call.

    Attributes:
        sid, step, n: session, step, and index among the model calls of that step.
        place: where its event is, for the reader of the run.
        hashes: `message_hashes` of a journal's event.
        previous: the previous call of the same session and phase.
    """

    sid: str
    step: int
    n: int
    phase: str
    place: Any = None
    hashes: list[str] | None = None
    previous: ModelCall | None = None


@dataclass(eq=False, slots=True)
class Span:
    """A part of the timeline: `kind` is "model", "code", "page" or "call"."""

    kind: str
    name: str
    start: float
    seconds: float


@dataclass(eq=False, slots=True)
class StepOutline:
    """One step of a session."""

    i: int
    start: float | None = None
    end: float | None = None
    title: str = ""
    error: bool = False
    calls: int = 0
    tokens: int = 0
    picture: bool = False
    url: str = ""
    places: list[Any] = field(default_factory=list)
    model_calls: list[ModelCall] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    code_since: float | None = None


@dataclass(eq=False, slots=True)
class SessionOutline:
    """One agent's session. Its counts exclude the model calls of its sub-agents."""

    sid: str
    parent: str | None = None
    agent: str = ""
    path: list[str] = field(default_factory=list)
    task: str = ""
    status: str = IN_PROGRESS
    stop_reason: str | None = None
    message: str = ""
    start: float | None = None
    end: float | None = None
    called_by: dict[str, Any] | None = None
    calls: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    money: float | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    lease: Any = None
    asked: Any = None
    place: Any = None
    steps: list[StepOutline] = field(default_factory=list)
    last_calls: dict[str, ModelCall] = field(default_factory=dict)


def text_of(value: Any) -> str:
    """Return a value as text; "" for None."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def number_of(value: Any) -> float | None:
    """Return a value if it is a finite number."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    return value if good else None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def first_line(text: str) -> str:
    """Return the first line with text, shortened."""
    for line in text[:4000].splitlines():
        if line.strip():
            return line.strip()[:TITLE_CHARS]
    return ""


def usage_in(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens of a model call by short name."""
    usage = mapping_of(data.get("usage"))
    return {short: int(number_of(usage.get(name)) or 0) for short, name in _USAGE.items()}


class Outline:
    """The outline of a run.

    Attributes:
        sessions: by id, in order of their start; the first is the main session.
        task: the facts of the row: `id, task, answer, _orig`.
        scored: the field `eval` of the row; None if there is none.
        written: whether the runner wrote the row.
        problems: one line per broken part.
        last_time: time of the last event.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, SessionOutline] = {}
        self.task: Mapping[str, Any] = {}
        self.scored: Mapping[str, Any] | None = None
        self.written = False
        self.problems: list[str] = []
        self.last_time: float | None = None

    @property
    def main(self) -> SessionOutline | None:
        """The main session; None before it starts."""
        return next(iter(self.sessions.values()), None)

    def all_steps(self) -> Iterator[tuple[SessionOutline, StepOutline]]:
        """Yield each step with its session."""
        for session in self.sessions.values():
            for step in session.steps:
                yield session, step

    def step(self, sid: str, i: int) -> StepOutline | None:
        """Return a step; None if it is missing."""
        session = self.sessions.get(sid)
        return session.steps[i] if session is not None and 0 <= i < len(session.steps) else None

    def apply(self, event: Mapping[str, Any], place: Any) -> None:
        """Apply one event. Events of other versions and with missing keys are accepted.

        Args:
            event: kind, sid, parent, i, phase, data, time and duration.
            place: where the reader finds it again.
        """
        kind, data = event.get("kind"), mapping_of(event.get("data"))
        if kind == EventKind.TASK:
            self.task = data
        elif kind == EventKind.EVAL:
            self.scored = data
        elif kind == EventKind.ROW:
            self.written = True
        else:
            self._apply_to_session(str(kind), event, data, place)

    def _apply_to_session(
        self, kind: str, event: Mapping[str, Any], data: Mapping[str, Any], place: Any
    ) -> None:
        sid = str(event.get("sid"))
        session = self.sessions.get(sid)
        if session is None:
            session = self.sessions[sid] = SessionOutline(sid)
        step = self._step_of(session, kind, event)
        time = number_of(event.get("time"))
        if time is not None:
            self.last_time = time
        handler = _SESSION_HANDLERS.get(kind)
        if handler is not None:
            handler(self, session, event, data, place, time)
        if step is None:
            return
        if kind not in _NOT_IN_STEPS:
            step.places.append(place)
        if time is not None and kind != EventKind.STATUS:
            step.start = time if step.start is None else step.start
            step.end = time
        in_step = _STEP_HANDLERS.get(kind)
        if in_step is not None:
            in_step(session, step, event, data, place, time)

    @staticmethod
    def _step_of(
        session: SessionOutline, kind: str, event: Mapping[str, Any]
    ) -> StepOutline | None:
        """Return the step that an event belongs to; a `step` event starts one."""
        if kind == EventKind.STEP:
            session.steps.append(StepOutline(len(session.steps)))
            return session.steps[-1]
        i = event.get("i")
        if kind == EventKind.SESSION or not session.steps or not isinstance(i, int):
            return None
        return session.steps[i] if 0 <= i < len(session.steps) else session.steps[-1]

    # --- sessions ------------------------------------------------------------------------------

    def _on_session(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        parent = event.get("parent")
        session.parent = parent if isinstance(parent, str) else None
        session.agent, session.task = text_of(data.get("agent")), text_of(data.get("task"))
        path = data.get("path")
        above = self.sessions.get(session.parent or "")
        session.path = (
            [text_of(name) for name in path]
            if isinstance(path, list)
            else [*(above.path if above else ()), session.agent]
        )
        session.start, session.place = time, place

    def _on_sub_session(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        child = text_of(data.get("session"))
        found = self.sessions.setdefault(child, SessionOutline(child, parent=session.sid))
        step = max(0, len(session.steps) - 1)
        i = event.get("i")
        found.called_by = {
            "sid": session.sid,
            "step": i if isinstance(i, int) else step,
            "call": data.get("call"),
        }

    def _on_status(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        session.status = text_of(data.get("status")) or IN_PROGRESS
        session.stop_reason = text_of(data.get("stop_reason")) or None
        session.message, session.end = text_of(data.get("message")), time
        session.budget = mapping_of(data.get("budget"))
        session.lease, session.asked = data.get("lease"), data.get("asked")
        session.last_calls = {}  # the chain of message hashes ends

    def _on_resumed(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        session.status, session.stop_reason, session.message = IN_PROGRESS, None, ""
        session.end, session.results, session.lease, session.asked = None, {}, None, None
        if data.get("redo") and session.steps:
            session.steps[-1] = StepOutline(len(session.steps) - 1, start=time)

    def _on_end(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        session.results = mapping_of(data.get("final_results"))

    def _on_suspended(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        session.lease = data.get("lease")

    def _on_turn(
        self, session: SessionOutline, event: Any, data: Any, place: Any, time: float | None
    ) -> None:
        session.status, session.stop_reason, session.end = IN_PROGRESS, None, None


_SESSION_HANDLERS: dict[str, Any] = {
    EventKind.SESSION: Outline._on_session,
    EventKind.SUB_SESSION: Outline._on_sub_session,
    EventKind.STATUS: Outline._on_status,
    EventKind.RESUMED: Outline._on_resumed,
    EventKind.END: Outline._on_end,
    EventKind.SUSPENDED: Outline._on_suspended,
    EventKind.TURN: Outline._on_turn,
}
_NOT_IN_STEPS = frozenset((EventKind.FILES, EventKind.STATUS, EventKind.LEASED))


# --- steps -----------------------------------------------------------------------------------


def _span(step: StepOutline, kind: str, name: str, event: Any, time: float | None) -> None:
    """Add a span that ends at the event's time, if its duration is known."""
    seconds = number_of(event.get("duration"))
    if time is not None and seconds is not None:
        step.spans.append(Span(kind, name, time - seconds, seconds))


def _on_model_call(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    phase = text_of(event.get("phase"))
    call = ModelCall(session.sid, step.i, len(step.model_calls), phase, place)
    call.hashes = data.get("message_hashes")
    call.previous = session.last_calls.get(phase)
    session.last_calls[phase] = call
    step.model_calls.append(call)
    usage = usage_in(data)
    session.calls += 1
    tokens = usage["prompt"] + usage["completion"]
    session.tokens += tokens
    step.tokens += tokens
    session.prompt_tokens += usage["prompt"]
    session.completion_tokens += usage["completion"]
    session.cached_tokens += usage["cached"]
    cost = number_of(data.get("cost"))
    if cost is not None:
        session.money = (session.money or 0.0) + cost
    _span(step, "model", text_of(data.get("model")), event, time)


def _on_model_failed(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.error = True
    step.title = step.title or first_line(text_of(data.get("error")))
    _span(step, "model", "failed", event, time)


def _on_reply(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    text = text_of(data.get("thought")).strip() or text_of(data.get("code"))
    step.title = first_line(text) or step.title
    if event.get("kind") == EventKind.ACTION and data.get("code"):
        step.code_since = time


def _on_unreadable(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.error = True
    step.title = step.title or first_line(text_of(data.get("error")))


def _on_function(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.calls += 1


def _on_call(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    name = text_of(data.get("name"))
    kind = "page" if step.url and name in _PAGE_FUNCTIONS else "call"
    _span(step, kind, name, event, time)


def _on_world(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    state = mapping_of(data.get("web_state_before"))
    step.url = text_of(state.get("step_url") or state.get("target_url"))
    if time is not None and step.start is not None and step.start < time:
        step.spans.append(Span("page", step.url, step.start, time - step.start))


def _on_picture(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.picture = True
    step.url = step.url or text_of(data.get("url"))


def _on_screen(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.picture = step.picture or bool(data.get("image"))
    step.url = text_of(data.get("current_url")) or step.url


def _on_observation(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    if time is not None and step.code_since is not None:
        step.spans.append(Span("code", "", step.code_since, max(0.0, time - step.code_since)))
    step.code_since = None


def _on_error(
    session: SessionOutline, step: StepOutline, event: Any, data: Any, place: Any, time: Any
) -> None:
    step.error = True


_STEP_HANDLERS: dict[str, Any] = {
    EventKind.MODEL_CALL: _on_model_call,
    EventKind.MODEL_FAILED: _on_model_failed,
    EventKind.PLAN: _on_reply,
    EventKind.ACTION: _on_reply,
    EventKind.UNREADABLE: _on_unreadable,
    EventKind.STARTED: _on_function,
    EventKind.CALL: _on_call,
    EventKind.ACTED: _on_function,
    EventKind.WORLD: _on_world,
    EventKind.SCREEN: _on_screen,
    EventKind.OBSERVATION: _on_observation,
    EventKind.ERROR: _on_error,
    "picture": _on_picture,
}
