"""Functions exposed to model-written code: approval, logging, and replay on resume."""

from __future__ import annotations

import builtins
import contextvars
import functools
import inspect
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.approval import ActionRejected, require_approval
from ck_pro.approval.questions import pending_question
from ck_pro.arguments import ArgumentCheck, call_signature, signature_text
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
from ck_pro.events.progress_events import ProgressKind
from ck_pro.exceptions import AwaitingHuman, RunEnding, ToolError, ends_run, error_text
from ck_pro.executor import current_call
from ck_pro.executor.calls.descriptions import with_declared_names
from ck_pro.files.kinds import is_document
from ck_pro.journal.masking import MASK
from ck_pro.run.interrupted import InterruptedSession, RecordedCall, call_key
from ck_pro.run.results import AgentResult, call_outcome, jsonable
from ck_pro.run.sampling import SelectedResult
from ck_pro.session import AgentSession, Status
from ck_pro.tool import Tool, ToolRegistry

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_ERROR_CHARS = 2000
_NOT_RECORDED = -1
"""Number of a call that is not recorded yet."""
_ACTION_KINDS = (BrowserAction.kind, ComputerAction.kind)
_call: contextvars.ContextVar[RecordedCall | None] = contextvars.ContextVar("call", default=None)
"""The current call of the current thread."""


class ExposedFunctions:
    """The functions of one run, and the calls of its code.

    Args:
        run: the run.
        next_call: number of the next call.
    """

    def __init__(self, run: Run, next_call: int = 0):
        self._run, self._next_call = run, next_call
        self._lock = threading.Lock()
        self._interrupted: InterruptedSession | None = None
        self._recorded: dict[str, list[RecordedCall]] = {}
        self._has_documents = False

    @functools.cached_property
    def registry(self) -> ToolRegistry:
        """The active tools and sub-agents."""
        return self._run.agent.functions()

    @functools.cached_property
    def defined(self) -> ToolRegistry:
        """The functions that the rules of every prompt define."""
        return ToolRegistry([f for f in self.registry if f.name not in self.unlisted])

    @functools.cached_property
    def unlisted(self) -> set[str]:
        """Names of the functions that prompts name only where files are."""
        return self._run.agent.unlisted()

    @property
    def listed(self) -> ToolRegistry:
        """The functions that a request offers; those for files only where documents are."""
        return self.registry if self._run.task_files or self._has_documents else self.defined

    @property
    def offered(self) -> list[Any]:
        """The functions and forms of a request, for a model that acts by function calls."""
        return [*self.listed, *self._run.agent.forms]

    def notice_files(self, files: Iterable[str]) -> None:
        """Offer the functions for files from now on if a document is among these files."""
        self._has_documents = self._has_documents or any(map(is_document, files))

    @functools.cached_property
    def for_files(self) -> list[str]:
        """The short definitions of the functions for files."""
        return [f.get_function_definition(True) for f in self.registry if f.name in self.unlisted]

    @functools.cached_property
    def by_name(self) -> dict[str, Callable[..., Any]]:
        """The functions that the code may call."""
        return {f.name: self._wrap(f, f.bind(self._run)) for f in self.registry}

    def exposed(self, tool: Tool) -> Callable[..., Any]:
        """Return the function of a tool that the agent need not have: approved and logged."""
        return self._wrap(tool, tool.bind(self._run))

    @functools.cached_property
    def terminal(self) -> set[str]:
        """Names of the functions that end the run."""
        return set(self.registry.terminal)

    @functools.cached_property
    def packages(self) -> list[str]:
        """Folders of the packages that calls of tools load in the worker."""
        return sorted({getattr(f, "package", "") for f in self.registry} - {""})

    @functools.cached_property
    def readable(self) -> list[str]:
        """More files and folders that calls of tools read in the worker."""
        return [path for f in self.registry if isinstance(f, Tool) for path in f.readable()]

    # --- sub-agents ------------------------------------------------------------------------

    def record_child_session(self, session: AgentSession) -> None:
        """Record that the current call started the session of a sub-agent."""
        data = SubSessionData(session=session.id, name=session.agent)
        self.record_for_call(EventKind.SUB_SESSION, data)

    def record_for_call(self, kind: EventKind, data: SubSessionData | SelectedData) -> None:
        """Record an event of the current call."""
        call = _call.get()
        if call is not None:
            data["call"] = call.number
        self._run.record(kind, data)

    def resume_child_session(self) -> InterruptedSession | None:
        """Return the next session that the current call started before the interruption."""
        call = _call.get()
        if call is None or not call.sessions or self._interrupted is None:
            return None
        return self._interrupted.sessions.get(call.sessions.pop(0))

    def pop_ended_session(self) -> AgentSession | None:
        """Return the next session of the current call if it ended without interruption."""
        call = _call.get()
        if call is None or not call.sessions or self._interrupted is None:
            return None
        # None: the caller recorded the session, but the session recorded nothing
        child = self._interrupted.sessions.get(call.sessions[0])
        if child is None or child.interrupted or child.session.status is Status.IN_PROGRESS:
            return None
        del call.sessions[0]
        return child.session

    def is_orphaned(self) -> bool:
        """Whether the code that made the current call has ended."""
        call = _call.get()
        return call is not None and call.execution != self._run.executions

    # --- replay of a step ------------------------------------------------------------------

    def on_resume(self, name: str) -> str | None:
        """Return how the run treats a recorded call of a function.

        That is `Tool.on_resume`; "adopt" for a sub-agent, None for an unknown function. Calls that
        acted on a page which the run still has are answered from their records.
        """
        function = self.registry.get(name)
        if function is None or name in _ACTION_KINDS:  # such a call may be an action of a reply
            return None if function is None else "never"
        rule: str = getattr(function, "on_resume", "adopt")
        acted = rule == "never" and _acts(function)
        return "answer" if acted and self._run.reconnected() else rule

    def start_replay(self, interrupted: InterruptedSession) -> None:
        """Answer the calls of the current step from their records until `stop_replay`."""
        with self._lock:
            self._interrupted = interrupted
            for call in interrupted.calls:
                self._recorded.setdefault(call.key, []).append(call)

    def stop_replay(self) -> None:
        """Execute all further calls."""
        with self._lock:
            self._interrupted, self._recorded = None, {}

    def _pop_record(self, name: str, arguments: Mapping[str, Any]) -> RecordedCall | None:
        if not self._recorded:
            return None
        with self._lock:
            calls = self._recorded.get(call_key(name, arguments))
            return calls.pop(0) if calls else None

    def complete_pending_calls(self, interrupted: InterruptedSession) -> None:
        """Complete the pending sub-agents and questions of a step whose code does not run again.

        Raises:
            RunEnding: a call was interrupted again.
        """
        for call in interrupted.calls:
            rule = self.on_resume(call.name)
            if call.ended or not (call.sessions if rule == "adopt" else rule == "again"):
                continue
            if rule == "again" and not call.error:
                continue
            try:
                call.result_text, call.error = str(self.by_name[call.name](**call.arguments)), ""
            except BaseException as e:
                if ends_run(e):
                    raise
                call.error = error_text(e)
            call.ended = call.ended_on_resume = True
        for facts in self._run.replies.pending_approvals():
            done = self._execute_approved(Action.from_dict(facts))
            if done is not None:
                interrupted.calls.append(done)
                interrupted.guard_message = ""

    def _execute_approved(self, action: Action) -> RecordedCall | None:
        """Execute an action that the user approved; return the call, or None if it cannot run.

        Its values may be masked in the journal, and its page may be closed. Then the model decides.
        """
        run, facts = self._run, action.to_dict()
        if MASK in json.dumps(facts):
            return None
        function: Callable[[], Any]
        if isinstance(action, ToolCall) and action.name in self.by_name:
            call = RecordedCall(_NOT_RECORDED, action.name, action.arguments)
            function = functools.partial(self.by_name[action.name], **action.arguments)
        elif run.reconnected() and not isinstance(action, ToolCall):
            name, arguments = _named(action)
            call = RecordedCall(_NOT_RECORDED, name, arguments)
            function = functools.partial(run.act, action)
        else:
            return None
        try:
            call.result_text = str(function())
        except BaseException as e:
            if ends_run(e):
                raise
            call.error = error_text(e)
        call.ended = call.ended_on_resume = True
        return call

    # --- one call --------------------------------------------------------------------------

    def _wrap(self, exposed: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a tool's or sub-agent's function with approval, logging and replay."""
        signature, terminal = call_signature(function), getattr(exposed, "terminal", False)
        synonyms, acts = getattr(exposed, "synonyms", {}), _acts(exposed)
        shown = f"{exposed.name}{signature_text(function, returns=False)}"
        check = ArgumentCheck(exposed.name, function) if _checks(exposed) else None

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if synonyms:
                kwargs = with_declared_names(call, kwargs)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as e:
                raise TypeError(f"{exposed.name}: {e}. The signature is {shown}") from None
            if check is not None:
                bound.arguments.update(check(bound.arguments))
            arguments = {k: jsonable(v) for k, v in bound.arguments.items()}
            if not acts:  # else `Run.act` checks
                self._run.check()
            if terminal:  # a stop that a review in another thread decides comes first
                self._run.questions.settle(self._run.check)
            try:
                with self._run.questions.of_call():
                    result = replay_or_execute(arguments, bound)
            except AwaitingHuman:
                self._run.stopped_for_user = True
                raise
            if terminal and self._run.session.finish is None:
                self._run.record(EventKind.FINISH, finish_data(result))
            return result

        def replay_or_execute(arguments: dict[str, Any], bound: inspect.BoundArguments) -> Any:
            recorded = self._pop_record(exposed.name, arguments)
            if recorded is not None and recorded.ended:
                result = _recorded_result(recorded, self._interrupted)
                call = current_call()
                if call is not None and getattr(exposed, "reports_result", False):
                    call.report(str(result))
                return result
            started = recorded or self._approve(exposed, arguments)
            if recorded is not None and self.on_resume(exposed.name) == "answer":
                raise ToolError(_UNCERTAIN.format(exposed.name))
            return self._execute(started, lambda: self._call(exposed, function, bound))

        vars(call)["synonyms"] = synonyms
        return call

    def _approve(self, exposed: Any, arguments: dict[str, Any]) -> RecordedCall:
        """Return a new call after its approval; `Run.act` reviews the calls that act by it."""
        call = RecordedCall(_NOT_RECORDED, exposed.name, arguments)
        if not _acts(exposed):
            review = ToolCall(name=exposed.name, arguments=arguments)
            with self._run.asking(), pending_question():
                require_approval(self._run.approver, review)
            self.require_current(exposed.name)
            self._record_start(call)
        return call

    def _call(
        self, exposed: Any, function: Callable[..., Any], bound: inspect.BoundArguments
    ) -> Any:
        """Call a function: a tool through the environment of the run, if it has one."""
        environment = self._run.environment
        passes = isinstance(exposed, Tool) and not (exposed.terminal or _acts(exposed))
        if environment is None or not passes:
            return function(*bound.args, **bound.kwargs)
        tool = _BoundTool(exposed, function, bound.signature)
        return environment.execute_action(tool, bound.arguments)

    def act(self, environment: Environment, action: Action) -> Observation:
        """Execute an action in an environment; journal it as the current call or as a new one."""
        pictured = action if environment.step_pictures else None
        current = _call.get()
        if current is not None and current.number == _NOT_RECORDED:
            self._record_start(current, pictured)
            return environment.execute(action)
        call = RecordedCall(_NOT_RECORDED, *_named(action))
        self._record_start(call, pictured)
        observation: Observation = self._execute(call, lambda: environment.execute(action))
        return observation

    def require_current(self, name: str) -> None:
        """Return if the step of this call has not ended during the review, which may take long.

        Raises:
            ToolError: it has ended.
            Cancelled, LimitReached: the run must stop.
        """
        self._run.check()
        call = current_call()
        if call is not None and call.is_set():
            raise ToolError(f"{name} was not called: its step had ended before the approval")

    def _execute(self, call: RecordedCall, function: Callable[[], Any]) -> Any:
        """Execute a call and record its end."""
        run = self._run
        run.emit(ProgressKind.CALL_STARTED, text=call.name)
        call.execution = run.executions
        start, token = time.monotonic(), _call.set(call)
        try:
            result = function()
            outcome = call_outcome(result)
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            if call.number != _NOT_RECORDED or not isinstance(e, ActionRejected | RunEnding):
                failure = CallOutcome(error=error_text(e)[:_ERROR_CHARS])
                if ends_run(e):
                    failure["interrupted"] = True
                self._record_end(call, failure, start)
            raise
        finally:
            _call.reset(token)
            run.emit(ProgressKind.CALL_ENDED, text=call.name)
        self._record_end(call, outcome, start)
        return result

    def _record_start(self, call: RecordedCall, action: Action | None = None) -> None:
        """Record that a call starts; before it, a picture of what an action acts on, if given."""
        with self._lock:
            call.number, self._next_call = self._next_call, self._next_call + 1
        if action is not None:
            self._run.pictures.record(action, call.number)
        data = StartedData(call=call.number, name=call.name, arguments=call.arguments)
        self._run.record(EventKind.STARTED, data)

    def _record_end(self, call: RecordedCall, outcome: CallOutcome, start: float) -> None:
        if call.number == _NOT_RECORDED:  # it never acted
            self._record_start(call)
        data: CallData = {"call": call.number, "name": call.name, **outcome}
        self._run.record(EventKind.CALL, data, duration=time.monotonic() - start)


def _acts(exposed: Any) -> bool:
    """Whether a function acts through `Run.act`, which has its actions approved and journaled."""
    return getattr(exposed, "acts_by_run", False)


def _checks(exposed: Any) -> bool:
    """Whether the run checks the arguments of a function: of tools, if they do not themselves."""
    return isinstance(exposed, Tool) and exposed.checks_arguments


class _BoundTool:
    """A tool of a run, for `Environment.execute_action`."""

    def __init__(self, tool: Tool, function: Callable[..., Any], signature: inspect.Signature):
        self.name, self.description = tool.name, tool.description
        self.parameters, self.tags = tool.parameters, tool.tags
        self._function, self._signature = function, signature

    def execute(self, **arguments: Any) -> Any:
        """See `BoundTool`."""
        bound = inspect.BoundArguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)


_UNCERTAIN = (
    "{}: the run was interrupted during this call, which may have had an effect. Check the current "
    "state before you repeat it."
)


def _named(action: Action) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments under which an action is journaled."""
    if isinstance(action, ComputerAction):
        return action.kind, action.arguments()
    if isinstance(action, BrowserAction):
        return action.kind, action.given()
    return action.kind, {k: v for k, v in action.to_dict().items() if k != "kind" and v}


def finish_data(result: Any) -> FinishData:
    """Return the result of a terminal function as output and log."""
    if isinstance(result, dict) and "output" in result:
        return FinishData(output=str(result["output"]), log=str(result.get("log", "")))
    return FinishData(output="" if result is None else str(result), log="")


def _recorded_result(call: RecordedCall, interrupted: InterruptedSession | None) -> Any:
    """Return the recorded result of a call, or raise its recorded error."""
    if call.error:
        kind, _, message = call.error.partition(": ")
        error = getattr(builtins, kind, None)
        if isinstance(error, type) and issubclass(error, Exception):
            raise error(message)
        raise ToolError(message or kind)
    if call.sessions and interrupted is not None:
        sessions = {sid: one.session for sid, one in interrupted.sessions.items()}
        if call.selected is not None:
            return SelectedResult.from_record(call.selected, sessions)
        return AgentResult.of(sessions[call.sessions[-1]])
    return call.result
