"""`MultiStepAgent`: the loop. Plan, act, observe, until a terminal action or a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ck_pro.agent.acting import ActingAgent
from ck_pro.agent.stop_reasons import (
    classify_failure,
    normal_stop_reason,
    record_ending,
    should_propagate,
    waits_for_person,
)
from ck_pro.exceptions import (
    AwaitingHuman,
    ConfigError,
    ContentFiltered,
    InputError,
    LimitReached,
    ParseError,
)
from ck_pro.journal import Journal, read_events
from ck_pro.model import Budget, Reply
from ck_pro.run.exposed_functions import jsonable
from ck_pro.run.results import ActionResult, AgentResult
from ck_pro.run.resume import InterruptedSession, PriorUsage, cut_off
from ck_pro.run.run import EventSink, Run, check_extra_info, check_given
from ck_pro.session import AgentSession, Status, StopReason
from ck_pro.session.observed import observation_text


class MultiStepAgent(ActingAgent):
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
        **extra_info: Any,
    ) -> Any:
        """Work on a task to its end.

        Args:
            task: the instruction; what is no text is taken as its `str()`.
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
            extra_info: more of these: `run(task, target_url="https://...")`.

        Returns:
            The session; `status` and `stop_reason` say how it ended. With `stream`, the iterator
            of steps.

        Raises:
            KeyboardInterrupt: Ctrl-C, after everything was released and recorded.
            JournalError: the journal cannot be written.
            InputError: there is no task, the session has been run, or an argument is no such thing.
        """
        check_extra_info(extra_info, MultiStepAgent.run)
        if task is None:
            raise InputError("there is no task: give an instruction as text")
        task = str(task)
        self.check()
        check_given(journal, budget)
        cut = (
            parent.calls.resume_child_session() if parent is not None and session is None else None
        )
        session = cut.session if cut is not None else session or AgentSession(task)
        if cut is None:
            if parent is not None:
                parent.allow_sub_agent()
            if session.steps or session.run is not None:
                raise InputError("this session has been run; give a fresh one, or none")
            session.task, session.agent = task, self.name
            session.info.update(jsonable({**(info or {}), **extra_info}))
        shared = {"journal": journal, "budget": budget, "cancel": cancel, "on_event": on_event}
        return self._start(
            session, stream, max_steps, parent=parent, workdir=workdir, cut_off=cut, **shared
        )

    def resume(
        self,
        session: AgentSession | None = None,
        *,
        found: tuple[InterruptedSession, PriorUsage] | None = None,
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

        Finished steps are kept; `ck_pro.run.resume` describes the step in progress. Earlier use
        counts against the budget.

        Args:
            session: that of a run in this process which kept no journal; else None.
            found: what `ck_pro.run.resume.cut_off` made of the journal, if that has been read.
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
        check_given(journal, budget)
        cut, used = (
            InterruptedSession(session, lease=session.lease) if session is not None else None,
            PriorUsage(),
        )
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
        shared = {"journal": journal, "budget": budget, "cancel": cancel, "on_event": on_event}
        return self._start(
            session, stream, max_steps, workdir=workdir, cut_off=cut, answer=answer, **shared
        )

    def suspend_run(self, session: AgentSession) -> None:
        """Pause a run between two steps (see `run(stream=True)`): no ending, `resume` goes on.

        What its environment holds on lease is kept and journaled; the worker is released.
        """
        run: Run = session.run
        lease = run.suspend_environment()
        self.end_run(session)
        run.record("suspended", {"lease": lease})
        run.close()
        run.ended()
        session.run = None

    def _start(
        self, session: AgentSession, stream: bool, max_steps: int | None, **settings: Any
    ) -> Any:
        """Give a session its live run, and run it, or leave that to whoever takes the steps."""
        run = session.run = Run(self, session, **settings)
        if self.max_seconds is not None:
            run.budget = Budget(max_seconds=self.max_seconds, parent=run.budget)
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
        error: BaseException | None = None
        self._record_start(run)
        try:
            self.init_run(session)
            if run.cut_off is not None:
                run.continued()
            while not self._ended(session) and (run.cut_off or len(session.steps) < limit):
                if run.history.repeats() >= self.stuck_limit:
                    raise LimitReached("stuck", f"{self.stuck_limit} equal steps in a row")
                yield self._next_step(session)
                if session.run is not run:
                    return  # suspended meanwhile
            reason, message = normal_stop_reason(session, self.name, limit)
            if session.steps:
                self._finalized(session)
        except LimitReached as e:
            reason, message = StopReason(e.reason), str(e)
            self._finalize_after_limit(session)
        except BaseException as e:
            error, (reason, message) = e, classify_failure(e, run)
            if isinstance(e, KeyboardInterrupt | GeneratorExit):
                run.cancel.set()
            if should_propagate(e, run):
                if isinstance(e, AwaitingHuman) and not e.session:
                    e.session, e.path = session.id, "/".join(run.path)
                raise
        finally:
            if session.run is not None:  # else it was suspended
                self._release(session, reason, message, error)

    def step(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """One step: observe, plan, decide, act; returns its row."""
        run = self._live(session)
        run.check()
        cut, run.cut_off = run.cut_off, None
        if cut is None or not cut.under_way:
            run.begin_step()
        run.emit("step_started")
        if cut is not None and cut.under_way and cut.acted:
            seen = self._resume_step(session, cut)
        else:
            seen = self._decide_and_act(session, state)
        run.record("observation", {"observation": seen})
        if cut is not None:
            run.drop_answers()
        run.emit("step_ended", text=observation_text(seen)[:200])
        row: dict[str, Any] = session.steps[-1]
        return row

    def _ended(self, session: AgentSession) -> bool:
        """What `step_check_end` says of the step that was done; before the first there is none."""
        return bool(session.steps) and self.step_check_end(session)

    def _next_step(self, session: AgentSession) -> dict[str, Any]:
        """`step`; a subclass's own one that did nothing would go on for ever."""
        before, goes_on = len(session.steps), session.run.cut_off is not None
        row = self.step(session, session.state)
        if len(session.steps) == before and not goes_on:
            raise ConfigError(
                f"{type(self).__name__}.step did no step (it returned {type(row).__name__}): "
                "have it call and return super().step(session, state)"
            )
        return row

    def _decide_and_act(
        self, session: AgentSession, state: Mapping[str, Any], recorded: Reply | None = None
    ) -> Any:
        """What a step does; what the model replied may be there already."""
        try:
            if recorded is not None:
                actions = self._read(session, recorded)
            else:
                kwargs = self.step_prepare(session, dict(state))
                if self._plan_due(session):
                    kwargs.update(self._plan(session, kwargs))
                actions = self.decide(session, kwargs)
        except (ParseError, ContentFiltered) as e:
            return session.run.fault(e)
        return self.act(session, actions)

    def _resume_step(self, session: AgentSession, cut: InterruptedSession) -> Any:
        """Do what is left of a step that was cut off after the model had replied."""
        run: Run = session.run
        run.calls.answer_from(cut)
        try:
            again = run.same_world() and cut.is_replayable(run.calls.on_resume, run.workdir)
            if again and cut.reply is not None:
                return self._decide_and_act(session, session.state, cut.reply)
            run.calls.finish_interrupted(cut)
            return cut.told()
        finally:
            run.calls.forget()

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Before the first step: make what the run needs, such as its environment."""

    def end_run(self, session: AgentSession) -> None:
        """After the last step, whatever ended the run; the run's own parts are released after."""

    def step_check_end(self, session: AgentSession) -> bool:
        """Whether the run ends after the step that was done: the log has a terminal action."""
        return session.finish is not None

    # --- parts ---------------------------------------------------------------------------

    def _record_start(self, run: Run) -> None:
        """Record that a session begins; of one that goes on this was recorded before."""
        if run.cut_off is None:
            if run.parent is not None:
                run.parent.calls.tell_sub_session(run.session)
            run.begin()
        run.emit("run_started", text=run.session.task)

    def _release(
        self,
        session: AgentSession,
        reason: StopReason,
        message: str,
        error: BaseException | None,
    ) -> None:
        """Every ending comes through here: hooks, the last records, the run's own parts."""
        run: Run = session.run
        lease: Any = None
        try:
            if waits_for_person(error, run):
                lease = run.suspend_environment()
            self.end_run(session)
        finally:
            run.close()
            record_ending(session, reason, message, error, lease)


__all__ = ["ActionResult", "AgentResult", "MultiStepAgent"]
