"""`MultiStepAgent`: plan, act and observe, until a terminal action or a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ck_pro.agent.actions import (
    act_on_environment,
    call_function,
    read_actions,
)
from ck_pro.agent.as_function import agent_definition, bind_agent, call_agent
from ck_pro.agent.by_hand.reply_guide import AgentReplyGuide
from ck_pro.agent.prompts import prompt_values
from ck_pro.agent.run_end import (
    classify_failure,
    finalize_after_limit,
    normal_stop_reason,
    record_finalized,
    release,
    should_propagate,
)
from ck_pro.agent.steps import decide_and_act, end_result, resume_step
from ck_pro.agent.turns import (
    check_extra_info,
    check_types,
    end_session,
    open_turn,
    prepare_session,
    record_turn,
    suspend_run,
)
from ck_pro.agent.typed_actions import carry_out, is_typed
from ck_pro.agent_settings import AgentSettings
from ck_pro.approval import describe
from ck_pro.arguments import parameters_schema
from ck_pro.events import (
    Action,
    CodeAction,
    EventKind,
    FinishAction,
    RejectAction,
    ThinkAction,
    ToolCall,
)
from ck_pro.events.event_parts import FinalResults
from ck_pro.events.journal_events import (
    EndData,
    FinishData,
    ObservationData,
    ParsedReply,
)
from ck_pro.events.progress_events import ProgressKind
from ck_pro.exceptions import (
    AwaitingHuman,
    ConfigError,
    InputError,
    LimitReached,
)
from ck_pro.journal import Journal
from ck_pro.language import parse_thought_code
from ck_pro.model import LLM, Budget, Reply
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.kept import take_over
from ck_pro.run.results import AgentResult, code_observation, with_note
from ck_pro.run.resume import PriorUsage, find_interrupted, record_resumed
from ck_pro.run.run import Run, run_of
from ck_pro.run.tree import EventSink
from ck_pro.run.working_folder import FILES, by_name, describe_files, place_files
from ck_pro.run_context import RunContext
from ck_pro.session import AgentSession, Status, StopReason
from ck_pro.session.memory import Memory
from ck_pro.session.observed import combine_observations
from ck_pro.session.rows import Step


class MultiStepAgent(AgentSettings):
    """An agent that solves a task in steps: observe, plan, decide, act.

    The object holds only configuration, so one agent can serve many concurrent runs. The state of
    a run is in its `AgentSession` and its `Run`. Subclasses override the hooks.
    """

    can_continue: ClassVar[bool] = False
    """Whether a call can continue an ended one of the same caller; see `run(continue_from=...)`."""

    # --- run and resume --------------------------------------------------------------------

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
        memory: Memory | AgentSession | Sequence[Any] | None = None,
        continue_from: AgentSession | None = None,
        files: Sequence[Path | str] = (),
        **extra_info: Any,
    ) -> Any:
        """Work on a task until the run ends.

        Args:
            task: the instruction; other types are converted by `str()`.
            session: a new session to write into; created when None.
            stream: return an iterator over the steps; the run proceeds as it is consumed.
            max_steps: overrides the setting.
            parent: the run that calls this agent as a function.
            workdir: directory for code and files; a temporary one, removed at the end, when None.
            journal: store of all events; none when None.
            budget: limits for the whole tree of agents.
            cancel: event that stops the run; any thread may set it.
            on_event: receives small dicts for a display, from several threads.
            info: JSON-able facts for `session.info`; subclasses read their arguments there.
            memory: the sessions of earlier runs, or a `Memory`, to show in the prompts.
            continue_from: an ended session of this agent and of `parent`, whose environment and
                variables this run uses.
            files: files of the task: copied into the working directory, large ones linked
                read-only; prompts list them first.
            extra_info: more facts: `run(task, target_url="https://...")`.

        Returns:
            The session; `status` and `stop_reason` say how it ended. With `stream`, the iterator
            of steps.

        Raises:
            KeyboardInterrupt: Ctrl-C, after everything was released and recorded.
            JournalError: the journal cannot be written.
            InputError: the task is None, the session is not new, or an argument has a wrong type.
        """
        check_extra_info(extra_info, MultiStepAgent.run)
        check_types(journal, budget)
        self.check()
        given = by_name(files)
        interrupted = None
        if parent is not None and session is None:
            interrupted = parent.functions.resume_child_session()
        if interrupted is not None:
            session = interrupted.session
        else:
            if parent is not None:
                parent.check_sub_agent()
            facts = {**(info or {}), **extra_info}
            if given:
                facts[FILES] = describe_files(given)
            session = prepare_session(session, task, self.name, facts, memory)
        session.run = Run(
            self,
            session,
            parent=parent,
            workdir=workdir,
            journal=journal,
            budget=budget,
            cancel=cancel,
            on_event=on_event,
            interrupted=interrupted,
        )
        if continue_from is not None and interrupted is None:
            take_over(session.run, continue_from)
        place_files(session.run.workdir, given)
        return self._drive(session, stream, max_steps)

    def resume(
        self,
        session: AgentSession | None = None,
        *,
        found: tuple[InterruptedSession, PriorUsage] | None = None,
        answer: str = "",
        approve: bool = False,
        stream: bool = False,
        max_steps: int | None = None,
        workdir: Path | str | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        cancel: threading.Event | None = None,
        on_event: EventSink | None = None,
    ) -> Any:
        """Resume a run that was interrupted or suspended, waits for an answer, or ended with a
        problem (raise the limit that ended it).

        Finished steps are kept; see `ck_pro.run.resume` for the step in progress. The usage so
        far counts against the budget.

        Args:
            session: session of a run in this process that has no journal.
            found: the result of `ck_pro.run.resume.read_interrupted_run`, if already called.
            answer: answer to the question for which the run ended (`session.message`).
            approve: let the action run for which the approver stopped the run. This approves only
                that one recorded action, and only once.
            journal: journal of the run; the session is rebuilt from it.
            stream, max_steps, workdir, budget, cancel, on_event: as for `run`.

        Returns:
            As `run`.

        Raises:
            InputError: no run to resume was found, or it is done; or `approve` is set, and no
                action waits for approval.
            KeyboardInterrupt, JournalError: as `run`.
        """
        check_types(journal, budget)
        self.check()
        interrupted, usage = found or find_interrupted(session, journal)
        session = interrupted.session
        if session.run is not None or session.status is Status.DONE:
            raise InputError(f"session {session.id} is done, or still runs")
        budget = budget or Budget()
        budget.carry(usage.steps, usage.seconds, usage.calls)
        session.run = Run(
            self,
            session,
            workdir=workdir,
            journal=journal,
            budget=budget,
            cancel=cancel,
            on_event=on_event,
            interrupted=interrupted,
            answer=answer,
            approve=approve,
        )
        return self._drive(session, stream, max_steps)

    def turn(
        self,
        session: AgentSession | None,
        text: str,
        *,
        found: tuple[InterruptedSession, PriorUsage] | None = None,
        max_steps: int | None = None,
        workdir: Path | str | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        cancel: threading.Event | None = None,
        on_event: EventSink | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> AgentSession:
        """Work on the next message of a conversation until the agent has answered.

        Environment, worker and variables stay for the next turn: call `end_session` after the last
        one, or `suspend_run` to keep the lease of the environment.

        Args:
            session: the session of the conversation; None, or a new one, for the first message. An
                ended session of `run` or `resume` also works.
            text: the message of the user. If the last turn ended with a question, it is the answer.
                "" completes a turn that was interrupted; another message replaces that turn.
            found: as for `resume`.
            max_steps: maximum number of steps of this turn; overrides the setting.
            workdir, journal: as for `run`, at the first turn. If the journal has a conversation and
                `session` is None or has ended, the turn continues that conversation.
            budget, cancel, on_event: as for `run`, for this turn.
            info: as for `run`, at the first turn.

        Returns:
            The session, for the next turn. `final_results["output"]` is the answer.

        Raises:
            InputError: the session still works on a turn, or the first message is empty.
            KeyboardInterrupt, JournalError: as `run`.
        """
        session = open_turn(
            self,
            session,
            text,
            found=found,
            workdir=workdir,
            journal=journal,
            budget=budget,
            cancel=cancel,
            on_event=on_event,
            info=info,
        )
        self._drive(session, False, max_steps)
        return session

    def end_session(self, session: AgentSession) -> None:
        """End a conversation: release its environment and worker. It can be opened again."""
        end_session(self, session)

    def suspend_run(self, session: AgentSession) -> None:
        """Pause a run between two steps; `resume` continues it. For an example see docs/agents.md.

        The lease of its environment is kept and journaled. The worker is released.

        Args:
            session: the session that was passed to `run(session=..., stream=True)`.
        """
        suspend_run(self, session)

    # --- the loop --------------------------------------------------------------------------

    def yield_session_run(
        self, session: AgentSession, max_steps: int | None = None
    ) -> Iterator[Step]:
        """Run the loop and yield each finished step. See `run`."""
        run = self._live(session)
        limit = run.max_steps = self.max_steps if max_steps is None else max_steps
        run.waits_for_turn = False
        reason, message = StopReason.INTERNAL_ERROR, ""
        error: BaseException | None = None
        run.start()
        try:
            if not run.is_open:
                run.open_environment()
                self.init_run(session)
                run.record_lease()
                run.is_open = True
            if run.interrupted is not None:
                record_resumed(run, run.interrupted)
            record_turn(run)
            while run.interrupted or len(session.steps) - session.turn_start < limit:
                if session.steps and self.step_check_end(session):
                    break
                if run.history.repeats() >= self.stuck_limit:
                    raise LimitReached("stuck", f"{self.stuck_limit} equal steps in a row")
                yield self._next_step(run)
                if session.run is not run:
                    return  # suspended by the consumer of the steps
            reason, message = normal_stop_reason(session, self.name, limit)
            if session.steps:
                record_finalized(self, run)
        except LimitReached as e:
            reason, message = StopReason(e.reason), str(e)
            finalize_after_limit(self, run)
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
                release(self, run, reason, message, error)

    def step(self, session: AgentSession, state: Mapping[str, Any]) -> Step:
        """Observe, plan, decide and act once; return the step."""
        run = self._live(session)
        interrupted, run.interrupted = run.interrupted, None
        if interrupted is not None and interrupted.in_progress:
            run.check()
            run.emit(ProgressKind.STEP_STARTED)
        else:
            run.start_step()
        if interrupted is not None and interrupted.in_progress and interrupted.has_acted:
            observation = resume_step(self, run, interrupted)
        else:
            observation = decide_and_act(self, run, state)
        run.record(EventKind.OBSERVATION, ObservationData(observation=observation))
        if interrupted is not None:
            run.replies.show_unused()
        return session.steps[-1]

    def decide(
        self, session: AgentSession, kwargs: Mapping[str, Any] | None = None
    ) -> list[Action]:
        """Ask the model for the next actions: the first half of a step, without its effects."""
        run = self._live(session)
        if kwargs is None:
            run.history.condense()
            kwargs = self.step_prepare(session, session.state)
        extra = self.language.call_kwargs(run.functions.offered)
        reply = self._call_model(session, "action", kwargs, **extra)
        return read_actions(self, run, reply)

    def act(self, session: AgentSession, actions: Sequence[Action]) -> Any:
        """Execute actions: the second half of a step. Return the step's observation."""
        observed = []
        for n, action in enumerate(actions, 1):
            observed.append(self.step_action(session, action))
            if session.finish is not None and actions[n:]:
                skipped = ", ".join(describe(a) for a in actions[n:])
                observed.append(f"Not called, because the work has ended: {skipped}")
                break
        return combine_observations(observed)

    def finalize(self, session: AgentSession) -> FinalResults:
        """Record the final result: of the terminal action, or of the end phase if there is one."""
        run = run_of(session)
        found = session.finish or FinalResults(output="", log="The run ended without an answer.")
        results = FinalResults(output=found["output"], log=found["log"])
        parsed: ParsedReply = {}
        if self.templates.get("end") and (self.end_always or session.finish is None):
            answered, parsed = end_result(self, run, found)
            results = answered or results
        data: EndData = {**parsed, "final_results": results}
        run.record(EventKind.END, data, phase="end")
        return results.copy()

    # --- hooks -----------------------------------------------------------------------------

    def init_run(self, session: AgentSession) -> None:
        """Prepare a run before its first step; for example, create its environment."""

    def end_run(self, session: AgentSession) -> None:
        """Clean up after the last step, however the run ended; `Run.close` follows."""

    def discard_environment(self, lease: Any) -> None:
        """End a suspended environment that no run continues.

        Args:
            lease: its lease; see `Environment.suspend`.
        """

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for this step's templates; subclasses add their observation."""
        values = self._prepare_common_input_kwargs(session, state)
        run = self._live(session)
        if run.environment is not None and run.environment.step_pictures:
            run.pictures.record()
        return values

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Execute one action and return its part of the step's observation."""
        run = run_of(session)
        match action:
            case CodeAction(code=code, note=note):
                return code_observation(run.run_code(code), note)
            case ToolCall(name=name, arguments=arguments, note=note):
                return with_note(note, call_function(run, name, arguments))
            case FinishAction(output=output, log=log):
                run.record(EventKind.FINISH, FinishData(output=output, log=log))
                return output
            case RejectAction(reason=reason):
                data = FinishData(output="", log=reason, rejected=True)
                run.record(EventKind.FINISH, data)
                return reason
            case ThinkAction(thought=thought):
                return thought
            case _ if is_typed(action):
                return str(carry_out(run, action))
            case _ if run.environment is not None:
                return act_on_environment(run, action)
        return f"Error: {self.name} cannot do an action of kind {action.kind!r}."

    def step_check_end(self, session: AgentSession) -> bool:
        """Whether the run ends after the finished step: a terminal action was recorded."""
        return session.finish is not None

    def _prepare_common_input_kwargs(
        self, session: AgentSession, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values for the templates of all phases."""
        return prompt_values(self._live(session), state)

    def _call_model(
        self,
        session: AgentSession,
        phase: str,
        kwargs: Mapping[str, Any],
        model: LLM | None = None,
        **call_kwargs: Any,
    ) -> Reply:
        """Render a phase's template and call the model with it.

        Raises:
            InputError: the session is not running.
        """
        run = run_of(session)
        prompt = self.language.render(self.get_template(phase), kwargs)
        guide = AgentReplyGuide(self, run, phase)
        return run.call_model(self._model_for(kwargs, model), prompt, phase, guide, **call_kwargs)

    def _model_for(self, kwargs: Mapping[str, Any], model: LLM | None) -> LLM:
        """Return the model for a prompt; subclasses may choose by the prompt's contents.

        Args:
            kwargs: the template's values.
            model: the phase's model, if the phase has one.
        """
        if kwargs.get("pictures") and self.model_multimodal is not None:
            return self.model_multimodal
        return model or self.model

    @property
    def parses_itself(self) -> bool:
        """Whether a subclass overrides `_parse_output`."""
        return type(self)._parse_output is not MultiStepAgent._parse_output

    def _parse_output(self, reply: str) -> ParsedReply:
        """Return `thought` and `code` of a reply. Override it for a model that writes code in
        another form: the agent then runs the returned code."""
        return parse_thought_code(reply)

    # --- as a function of another agent ----------------------------------------------------

    def __call__(self, task: str, **kwargs: Any) -> AgentResult:
        """Work on a task and return its result.

        Args:
            task: the instruction; the agent sees nothing else.
            kwargs: as for `run`.

        Returns:
            `output` (the answer, "" if there is none) and `log` (how it was found, or why not).
        """
        return call_agent(self, task, **kwargs)

    def bind(self, run: RunContext | None) -> Callable[..., AgentResult]:
        """Return this agent as a function for the code of `run`."""
        return bind_agent(self, run)

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments of this agent as a function."""
        return parameters_schema(self.bind(None))

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for another agent's prompt: one line if `short`."""
        return agent_definition(self, short)

    # --- parts of a step -------------------------------------------------------------------

    def _next_step(self, run: Run) -> Step:
        """Call `step`; an override that does no step would loop forever."""
        before, resumes = len(run.session.steps), run.interrupted is not None
        step = self._take_step(run.session)
        if len(run.session.steps) == before and not resumes:
            raise ConfigError(
                f"{type(self).__name__}.step did no step (it returned {type(step).__name__}): "
                "call and return super().step(session, state)"
            )
        return step

    def _take_step(self, session: AgentSession) -> Step:
        return self.step(session, session.state)

    # --- start and end of a run ------------------------------------------------------------

    def _drive(self, session: AgentSession, stream: bool, max_steps: int | None) -> Any:
        """Run the loop to its end, or return it as an iterator."""
        steps = self.yield_session_run(session, max_steps)
        if stream:
            return steps
        for _ in steps:
            pass
        return session

    def _live(self, session: AgentSession) -> Run:
        """Return the session's run; a new one for a session without a run."""
        if isinstance(session.run, Run):
            return session.run
        session.agent = session.agent or self.name
        run = session.run = Run(self, session)
        return run
