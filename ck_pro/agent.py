"""`MultiStepAgent`: the loop. Plan, act, observe, until a terminal action or a limit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.calls import jsonable
from ck_pro.endings import last_records, reason_of, reason_without_error
from ck_pro.events import (
    Action,
    CodeAction,
    ErrorObservation,
    FinishAction,
    RejectAction,
    ToolCall,
)
from ck_pro.exceptions import (
    CKError,
    ContentFiltered,
    EnvironmentFailure,
    InputError,
    JournalError,
    LimitReached,
    ManualAbort,
    ParseError,
    ReplayError,
    RunEnding,
)
from ck_pro.executor import LocalCall
from ck_pro.history import observation_text
from ck_pro.journal import Journal, read_events
from ck_pro.model import Budget, Reply
from ck_pro.phases import AskingAgent
from ck_pro.results import ActionResult, AgentResult, observed_value, result_value
from ck_pro.resume import CutOff, Used, cut_off
from ck_pro.run import EventSink, Run
from ck_pro.session import AgentSession, Status, StopReason

_log = logging.getLogger(__name__)


class MultiStepAgent(AskingAgent):
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
        cut = parent.calls.adopt() if parent is not None and session is None else None
        session = cut.session if cut is not None else session or AgentSession(task)
        if cut is None:
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
            cut_off=cut,
        )
        return self._consumed(session, stream, max_steps)

    def resume(
        self,
        session: AgentSession | None = None,
        *,
        found: tuple[CutOff, Used] | None = None,
        answer: str = "",
        stream: bool = False,
        max_steps: int | None = None,
        workdir: Path | str | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        cancel: threading.Event | None = None,
        on_event: EventSink | None = None,
    ) -> Any:
        """Go on with a run that was cut off, suspended or stopped, that waits for an answer, or
        that ended with a problem (raise the limit that ended it).

        Finished steps are kept; for the step under way see `ck_pro.resume`. What the run had used
        counts against the budget.

        Args:
            session: that of a run in this process which kept no journal; else None.
            found: what `ck_pro.resume.cut_off` made of the journal, if that has been read.
            answer: to the question for which the run ended (`session.message`).
            journal: of the run; the session is rebuilt from it.
            stream, max_steps, workdir, budget, cancel, on_event: as for `run`.

        Returns:
            As `run`.

        Raises:
            InputError: there is nothing to go on with, or the run is done.
            KeyboardInterrupt, JournalError: as `run`.
        """
        self.check()
        cut, used = CutOff(session) if session is not None else None, Used()
        if found is not None:
            cut, used = found
        elif cut is None and journal is not None and journal.folder is not None:
            cut, used = cut_off(read_events(journal.folder))
        if cut is None:
            raise InputError("nothing to go on with: give a journal that holds a run, or a session")
        session = cut.session
        if session.run is not None or session.status is Status.DONE:
            raise InputError(f"session {session.id} is done, or still runs")
        budget = budget or Budget()
        budget.carry(used.steps, used.seconds, used.calls)
        session.run = Run(
            self,
            session,
            workdir=None if workdir is None else Path(workdir),
            journal=journal,
            budget=budget,
            cancel=cancel,
            on_event=on_event,
            cut_off=cut,
            answer=answer,
        )
        return self._consumed(session, stream, max_steps)

    def suspend_run(self, session: AgentSession) -> None:
        """Pause a run between two steps (see `run(stream=True)`): no ending, `resume` goes on.

        What its environment holds on lease is kept and journaled; the worker is released.
        """
        run: Run = session.run
        environment, run.environment = run.environment, None
        lease = environment.suspend() if environment is not None else None
        self.end_run(session)
        run.record("suspended", {"lease": lease})
        run.close()
        run.ended()
        session.run = None

    def _consumed(self, session: AgentSession, stream: bool, max_steps: int | None) -> Any:
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
        if run.parent is not None and run.cut_off is None:
            run.parent.calls.tell_sub_session(session)
        if run.cut_off is None:
            facts = {"task": session.task, "agent": self.name, "info": session.info}
            facts.update(config=self.to_dict(), path=list(run.path), workdir=str(run.workdir))
            run.record("session", facts)
        run.emit("run_started", text=session.task)
        try:
            self.init_run(session)
            if run.cut_off is not None:
                run.continued()
            while not self.step_check_end(session) and (run.cut_off or len(session.steps) < limit):
                if run.history.repeats() >= self.stuck_limit:
                    raise LimitReached("stuck", f"{self.stuck_limit} equal steps in a row")
                yield self.step(session, session.state)
                if session.run is not run:
                    return  # suspended meanwhile
            reason, message = reason_without_error(session, self.name, limit)
            self.finalize(session)
        except LimitReached as e:
            reason, message = StopReason(e.reason), str(e)
            self._finalize_after_limit(session)
        except BaseException as e:
            reason, message = reason_of(e), str(e)
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
            if session.run is not None:  # else it was suspended
                self._release(session, reason, message)

    def step(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """One step: observe, plan, decide, act; returns its row."""
        run = self._live(session)
        run.check()
        cut, run.cut_off = run.cut_off, None
        if cut is None or not cut.under_way:
            run.budget.check()
            run.budget.charge_step()
            run.record("step", {})
        run.emit("step_started")
        if cut is not None and cut.reply is not None and cut.under_way:
            seen = self._go_on(session, cut, cut.reply)
        else:
            seen = self._decide_and_act(session, state)
        run.record("observation", {"observation": seen})
        run.emit("step_ended", text=observation_text(seen)[:200])
        row: dict[str, Any] = session.steps[-1]
        return row

    def _decide_and_act(self, session: AgentSession, state: Mapping[str, Any]) -> Any:
        kwargs = self.step_prepare(session, dict(state))
        try:
            if self._plan_due(session):
                kwargs.update(self._plan(session, kwargs))
            actions = self.decide(session, kwargs)
        except (ParseError, ContentFiltered) as e:
            session.run.record("error", {"error": type(e).__name__})
            return f"{type(e).__name__}: {e}"
        return self.act(session, actions)

    def _go_on(self, session: AgentSession, cut: CutOff, reply: Reply) -> Any:
        """Do what is left of a step that was cut off after the model had replied."""
        run: Run = session.run
        if not cut.can_run_again(run.calls.on_resume, run.workdir):
            return cut.told()
        run.calls.answer_from(cut)
        try:
            return self.act(session, self._read(session, reply))
        except ParseError as e:
            run.record("error", {"error": type(e).__name__})
            return f"{type(e).__name__}: {e}"
        finally:
            run.calls.forget()

    def act(self, session: AgentSession, actions: Sequence[Action]) -> Any:
        """Carry actions out: the second half of a step. Returns what goes into its row."""
        seen = [self.step_action(session, action) for action in actions]
        return seen[0] if len(seen) == 1 else seen

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Before the first step: make what the run needs, such as its environment."""

    def end_run(self, session: AgentSession) -> None:
        """After the last step, whatever ended the run; the run's own parts are released after."""

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Carry one action out and return what goes into the step's `observation`."""
        run: Run = session.run
        match action:
            case CodeAction(code=code):
                left = run.budget.remaining_seconds()
                run.executor.wall_timeout = left
                try:
                    result = run.executor.run(code, cancel=run.cancel_code)
                finally:
                    run.end_children()
                if result.error is not None and result.error.type == "Cancelled":
                    run.check()  # the step stays under way, to be resumed
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
                seen = run.calls.act(action)
                if isinstance(seen, ErrorObservation):
                    run.record("error", {"error": "ActionFailed"})
                return str(seen)
        return f"Error: {self.name} cannot do an action of kind {action.kind!r}."

    def step_check_end(self, session: AgentSession) -> bool:
        """Whether the run ends here: the log has a terminal action."""
        return session.finish is not None

    # --- parts ---------------------------------------------------------------------------

    def _tool_call(self, run: Run, name: str, arguments: Mapping[str, Any]) -> Any:
        functions = run.calls.functions
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

    def _release(self, session: AgentSession, reason: StopReason, message: str) -> None:
        """Every ending comes through here: hooks, the last records, the run's own parts."""
        run: Run = session.run
        try:
            self.end_run(session)
        finally:
            run.close()
            last_records(session, reason, message)


__all__ = ["ActionResult", "AgentResult", "MultiStepAgent"]
