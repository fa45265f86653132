"""What an agent asks its model: the plan, the action, and the end of a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.agent.as_function import CallableAgent
from ck_pro.agent.stop_reasons import end_result
from ck_pro.approval import describe
from ck_pro.events import (
    Action,
    CodeAction,
    ComputerAction,
    FinishAction,
    MessageAction,
    ToolCall,
)
from ck_pro.exceptions import (
    AnswerNeeded,
    ContentFiltered,
    EnvironmentFailure,
    InputError,
    LimitReached,
    ModelError,
    ParseError,
)
from ck_pro.language import END_FORM, PLAN_FORM, Form, parse_thought_code
from ck_pro.model import LLM, Reply
from ck_pro.run.history import files_in
from ck_pro.run.run import Run
from ck_pro.session import AgentSession
from ck_pro.session.goals import parse_progress

_log = logging.getLogger(__name__)


class AskingAgent(CallableAgent):
    """The phases of an agent, each a template that is rendered, sent and read."""

    def decide(
        self, session: AgentSession, kwargs: Mapping[str, Any] | None = None
    ) -> list[Action]:
        """Ask the model what to do: the first half of a step, without its effects."""
        self._live(session)
        kwargs = self.step_prepare(session, session.state) if kwargs is None else kwargs
        extra = self.language.call_kwargs([*self.functions(), *self._forms()])
        reply = self._call_model(session, "action", kwargs, **extra)
        return self._read(session, reply)

    def _read(self, session: AgentSession, reply: Reply) -> list[Action]:
        """The actions of a reply, noted in the step."""
        parsed = self._parse_output(reply)
        session.run.record("action", parsed, phase="action")
        code = parsed.get("code", "")
        own = type(self)._parse_output is not AskingAgent._parse_output
        if own and code != parse_thought_code(reply)["code"]:  # it reads replies in its own way
            if not code.strip():
                raise ParseError("The reply contains no code in the expected form.")
            return [CodeAction(code=code, thought=parsed.get("thought", ""))]
        actions: list[Action] = self.language.parse(reply)
        actions = [self._answered(a) if isinstance(a, MessageAction) else a for a in actions]
        for note in notes_of(actions):
            session.run.unreadable("action", note)
        calls = [describe(a) for a in actions if isinstance(a, ToolCall | ComputerAction)]
        if calls:
            session.run.record("action", {"code": "\n".join(calls)}, phase="action")
        return actions

    def _answered(self, message: MessageAction) -> FinishAction:
        """A message without a call as the answer.

        Raises:
            ParseError: this agent gives its answer by a function.
        """
        ending = [f.name for f in self.functions() if getattr(f, "terminal", False)]
        if ending:
            raise ParseError(
                "The reply calls no function, so nothing ran. Call the next function. If the task "
                f"is done, call {' or '.join(ending)} with the answer."
            )
        return FinishAction(output=message.content)

    def _forms(self) -> list[Form]:
        """What the model can fill in beside calling functions: the same in all prompts of a run
        but the last, since services put the functions first."""
        return [PLAN_FORM] if self.templates.get("plan") else []

    def finalize(self, session: AgentSession) -> dict[str, Any]:
        """Fix the final result: by the terminal action, or by a model when there is a template."""
        run: Run = session.run
        found = session.finish or {"output": "", "log": "The run ended without an answer."}
        data: dict[str, Any] = {"final_results": {k: found[k] for k in ("output", "log")}}
        if self.templates.get("end") and (self.end_always or session.finish is None):
            kwargs = {**self.step_prepare(session, session.state), "final_results": found}
            try:
                extra = self.language.call_kwargs([END_FORM])
                reply = self._call_model(session, "end", kwargs, model=self.end_model, **extra)
                data = {**self._parse_output(reply), **data}
                data["final_results"] = end_result(self.language.read_form(reply, END_FORM))
            except (ParseError, ContentFiltered) as e:
                _log.warning("%s: the reply of the end phase is not used: %s", self.name, e)
                if isinstance(e, ParseError):
                    run.unreadable("end", e)
        run.record("end", data, phase="end")
        return dict(data["final_results"])

    def _finalized(self, session: AgentSession) -> None:
        """Call `finalize`; what a subclass's own one returns is the result."""
        given = self.finalize(session)
        if isinstance(given, Mapping) and given.get("output") is not None:
            results = {"output": str(given["output"]), "log": str(given.get("log") or "")}
            if results != session.final_results:
                session.run.record("end", {"final_results": results}, phase="end")

    def step_prepare(self, session: AgentSession, state: Mapping[str, Any]) -> dict[str, Any]:
        """The values for this step's templates; subclasses add what their environment shows."""
        return self._prepare_common_input_kwargs(session, state)

    def _prepare_common_input_kwargs(
        self, session: AgentSession, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The values that every phase's template gets."""
        run = self._live(session)
        notices, run.notices = [*run.notices, *run.history.notices()], []
        short, long = run.definitions
        return {
            "agent_name": self.name,
            "task": session.task,
            "goals": sorted(self.goals, key=lambda g: g.priority),
            "step_idx": max(0, len(session.steps) - 1),
            "max_steps": self.max_steps,
            "functions_short": short,
            "functions_long": long,
            "subagent_tool_str_short": short,
            "subagent_tool_str_long": long,
            "recent_steps": run.history.steps(),
            "current_step": session.current_step() or {},
            **_state_values(state),
            "plans": bool(self.templates.get("plan")),
            "language": self.language,
            "history": run.history.messages(),
            "recent_steps_str": run.history.text(),
            "notices": notices,
            "files": files_in(run.workdir),
        }

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
        if session.run is None:
            raise InputError(
                f"{self.name}: session {session.id} is not running, so that no model call can be "
                "logged: use run(), or decide() for one step"
            )
        prompt = self.language.render(self.get_template(phase), kwargs)
        model = self._model_for(kwargs, model)
        reply: Reply = session.run.call_model(model, prompt, phase, **call_kwargs)
        return reply

    def _model_for(self, kwargs: Mapping[str, Any], model: LLM | None) -> LLM:
        """The model that answers a prompt; subclasses may choose by what it shows.

        Args:
            kwargs: the template's values.
            model: that of the phase, where it has one of its own.
        """
        return model or self.model

    def _parse_output(self, reply: str) -> dict[str, str]:
        """`thought` and `code` of a reply. A subclass whose model writes them in another form
        overrides this: the code that it finds is what is run."""
        return parse_thought_code(reply)

    def _plan_due(self, session: AgentSession) -> bool:
        if not self.templates.get("plan"):
            return False
        stuck = self.plan_when_stuck and session.run.history.repeats() >= 2
        return stuck or (len(session.steps) - 1) % self.plan_every == 0

    def _plan(self, session: AgentSession, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The plan phase; returns the template values that it changed."""
        run: Run = session.run
        notices, run.plan_notices = run.plan_notices, []
        kwargs = {**kwargs, "notices": [*notices, *kwargs["notices"]]}
        extra = self.language.call_kwargs([*self.functions(), *self._forms()])
        reply = self._call_model(session, "plan", kwargs, **extra)
        run.record("plan", self._parse_output(reply), phase="plan")
        try:
            self._take_plan(session, self.language.read_form(reply, PLAN_FORM))
        except ParseError as e:
            run.unreadable("plan", e)
            run.plan_notices.append(f"Your last plan was unreadable; the previous plan stays: {e}")
        return _state_values(session.state)

    def _take_plan(self, session: AgentSession, written: Any) -> str:
        """Make what the model wrote the progress state; returns what it reads of that.

        Raises:
            ParseError: it is not a plan.
        """
        state = parse_progress(written)
        question = str(state.pop("question", None) or "")
        session.run.record("plan", {"state": state}, phase="plan")
        if question:
            self._answer(session, question)
        return "The plan is updated."

    def _answer(self, session: AgentSession, question: str) -> None:
        """Have the planner's question answered, and put the answer into the progress state."""
        answer = session.run.ask(question)
        if answer is None:
            raise AnswerNeeded(question, question)
        learned = f"Question to the user: {question} Answer: {answer}"
        known = [*session.state["information"], learned]
        session.run.record("plan", {"state": {**session.state, "information": known}}, phase="plan")

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
            self._finalized(session)
        except (LimitReached, ModelError, EnvironmentFailure) as e:
            _log.info("%s: no end phase: %s", self.name, e)


def notes_of(actions: Sequence[Action]) -> list[str]:
    """What the model is to read of a reply that was not read to its end."""
    return [a.note for a in actions if isinstance(a, CodeAction | ToolCall) and a.note]


def _state_values(state: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(state, ensure_ascii=False, indent=1, default=str)
    return {"state": dict(state), "state_str": text}
