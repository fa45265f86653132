"""`MultiStepAgent`: the loop. Plan, act, observe, until a terminal action or a limit."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro import history
from ck_pro.agent_settings import AgentSettings
from ck_pro.approval import Guard, describe
from ck_pro.events import Action, CodeAction, FinishAction, RejectAction, ToolCall
from ck_pro.exceptions import (
    CKError,
    ContentFiltered,
    EnvironmentFailure,
    ExecutorError,
    GuardStopped,
    InputError,
    JournalError,
    LimitReached,
    ManualAbort,
    ModelError,
    ParseError,
    ReplayError,
    RunEnding,
)
from ck_pro.executor import LocalCall
from ck_pro.journal import Journal
from ck_pro.language import parse_literal, parse_thought_code
from ck_pro.model import LLM, Budget, Reply
from ck_pro.results import ActionResult, AgentResult, observed_value, result_value
from ck_pro.run import EventSink, Run, jsonable
from ck_pro.session import AgentSession, StopReason
from ck_pro.task import parse_progress
from ck_pro.tool import definition_text, parameters_schema, signature_text

_log = logging.getLogger(__name__)


class MultiStepAgent(AgentSettings):
    """An agent that solves a task in steps: plan (if it has a plan template), then act by code.

    Its settings are those of `AgentSettings`; subclasses override the hooks.
    """

    # --- running ---------------------------------------------------------------------------

    def run(
        self,
        task: str,
        *,
        session: AgentSession | None = None,
        stream: bool = False,
        max_steps: int | None = None,
        parent: Run | None = None,
        workdir: Path | str | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        cancel: threading.Event | None = None,
        on_event: EventSink | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Any:
        """Work on a task to its end.

        Args:
            task: the instruction.
            session: a fresh session to write into; made when None.
            stream: return an iterator over the steps instead, which runs as it is consumed.
            max_steps: overrides the setting.
            parent: the run that calls this agent as a function.
            workdir: folder for code and files; a temporary one, removed at the end, when None.
            journal: where every event is stored; nowhere when None.
            budget: limits for the whole tree of agents.
            cancel: set it, from any thread, to stop the run.
            on_event: called with small dicts for a display; from several threads.
            info: JSON-able facts for `session.info`; subclasses read their arguments there.

        Returns:
            The session; `status` and `stop_reason` say how it ended. With `stream`, the iterator
            of steps.

        Raises:
            KeyboardInterrupt: Ctrl-C, after everything was released and recorded.
            JournalError: the journal cannot be written.
        """
        self.check()
        session = session or AgentSession(task)
        if session.steps or session.run is not None:
            raise InputError("this session has been run; give a fresh one, or none")
        session.task, session.agent = task, self.name
        session.info.update(jsonable(dict(info or {})))
        session.run = Run(
            self,
            session,
            parent=parent,
            workdir=None if workdir is None else Path(workdir),
            journal=journal,
            budget=budget,
            cancel=cancel,
            on_event=on_event,
        )
        steps = self.yield_session_run(session, max_steps)
        if stream:
            return steps
        for _ in steps:
            pass
        return session

    def yield_session_run(
        self, session: AgentSession, max_steps: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The main loop: yields each step when it is done. See `run`."""
        run = self._live(session)
        limit = self.max_steps if max_steps is None else max_steps
        reason, message = StopReason.INTERNAL_ERROR, ""
        if run.parent is not None:
            run.parent.record("sub_session", {"session": session.id, "name": self.name})
        facts = {"task": session.task, "agent": self.name, "info": session.info}
        run.record("session", {**facts, "config": self.to_dict(), "path": list(run.path)})
        run.emit("run_started", text=session.task)
        try:
            self.init_run(session)
            while not self.step_check_end(session) and len(session.steps) < limit:
                if history.repeats(session) >= self.stuck_limit:
                    raise LimitReached("stuck", f"{self.stuck_limit} equal steps in a row")
                yield self.step(session, session.state)
            reason, message = self._ending(session, limit)
            self.finalize(session)
        except LimitReached as e:
            reason, message = StopReason(e.reason), str(e)
            self._finalize_after_limit(session)
        except BaseException as e:
            reason, message = _reason_of(e), str(e)
            if isinstance(e, KeyboardInterrupt | GeneratorExit):
                run.cancel.set()
                raise
            if isinstance(e, JournalError):
                raise
            if run.parent is not None and isinstance(e, ReplayError | ManualAbort):
                raise  # not the sub-agent's failure: the caller must not go on without knowing
            if reason is StopReason.INTERNAL_ERROR:
                _log.exception("%s: the run ended by an error of ours", "/".join(run.path))
                message = f"{type(e).__name__}: {e}"
        finally:
            self._release(session, reason, message)

    def step(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """One step: observe, plan, decide, act; returns its row."""
        run = self._live(session)
        run.check()
        run.budget.check()
        run.budget.charge_step()
        run.record("step", {})
        run.emit("step_started")
        kwargs = self.step_prepare(session, dict(state))
        try:
            if self._plan_due(session):
                kwargs.update(self._plan(session, kwargs))
            actions = self.decide(session, kwargs)
        except (ParseError, ContentFiltered) as e:
            run.record("error", {"error": type(e).__name__})
            seen: Any = f"{type(e).__name__}: {e}"
        else:
            seen = self.act(session, actions)
        run.record("observation", {"observation": seen})
        run.emit("step_ended", text=history.observation_text(seen)[:200])
        row: dict[str, Any] = session.steps[-1]
        return row

    def decide(
        self, session: AgentSession, kwargs: Mapping[str, Any] | None = None
    ) -> list[Action]:
        """Ask the model what to do: the first half of a step, without its effects."""
        self._live(session)
        kwargs = self.step_prepare(session, session.state) if kwargs is None else kwargs
        extra = self.language.call_kwargs(self.functions())
        reply = self._call_model(session, "action", kwargs, **extra)
        session.run.record("action", self._parse_output(reply), phase="action")
        actions: list[Action] = self.language.parse(reply)
        calls = [describe(a) for a in actions if isinstance(a, ToolCall)]
        if calls:
            session.run.record("action", {"code": "\n".join(calls)}, phase="action")
        return actions

    def act(self, session: AgentSession, actions: Sequence[Action]) -> Any:
        """Carry actions out: the second half of a step. Returns what goes into its row."""
        seen = [self.step_action(session, action) for action in actions]
        return seen[0] if len(seen) == 1 else seen

    def finalize(self, session: AgentSession) -> dict[str, Any]:
        """Fix the final result: by the terminal action, or by a model when there is a template."""
        run: Run = session.run
        found = session.finish or {"output": "", "log": "The run ended without an answer."}
        data: dict[str, Any] = {"final_results": {k: found[k] for k in ("output", "log")}}
        if self.templates.get("end") and (self.end_always or session.finish is None):
            kwargs = {**self.step_prepare(session, session.state), "final_results": found}
            try:
                reply = self._call_model(session, "end", kwargs, model=self.end_model)
                data = {**self._parse_output(reply), **data}
                data["final_results"] = _end_result(reply)
            except (ParseError, ContentFiltered) as e:
                _log.warning("%s: the end phase's reply is not used: %s", self.name, e)
        run.record("end", data, phase="end")
        return data["final_results"]  # type: ignore[no-any-return]

    # --- as a function of another agent ------------------------------------------------------

    def __call__(self, task: str, **kwargs: Any) -> AgentResult:
        """Work on a task and return its result: the protocol of sub-agents.

        Args:
            task: the instruction; all that the agent gets to know.
            kwargs: as for `run`.

        Returns:
            `output` (the answer, "" when there is none) and `log` (how it went, or why it failed).
        """
        return AgentResult.of(self.run(task, **kwargs))

    def bind(self, run: Run | None) -> Callable[..., AgentResult]:
        """This agent as a function for the code of `run`; subclasses may add arguments."""

        def function(task: str) -> AgentResult:
            return self(task, parent=run)

        function.__name__ = self.name
        function.__doc__ = self.description
        return function

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments that this agent takes as a function."""
        return parameters_schema(self.bind(None))

    def get_function_definition(self, short: bool) -> str:
        """The agent as prompts show it to another: one line when `short`, else with more."""
        head = f"{self.name}{signature_text(self.bind(None), returns=False)}"
        returns = "Returns a result with 'output' (the answer) and 'log' (how it was found)."
        return definition_text(head, f"{self.description.strip()}\n\n{returns}", short)

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Before the first step: make what the run needs, such as its environment."""

    def end_run(self, session: AgentSession) -> None:
        """After the last step, whatever ended the run; the run's own parts are released after."""

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """The values for this step's templates; subclasses add what their environment shows."""
        return self._prepare_common_input_kwargs(session, state)

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Carry one action out and return what goes into the step's `observation`."""
        run: Run = session.run
        match action:
            case CodeAction(code=code):
                left = run.budget.remaining_seconds()
                run.executor.wall_timeout = left
                try:
                    result = run.executor.run(code, cancel=run.cancel)
                finally:
                    run.end_children()
                if result.error is not None:
                    run.record("error", {"error": result.error.type})
                return observed_value(result)
            case ToolCall(name=name, arguments=arguments):
                return self._tool_call(run, name, arguments)
            case FinishAction(output=output, log=log):
                run.record("finish", {"output": output, "log": log})
                return output
            case RejectAction(reason=reason):
                run.record("finish", {"output": "", "log": reason, "rejected": True})
                return reason
            case _ if run.environment is not None:
                return str(Guard(run.environment, run.approver).execute(action))
        raise ParseError(f"{self.name} cannot do an action of kind {action.kind!r}")

    def step_check_end(self, session: AgentSession) -> bool:
        """Whether the run ends here: the log has a terminal action."""
        return session.finish is not None

    # --- parts ---------------------------------------------------------------------------

    def _prepare_common_input_kwargs(
        self, session: AgentSession, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The values that every phase's template gets."""
        run = self._live(session)
        functions = self.functions()
        messages = history.messages(self, session)
        notices, run.notices = [*run.notices, *history.notices(session)], []
        return {
            "agent_name": self.name,
            "task": session.task,
            "goals": sorted(self.goals, key=lambda g: g.priority),
            "step_idx": max(0, len(session.steps) - 1),
            "max_steps": self.max_steps,
            "functions_short": "\n".join(f.get_function_definition(True) for f in functions),
            "functions_long": "\n\n".join(f.get_function_definition(False) for f in functions),
            **_state_values(state),
            "plans": bool(self.templates.get("plan")),
            "language": self.language,
            "history": messages,
            "recent_steps_str": "\n\n".join(m["content"] for m in messages),
            "notices": notices,
            "files": history.files_in(run.workdir),
        }

    def _call_model(
        self,
        session: AgentSession,
        phase: str,
        kwargs: Mapping[str, Any],
        model: LLM | None = None,
        **call_kwargs: Any,
    ) -> Reply:
        """Render a phase's template and call the model with it."""
        prompt = self.language.render(self.get_template(phase), kwargs)
        reply: Reply = session.run.call_model(model or self.model, prompt, phase, **call_kwargs)
        return reply

    def _parse_output(self, reply: str) -> dict[str, str]:
        """`thought` and `code` of a reply."""
        return parse_thought_code(reply)

    def _plan_due(self, session: AgentSession) -> bool:
        if not self.templates.get("plan"):
            return False
        stuck = self.plan_when_stuck and history.repeats(session) >= 2
        return stuck or (len(session.steps) - 1) % self.plan_every == 0

    def _plan(self, session: AgentSession, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The plan phase; returns the template values that it changed."""
        reply = self._call_model(session, "plan", kwargs)
        data: dict[str, Any] = dict(self._parse_output(reply))
        try:
            data["state"] = parse_progress(parse_literal(reply))
        except ParseError as e:
            session.run.notices.append(f"Your last plan could not be read, the old one stays: {e}")
        session.run.record("plan", data, phase="plan")
        return _state_values(session.state)

    def _tool_call(self, run: Run, name: str, arguments: Mapping[str, Any]) -> Any:
        functions, _ = run.functions()
        if name not in functions:
            return f"Error: no function {name!r}; known are: {', '.join(functions)}"
        try:
            result = functions[name](**arguments)
        except (RunEnding, EnvironmentFailure):
            raise
        except (CKError, TypeError, ValueError, LookupError, OSError) as e:
            return f"{type(e).__name__}: {e}"
        if isinstance(result, LocalCall):
            return run.do_locally(result)
        return result_value(result)

    def _live(self, session: AgentSession) -> Run:
        """The session's run; a plain one for a session that was made by hand."""
        if session.run is None:
            session.agent = session.agent or self.name
            session.run = Run(self, session)
        run: Run = session.run
        return run

    def _finalize_after_limit(self, session: AgentSession) -> None:
        """Let the end phase tell what was found, if the limit that was reached allows the call."""
        if not session.steps or not self.templates.get("end"):
            return
        try:
            self.finalize(session)
        except (LimitReached, ModelError, EnvironmentFailure) as e:
            _log.info("%s: no end phase: %s", self.name, e)

    def _ending(self, session: AgentSession, limit: int) -> tuple[StopReason, str]:
        if session.finish is not None:
            rejected = session.finish.get("rejected")
            return (
                (StopReason.REJECTED, session.finish["log"])
                if rejected
                else (StopReason.FINISHED, "")
            )
        return StopReason.STEPS, f"{self.name} did not finish within {limit} steps"

    def _release(self, session: AgentSession, reason: StopReason, message: str) -> None:
        """Every ending comes through here: hooks, the last records, the run's own parts."""
        run: Run = session.run
        try:
            self.end_run(session)
        finally:
            run.close()
            self._last_records(session, reason, message)

    def _last_records(self, session: AgentSession, reason: StopReason, message: str) -> None:
        run: Run = session.run
        try:
            if not session.steps:
                run.record("step", {})
            if session.final_results is None:
                results = session.finish or {"output": "", "log": message}
                run.record("end", {"final_results": results}, phase="end")
            facts = {"status": reason.status.value, "stop_reason": reason.value}
            run.record("status", {**facts, "message": message, "budget": run.budget.snapshot()})
            run.emit("run_ended", text=message, **facts)
        finally:
            run.ended()
            session.run = None


def _reason_of(error: BaseException) -> StopReason:
    match error:
        case LimitReached(reason=reason):
            return StopReason(reason)
        case GuardStopped():
            return StopReason.GUARD
        case ModelError():
            return StopReason.MODEL_FAILURE
        case RunEnding() | KeyboardInterrupt() | GeneratorExit():
            return StopReason.CANCELLED
        case EnvironmentFailure() | ExecutorError():
            return StopReason.ENVIRONMENT_FAILURE
    return StopReason.INTERNAL_ERROR


def _state_values(state: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(state, ensure_ascii=False, indent=1, default=str)
    return {"state": dict(state), "state_str": text}


def _end_result(reply: str) -> dict[str, str]:
    value = parse_literal(reply)
    if not isinstance(value, Mapping) or value.get("output") is None:
        raise ParseError("the end result must be a dict with 'output' and 'log'")
    return {"output": str(value["output"]), "log": str(value.get("log", ""))}


__all__ = ["ActionResult", "AgentResult", "MultiStepAgent"]
