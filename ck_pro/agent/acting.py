"""Carrying out what a model decided: code, calls of functions, acts on an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ck_pro.agent.phases import AskingAgent
from ck_pro.approval import describe
from ck_pro.events import (
    Action,
    CodeAction,
    ErrorObservation,
    FinishAction,
    RejectAction,
    ToolCall,
)
from ck_pro.exceptions import ParseError, ends_run, error_text
from ck_pro.executor import LocalCall
from ck_pro.run.results import observed_value, result_value
from ck_pro.run.run import Run
from ck_pro.session import AgentSession
from ck_pro.session.observed import append_piece, several_observed


class ActingAgent(AskingAgent):
    """The second half of an agent's step: its effects."""

    def act(self, session: AgentSession, actions: Sequence[Action]) -> Any:
        """Carry actions out: the second half of a step. Returns what goes into its row."""
        seen = []
        for n, action in enumerate(actions):
            seen.append(self.step_action(session, action))
            if session.finish is not None and actions[n + 1 :]:
                left = ", ".join(describe(a) for a in actions[n + 1 :])
                seen.append(f"Not called, since the work has ended: {left}")
                break
        return several_observed(seen)

    def step_action(self, session: AgentSession, action: Action) -> Any:
        """Carry one action out and return what goes into the step's `observation`."""
        run: Run = session.run
        match action:
            case CodeAction(code=code, note=note):
                return _with_note(note, observed_value(run.run_code(code)))
            case ToolCall(name=name, arguments=arguments, note=note):
                return _with_note(note, self._tool_call(run, name, arguments))
            case FinishAction(output=output, log=log):
                run.record("finish", {"output": output, "log": log})
                return output
            case RejectAction(reason=reason):
                run.record("finish", {"output": "", "log": reason, "rejected": True})
                return reason
            case _ if run.environment is not None:
                return _attempt(lambda: self._act(run, action))
        return f"Error: {self.name} cannot do an action of kind {action.kind!r}."

    def _tool_call(self, run: Run, name: str, arguments: Mapping[str, Any]) -> Any:
        functions = run.calls.functions
        if name not in functions and name in [form.name for form in self._forms()]:
            try:
                return self._take_plan(run.session, arguments)
            except ParseError as e:
                run.unreadable("plan", e)
                return f"ParseError: {e}"
        if name not in functions:
            return f"Error: no function {name!r}; known are: {', '.join(functions)}"

        def call() -> Any:
            result = functions[name](**arguments)
            return result if isinstance(result, LocalCall) else result_value(result)

        seen = _attempt(call)
        return run.run_code.locally(seen) if isinstance(seen, LocalCall) else seen

    def _act(self, run: Run, action: Action) -> str:
        seen = run.calls.act(action)
        if isinstance(seen, ErrorObservation):
            run.record("error", {"error": "ActionFailed"})
        return str(seen)


def _attempt(do: Callable[[], Any]) -> Any:
    """Do what the model asked for. The model reads an error, unless the error ends the run."""
    try:
        return do()
    except BaseException as e:
        if ends_run(e):
            raise
        return error_text(e)


def _with_note(note: str, seen: Any) -> Any:
    """An observation below a note on the reply that led to it, if there is one."""
    if not note:
        return seen
    if isinstance(seen, list):
        pieces: list[Any] = [f"{note}\n"]
        for entry in seen:
            append_piece(pieces, entry)
        return pieces
    return f"{note}\n{seen}" if isinstance(seen, str) else [f"{note}\n", seen]
