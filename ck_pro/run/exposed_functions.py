"""The functions that a run's code calls: guarded, logged, and answered again where it goes on."""

from __future__ import annotations

import builtins
import contextvars
import functools
import inspect
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.approval import ActionRejected, require_approval
from ck_pro.environment import Environment
from ck_pro.events import (
    Action,
    BrowserAction,
    ComputerAction,
    EventKind,
    Observation,
    ToolCall,
)
from ck_pro.events.journal_events import (
    CallData,
    CallOutcome,
    FinishData,
    SelectedData,
    StartedData,
    SubSessionData,
)
from ck_pro.exceptions import (
    AwaitingHuman,
    RunEnding,
    ToolError,
    ends_run,
    error_text,
)
from ck_pro.run.results import AgentResult
from ck_pro.run.resume import InterruptedSession, RecordedCall, call_key
from ck_pro.run.sampling import SelectedResult
from ck_pro.session import AgentSession, Status

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_SHOWN = 2000
_RESULT_BYTES = 1 << 20
_SHORT = _RESULT_BYTES // 16
"""Characters of a text that as JSON is within the bytes of a result, whatever they are."""
_NOT_BEGUN = -1
"""Number of a call that is not recorded yet."""
_PLAIN = (int, bool, type(None))
_call: contextvars.ContextVar[RecordedCall | None] = contextvars.ContextVar("call", default=None)
"""The call that the current thread is doing for an agent's code."""


class Calls:
    """The functions of one run, and the calls of its code.

    Args:
        run: the `ck_pro.run.run.Run`.
        first: number of its first call.
    """

    def __init__(self, run: Run, first: int = 0):
        self._run, self._next = run, first
        self._lock = threading.Lock()
        self._cut: InterruptedSession | None = None
        self._recorded: dict[str, list[RecordedCall]] = {}

    @functools.cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """What the code may call, by name."""
        return {f.name: self._logged(f, f.bind(self._run)) for f in self._run.agent.functions()}

    @functools.cached_property
    def terminal(self) -> set[str]:
        """Names of the functions that end the run."""
        return {f.name for f in self._run.agent.functions() if getattr(f, "terminal", False)}

    # --- sub-agents --------------------------------------------------------------------------

    def tell_sub_session(self, session: AgentSession) -> None:
        """Record that the call being done has begun a sub-agent's session."""
        data = SubSessionData(session=session.id, name=session.agent)
        self.tell(EventKind.SUB_SESSION, data)

    def tell(self, kind: EventKind, data: SubSessionData | SelectedData) -> None:
        """Record an event of the call in progress."""
        call = _call.get()
        if call is not None:
            data["call"] = call.number
        self._run.record(kind, data)

    def resume_child_session(self) -> InterruptedSession | None:
        """The session, begun by the call being done before the run was cut off, that goes on: of
        several the first that nobody took."""
        call = _call.get()
        if call is None or not call.sessions or self._cut is None:
            return None
        return self._cut.others.get(call.sessions.pop(0))

    def ended_session(self) -> AgentSession | None:
        """Like `resume_child_session`, but only a session that ended without interruption."""
        call = _call.get()
        if call is None or not call.sessions or self._cut is None:
            return None
        known = self._cut.others.get(call.sessions[0])  # none: it was announced, but not begun
        if known is None or known.interrupted or known.session.status is Status.IN_PROGRESS:
            return None
        del call.sessions[0]
        return known.session

    def left_behind(self) -> bool:
        """Whether the call being done is one of code that has ended."""
        call = _call.get()
        return call is not None and call.code != self._run.codes_ended

    # --- a step that is run again ----------------------------------------------------------------

    def on_resume(self, name: str) -> str | None:
        """`Tool.on_resume` of a function; "adopt" for a sub-agent, None if there is none."""
        for function in self._run.agent.functions():
            if function.name == name:
                return getattr(function, "on_resume", "adopt")
        return None

    def answer_from(self, cut: InterruptedSession) -> None:
        """Answer the calls of a step from their records, until `forget`."""
        with self._lock:
            self._cut = cut
            for call in cut.calls:
                self._recorded.setdefault(call.key, []).append(call)

    def forget(self) -> None:
        """The step is over: calls are new ones again."""
        with self._lock:
            self._cut, self._recorded = None, {}

    def _take(self, name: str, arguments: Mapping[str, Any]) -> RecordedCall | None:
        if not self._recorded:
            return None
        with self._lock:
            found = self._recorded.get(call_key(name, arguments))
            return found.pop(0) if found else None

    def finish_interrupted(self, cut: InterruptedSession) -> None:
        """Finish the calls that stopped for a person, and the sub-agents that were at work, of a
        step whose code does not run again.

        Raises:
            RunEnding: a call was interrupted again.
        """
        for call in cut.calls:
            rule = self.on_resume(call.name)
            if call.ended or not (call.sessions if rule == "adopt" else rule == "again"):
                continue
            if rule == "again" and not call.error:
                continue
            try:
                call.shown, call.error = str(self.functions[call.name](**call.arguments)), ""
            except BaseException as e:
                if ends_run(e):
                    raise
                call.error = error_text(e)
            call.ended = call.finished = True

    # --- one call ---------------------------------------------------------------------------

    def _logged(self, callee: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        signature, terminal = inspect.signature(function), getattr(callee, "terminal", False)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            arguments = {k: jsonable(v) for k, v in bound.arguments.items()}
            self._run.check()
            try:
                result = answered(arguments, args, kwargs)
            except AwaitingHuman:
                self._run.stops_for_person = True
                raise
            if terminal and self._run.session.finish is None:
                self._run.record(EventKind.FINISH, _final(result))
            return result

        def answered(arguments: dict[str, Any], args: Any, kwargs: Any) -> Any:
            recorded = self._take(callee.name, arguments)
            if recorded is not None and recorded.ended:
                return _as_recorded(recorded, self._cut)
            begun = recorded or self._approved(callee, arguments)
            if recorded is not None and self.on_resume(callee.name) == "answer":
                raise ToolError(_UNSURE.format(callee.name))
            return self._do(begun, lambda: function(*args, **kwargs))

        return call

    def _approved(self, callee: Any, arguments: dict[str, Any]) -> RecordedCall:
        """A call that may begin; that of a tool which acts is reviewed by `act`."""
        call = RecordedCall(_NOT_BEGUN, callee.name, arguments)
        if not getattr(callee, "acts_by_run", False):
            review = ToolCall(name=callee.name, arguments=arguments)
            require_approval(self._run.approver, review)
            self._announce(call)
        return call

    def _announce(self, call: RecordedCall) -> None:
        """Record that a call begins."""
        with self._lock:
            call.number, self._next = self._next, self._next + 1
        data = StartedData(call=call.number, name=call.name, arguments=call.arguments)
        self._run.record(EventKind.STARTED, data)

    def announced(self, name: str, arguments: dict[str, Any], do: Callable[[], Any]) -> Any:
        """Do something, and record it: as the tool call in progress, or as a call of its own."""
        self._run.check()  # an approver may have taken its time
        around = _call.get()
        if around is not None and around.number == _NOT_BEGUN:
            self._announce(around)
            return do()
        call = RecordedCall(_NOT_BEGUN, name, arguments)
        self._announce(call)
        return self._do(call, do)

    def _do(self, call: RecordedCall, function: Callable[[], Any]) -> Any:
        """Do a call whose beginning is recorded, and record its end."""
        run = self._run
        run.emit("call_started", text=call.name)
        call.code = run.codes_ended
        start, token = time.monotonic(), _call.set(call)
        try:
            result = function()
            ended: CallOutcome = {"value": str(result)[:_SHOWN], **_whole(result)}
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            if call.number != _NOT_BEGUN or not isinstance(e, ActionRejected | RunEnding):
                error = CallOutcome(error=error_text(e)[:_SHOWN])
                if ends_run(e):
                    error["interrupted"] = True
                self._ended(call, error, start)
            raise
        finally:
            _call.reset(token)
            run.emit("call_ended", text=call.name)
        self._ended(call, ended, start)
        return result

    def _ended(self, call: RecordedCall, outcome: CallOutcome, start: float) -> None:
        """Record the end of a call; before it the beginning of one that never acted."""
        if call.number == _NOT_BEGUN:
            self._announce(call)
        data: CallData = {"call": call.number, "name": call.name, **outcome}
        self._run.record(EventKind.CALL, data, duration=time.monotonic() - start)


class JournaledEnvironment(Environment):
    """An environment whose actions are announced in the journal before they act."""

    def __init__(self, inner: Environment, calls: Calls):
        self._inner, self._calls = inner, calls

    def observe(self) -> Observation:
        return self._inner.observe()

    def named(self, action: Action) -> Action:
        return self._inner.named(action)

    def execute(self, action: Action) -> Observation:
        if isinstance(action, ComputerAction):
            facts = action.arguments()
        elif isinstance(action, BrowserAction):
            facts = action.given()
        else:
            facts = {k: v for k, v in action.to_dict().items() if k != "kind" and v}
        do = functools.partial(self._inner.execute, action)
        seen: Observation = self._calls.announced(action.kind, facts, do)
        return seen

    def close(self) -> None:
        self._inner.close()


_UNSURE = (
    "{}: the run was interrupted during this call; it may or may not have had its effect: "
    "look before you do it again"
)


def _final(result: Any) -> FinishData:
    """What a terminal function returned, as output and log."""
    if isinstance(result, dict) and "output" in result:
        return FinishData(output=str(result["output"]), log=str(result.get("log", "")))
    return FinishData(output="" if result is None else str(result), log="")


def _whole(result: Any) -> CallOutcome:
    """A result for the journal, if it reads back as it is and is not too large."""
    if isinstance(result, AgentResult):
        return {}  # its session says it
    if result.__class__ in _PLAIN or (isinstance(result, str) and len(result) <= _SHORT):
        return {"result": result}
    try:
        text = json.dumps(result)
        same = len(text) <= _RESULT_BYTES and json.loads(text) == result
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"result": result} if same else {}


def _as_recorded(call: RecordedCall, cut: InterruptedSession | None) -> Any:
    """What a call that had ended gave, or raised, then."""
    if call.error:
        kind, _, said = call.error.partition(": ")
        error = getattr(builtins, kind, None)
        if isinstance(error, type) and issubclass(error, Exception):
            raise error(said)
        raise ToolError(said or kind)
    if call.sessions and cut is not None:
        sessions = {sid: one.session for sid, one in cut.others.items()}
        if call.selected is not None:
            return SelectedResult.of_record(call.selected, sessions)
        return AgentResult.of(sessions[call.sessions[-1]])
    return call.result


def jsonable(value: Any) -> Any:
    """`value` if it is JSON data, else what reading it back from JSON text gives; a copy."""
    if value.__class__ in _PLAIN or value.__class__ is str:  # as most arguments are
        return value
    return json.loads(json.dumps(value, default=str))
