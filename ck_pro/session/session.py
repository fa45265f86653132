"""`AgentSession`: the history of one agent on one task.

A session is a fold over its events. The running agent applies each event that it journals, and
`sessions_from_events` applies the same events from a journal. The output row rebuilt from the
journal is therefore identical to the byte.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.event_parts import AskedQuestion, FinalResults, ProgressState
from ck_pro.events.journal_events import (
    ActedData,
    ActionData,
    EndData,
    ErrorData,
    FinishData,
    ModelCallData,
    ObservationData,
    PlanData,
    ResumedData,
    ScreenData,
    SessionData,
    StatusData,
    StepData,
    SubSessionData,
    SuspendedData,
    TaskChangedData,
    TurnData,
    UnreadableData,
    WorldData,
)
from ck_pro.exceptions import CKError, InputError, JournalError
from ck_pro.ranking import Ranking
from ck_pro.run_context import RunContext
from ck_pro.session.acted import Acted, acted_in
from ck_pro.session.goals import Task
from ck_pro.session.html_form import session_html
from ck_pro.session.observed import observation_text
from ck_pro.session.row_form import fill_session, mapping_in, row_step, session_in
from ck_pro.session.rows import (
    MAIN,
    PHASES,
    Action,
    CallCounts,
    CallPart,
    PhasePart,
    Plan,
    SessionRow,
    Step,
    ToolModelCall,
    UserTurn,
    build_call_stat,
    no_calls,
)
from ck_pro.session.status import Status, StopReason

_FOUND_CHARS = 500
"""Characters of a text that `search` returns."""
_FINGERPRINT = ("version", "settings_hash", "prompts_hash")
_CALL_FACTS = (
    *("model", "target", "params", "usage", "cost", "finish_reason"),
    *("reasoning", "tool_calls", "items"),
)
"""Facts about a model call that a row has under `llm_info`."""
_CALL_KEYS = ("llm_input", "llm_output", "llm_info", "unreadable")


class AgentSession:
    """The history of one agent on one task, in the schema of output rows.

    Args:
        task: the instruction.
        id: unique in a run; generated if not given.
        agent: name of the agent.
        info: JSON-able facts, stored with `call_stat` and the times.

    Attributes:
        steps: one dict per step: `step_idx, plan, action` and, in the last, `end`.
        state: the latest progress state from the planner.
        status, stop_reason: current status; `stop_reason` is None while the session runs.
        lease: data with which a resumed run reconnects to its environment.
        variables: plain data in the variables of a session that ended without a terminal action.
        finish: `{"output", "log"}` of the terminal action, or None.
        final_results: `{"output", "log"}` after the end, else None.
        children: sessions of sub-agents by id.
        sub_sessions: ids of the sub-agents' sessions, for each step.
        unreadable_counts: replies of this session that could not be fully parsed, by phase.
        asked: `{"session", "question"}` while the run waits for the user: the id of the session
            that stopped (this one or one below it), and the question; else None.
        run: the live run; None before and after it. It is never serialized.
        tasks: the task tree, once the agent has added or changed a task; else None.
    """

    def __init__(
        self,
        task: str = "",
        *,
        id: str | None = None,
        agent: str = "",
        info: Mapping[str, Any] | None = None,
    ):
        self.id = id or uuid.uuid4().hex
        self.task = task
        self.agent = agent
        self.info: dict[str, Any] = dict(info or {})
        self.steps: list[Step] = []
        self.state: ProgressState = {}
        self.status = Status.IN_PROGRESS
        self.stop_reason: StopReason | None = None
        self.message = ""
        self.asked: AskedQuestion | None = None
        self.lease: Any = None
        self.variables: dict[str, Any] = {}
        self.finish: FinishData | None = None
        self.final_results: FinalResults | None = None
        self.children: dict[str, AgentSession] = {}
        self.calls: dict[str, CallCounts] = {}
        self.run: RunContext | None = None
        self.tasks: Task | None = None
        self.sub_sessions: list[list[str]] = []
        self.unreadable_counts: Counter[str] = Counter()

    # --- from a row ------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> AgentSession:
        """Rebuild a session from the `session` of an output row, or from the row itself.

        `to_dict` returns the same data again if this version wrote the session. Rows of other
        programs may lack keys.

        Args:
            row: `id, info, task, steps`, with the sub-agents' sessions inside.

        Raises:
            InputError: the row does not contain a session.
        """
        found = session_in(row)
        session = cls(str(found.get("task") or ""), id=str(found.get("id") or "") or None)
        fill_session(session, found)
        return session

    def add_step(self, step: Mapping[str, Any]) -> Step:
        """Add a step to a session that is not running.

        Args:
            step: a step of a row, with any of `plan`, `action`, `end`; it gets its number here.

        Returns:
            The step in `steps`.

        Raises:
            InputError: the session is running, and records its own steps.
        """
        if self.run is not None:
            raise InputError("this session is running and records its steps: use agent.step()")
        kept = {k: dict(mapping_in(v, k)) for k, v in step.items() if k in PHASES and v is not None}
        action = {"thought": "", "code": "", "observation": "", **kept.get("action", {})}
        nested: list[str] = []
        for sub in action.pop("sub_sessions", None) or ():
            nested.append(self._add_child(sub))
        action["observation"] = self._with_references(action["observation"])
        self.sub_sessions.append(nested)
        other = {k: v for k, v in step.items() if k not in PHASES}
        made = cast(Step, {**other, "step_idx": len(self.steps), **kept, "action": action})
        self.steps.append(made)
        self.state = cast(ProgressState, dict(kept.get("plan", {}).get("state") or self.state))
        return made

    def _add_child(self, row: Mapping[str, Any]) -> str:
        child = AgentSession.from_dict(row)
        self.children[child.id] = child
        return child.id

    def _with_references(self, value: Any) -> Any:
        """Replace each sub-agent's session in a row's observation by its id."""
        if isinstance(value, list):
            return [self._with_references(v) for v in value]
        if isinstance(value, Mapping) and "sel_cands" in value:
            return {**value, "sel_cands": self._with_references(value["sel_cands"])}
        if isinstance(value, Mapping) and isinstance(value.get("session"), Mapping):
            return {**value, "session": self._add_child(value["session"])}
        return value

    # --- the fold --------------------------------------------------------------------------

    def apply(self, event: JournalEvent) -> None:
        """Apply one event of this session; unknown kinds have no effect."""
        handler = self._HANDLERS.get(event["kind"])
        if handler is not None:
            handler(self, event, event["data"])

    def _on_session(self, event: JournalEvent, data: SessionData) -> None:
        self.task, self.agent = data["task"], data.get("agent", "")
        self.info = {**data.get("info", {}), "start_time": event["time"]}
        if event.get("parent") is None:  # a sub-agent's config is part of its caller's
            config = data.get("config", {})
            seed = config.get("model", {}).get("call_kwargs", {}).get("seed")
            self.info.update(config=config, seed=seed)
            self.info.update({k: v for k, v in data.items() if k in _FINGERPRINT})

    def _on_step(self, event: JournalEvent, data: StepData) -> None:
        self._add_empty_step()

    def _add_empty_step(self) -> None:
        action = Action(thought="", code="", observation="")
        self.steps.append({"step_idx": len(self.steps), "action": action})
        self.sub_sessions.append([])

    def _on_world(self, event: JournalEvent, data: WorldData) -> None:
        self._last["action"].update(cast(Action, data))

    def _on_model_call(self, event: JournalEvent, data: ModelCallData) -> None:
        phase = event["phase"] or ""
        usage = data.get("usage", {})
        # `tool:ask_llm` counts under the tool's name
        name = MAIN if phase in PHASES else phase.partition(":")[2] or phase
        if name not in self.calls:
            self.calls[name] = no_calls()
        counted = self.calls[name]
        counted["llm_call"] += 1
        counted["completion_tokens"] += usage.get("completion_tokens", 0)
        counted["prompt_tokens"] += usage.get("prompt_tokens", 0)
        counted["total_tokens"] += usage.get("total_tokens", 0)
        if not self.steps or "messages" not in data:
            return
        facts = cast(dict[str, Any], data)
        call = CallPart(
            llm_input=data["messages"],
            llm_output=data.get("output", ""),
            llm_info={k: facts[k] for k in _CALL_FACTS if facts.get(k)},
        )
        if phase in PHASES:
            part = cast(dict[str, Any], self._phase(phase))
            if phase == "end" and "llm_output" in part:  # its reply could not be used
                earlier = {k: part.pop(k) for k in _CALL_KEYS if k in part}
                earlier["phase"] = phase
                part.setdefault("model_calls", []).append(earlier)
            part.update(cast(dict[str, Any], call))
        else:  # a call by a tool, such as ask_llm
            made = cast(ToolModelCall, {"phase": phase, **call})
            self._last["action"].setdefault("model_calls", []).append(made)

    def _on_plan(self, event: JournalEvent, data: PlanData) -> None:
        self._phase("plan").update(cast(PhasePart, data))
        if "state" in data:
            self.state = data["state"]

    def _on_action(
        self, event: JournalEvent, data: ActionData | ObservationData | ErrorData
    ) -> None:
        self._last["action"].update(cast(Action, data))

    def _on_unreadable(self, event: JournalEvent, data: UnreadableData) -> None:
        if self.steps:
            phase = event["phase"] or ""
            parts = cast(dict[str, PhasePart], self._last)
            part = parts.setdefault(phase, PhasePart(thought="", code=""))
            if "unreadable" not in part:  # a resumed run parses a recorded reply again
                self.unreadable_counts[phase] += 1
            part["unreadable"] = data["error"]

    def _on_screen(self, event: JournalEvent, data: ScreenData) -> None:
        self._last["action"].setdefault("screens", []).append(data)

    def _on_sub_session(self, event: JournalEvent, data: SubSessionData) -> None:
        if self.sub_sessions:
            self.sub_sessions[-1].append(data["session"])

    def _on_finish(self, event: JournalEvent, data: FinishData) -> None:
        if self.finish is None:  # the first terminal call of a step counts
            self.finish = data.copy()

    def _on_end(self, event: JournalEvent, data: EndData) -> None:
        self._last["end"] = {**self._last.get("end", {}), **data}
        self.final_results = data["final_results"]

    def _on_resumed(self, event: JournalEvent, data: ResumedData) -> None:
        self.status, self.stop_reason, self.message = Status.IN_PROGRESS, None, ""
        self.final_results = self.asked = self.lease = None
        self.variables = {}
        self.info = {k: v for k, v in self.info.items() if k not in ("end_time", "duration")}
        self.info["resumed"] = self.info.get("resumed", 0) + 1
        if self.steps:
            self._last.pop("end", None)
        if data.get("redo"):
            del self.steps[-1], self.sub_sessions[-1]
            self._add_empty_step()
        if data.get("learned"):
            known = self.state.get("information", [])
            self.state = {**self.state, "information": [*known, data["learned"]]}

    def _on_turn(self, event: JournalEvent, data: TurnData) -> None:
        turn = UserTurn(step=self.finished_steps(), text=data["text"])
        self.info = {**self.info, "turns": [*self.turns, turn]}
        self.status, self.stop_reason, self.message = Status.IN_PROGRESS, None, ""
        self.finish = self.final_results = self.asked = None

    def _on_acted(self, event: JournalEvent, data: ActedData) -> None:
        self._last["action"].setdefault("acted", []).append(data)

    def _on_task_changed(self, event: JournalEvent, data: TaskChangedData) -> None:
        self.tasks = self.tasks or Task.from_progress(self.task, self.state)
        if "goal" in data:
            self.tasks.add(data["goal"], data.get("parent", "0"))
        else:
            self.tasks.modify(data["id"], data["state"])
        self.info = {**self.info, "tasks": self.tasks.to_dict()}

    def _on_suspended(self, event: JournalEvent, data: SuspendedData) -> None:
        self.lease = data.get("lease")

    def _on_status(self, event: JournalEvent, data: StatusData) -> None:
        self.status = Status(data["status"])
        self.stop_reason = StopReason(data["stop_reason"]) if data.get("stop_reason") else None
        self.message, self.asked = data.get("message", ""), data.get("asked")
        self.lease, self.variables = data.get("lease"), data.get("variables", {})
        start = self.info.get("start_time", event["time"])
        self.info.update(end_time=event["time"], duration=max(0.0, event["time"] - start))

    _HANDLERS: Mapping[str, Callable[..., None]] = {
        EventKind.SESSION: _on_session,
        EventKind.STEP: _on_step,
        EventKind.WORLD: _on_world,
        EventKind.MODEL_CALL: _on_model_call,
        EventKind.PLAN: _on_plan,
        EventKind.ACTION: _on_action,
        EventKind.OBSERVATION: _on_action,
        EventKind.ERROR: _on_action,
        EventKind.SCREEN: _on_screen,
        EventKind.UNREADABLE: _on_unreadable,
        EventKind.SUB_SESSION: _on_sub_session,
        EventKind.FINISH: _on_finish,
        EventKind.END: _on_end,
        EventKind.RESUMED: _on_resumed,
        EventKind.TURN: _on_turn,
        EventKind.ACTED: _on_acted,
        EventKind.TASK_CHANGED: _on_task_changed,
        EventKind.SUSPENDED: _on_suspended,
        EventKind.STATUS: _on_status,
    }

    def _phase(self, phase: str) -> PhasePart:
        """Return the last step's record of a phase; create it on the phase's first event."""
        made = PhasePart(thought="", code="")
        if phase == "plan":
            made = Plan(thought="", code="", state=self.state)
        return cast(dict[str, PhasePart], self._last).setdefault(phase, made)

    @property
    def _last(self) -> Step:
        if not self.steps:
            raise JournalError(f"session {self.id}: an event of a step came before any step")
        return self.steps[-1]

    # --- reading ---------------------------------------------------------------------------

    def num_of_steps(self) -> int:
        """Return the number of steps, with the one in progress."""
        return len(self.steps)

    def get_current_step(self) -> Step | None:
        """Return the step in progress, or the last one; None before the first."""
        return self.current_step()

    def get_latest_steps(self, count: int = 0, include_last: bool = False) -> list[Step]:
        """Return the steps before the current one, oldest first.

        Args:
            count: maximum number of steps, the latest ones; 0 means all.
            include_last: whether to include the current step.
        """
        found = self.steps if include_last else self.steps[:-1]
        return list(found[-count:] if count > 0 else found)

    def current_step(self) -> Step | None:
        """Return the step in progress, or the last one; None before the first."""
        return self.steps[-1] if self.steps else None

    @property
    def turns(self) -> list[UserTurn]:
        """The messages of the user after the task, each with the index of its first step."""
        return cast("list[UserTurn]", self.info.get("turns", []))

    @property
    def turn_start(self) -> int:
        """Index of the first step of the current turn."""
        return self.turns[-1]["step"] if self.turns else 0

    def finished_steps(self) -> int:
        """Return the number of steps that have an observation."""
        return len(self.steps) - (bool(self.steps) and not self._last["action"]["observation"])

    @property
    def task_tree(self) -> Task:
        """The task with its sub-tasks: those added as tasks, or else those of the plan."""
        return self.tasks or Task.from_progress(self.task, self.state)

    root_task = task_tree

    @property
    def history(self) -> list[Acted]:
        """The actions so far with their observations, as typed values."""
        messages = {turn["step"]: turn["text"] for turn in self.turns}
        return [a for n, step in enumerate(self.steps) for a in acted_in(step, messages.get(n))]

    @property
    def updated_info(self) -> list[Acted]:
        """The actions and observations of the most recent step that has any."""
        found = (list(acted_in(step)) for step in reversed(self.steps))
        return next(filter(None, found), [])

    def search(self, query: str, limit: int = 10) -> list[str]:
        """Return short texts of the steps that match `query`, best match first.

        Words match in all their forms ("install" finds "installed"); rare words count more.

        Args:
            query: some words.
            limit: maximum number of texts.
        """
        texts = self.step_texts()[: self.finished_steps()]
        best = Ranking(texts).best(query)[:limit]
        return [f"Step {self.steps[n]['step_idx']}: {texts[n][:_FOUND_CHARS]}" for n in best]

    def step_texts(self) -> list[str]:
        """Return each step as text: message of the user, thought, code and observation."""
        messages = {turn["step"]: turn["text"] for turn in self.turns}
        texts = []
        for n, step in enumerate(self.steps):
            action = step["action"]
            seen = observation_text(action["observation"])
            parts = [messages.get(n, ""), action["thought"], action["code"], seen]
            texts.append("\n".join(part for part in parts if part))
        return texts

    def call_stat(self) -> dict[str, Any]:
        """Count model calls and tokens of this session and all below it, by agent."""
        children = [(c.agent or "sub_agent", c.call_stat()) for c in self.children.values()]
        return build_call_stat(self.calls, children)

    def unreadable(self) -> dict[str, int]:
        """Count replies that the agent could not fully parse, here and below, by phase."""
        found = Counter(self.unreadable_counts)
        for child in self.children.values():
            found.update(child.unreadable())
        return dict(found)

    def to_dict(self) -> SessionRow:
        """Return the session of an output row: `id, info, task, steps`."""
        info = {"call_stat": self.call_stat(), **self.info}
        info.update(status=self.status.value, agent=self.agent, final_results=self.final_results)
        info["stop_reason"] = self.stop_reason.value if self.stop_reason else None
        if self.message:
            info["message"] = self.message
        if self.variables:
            info["variables"] = self.variables
        if unreadable := self.unreadable():
            info["unreadable"] = unreadable
        return {"id": self.id, "info": info, "task": self.task, "steps": self.full_steps()}

    def _repr_html_(self) -> str:
        """Show the session in a notebook."""
        return session_html(self)

    def full_steps(self) -> Sequence[Step]:
        """Return the steps of an output row, with the sessions of the sub-agents."""
        return [row_step(self, n, step) for n, step in enumerate(self.steps)]


def sessions_from_events(
    events: Iterable[JournalEvent], new: Callable[[str], AgentSession] | None = None
) -> dict[str, AgentSession]:
    """Build all sessions from events, by id, in order of their start.

    The first session is the main agent's. The sessions of sub-agents are also in `children` of
    their caller.

    Args:
        events: events of one journal, in order.
        new: creates an empty session from an id; default `AgentSession`.

    Raises:
        JournalError: an event lacks a key, or has a value of a wrong type.
    """
    sessions: dict[str, AgentSession] = {}
    for event in events:
        try:
            _apply(event, sessions, new)
        except CKError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as e:
            raise damaged_event(event, e) from e
    return sessions


def damaged_event(event: Any, error: Exception) -> JournalError:
    """Return the error for an event that cannot be read."""
    kind = event.get("kind") if isinstance(event, Mapping) else event
    return JournalError(f"a damaged event, {kind!r:.40}: {type(error).__name__}: {error}")


def _apply(
    event: JournalEvent,
    sessions: dict[str, AgentSession],
    new: Callable[[str], AgentSession] | None,
) -> None:
    sid = event["sid"]
    if sid not in sessions:
        sessions[sid] = AgentSession(id=sid) if new is None else new(sid)
        parent = sessions.get(event.get("parent") or "")
        if parent is not None:
            parent.children[sid] = sessions[sid]
    sessions[sid].apply(event)
