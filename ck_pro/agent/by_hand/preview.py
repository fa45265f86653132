"""A dry run of a reply: what an agent would do with it, by its own parser. Nothing runs."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent.actions import preview_actions
from ck_pro.approval import describe
from ck_pro.events import Action, CodeAction, FinishAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.executor.extract import extract_code
from ck_pro.language import END_FORM, PLAN_FORM, parse_literal
from ck_pro.model import Reply
from ck_pro.run.results import final_result
from ck_pro.run.run import Run
from ck_pro.session.goals import parse_progress

if TYPE_CHECKING:
    from ck_pro.agent.agent import MultiStepAgent

Parts = list[dict[str, str]]
_ASKS = "The plan asks the user this question. No code of the reply runs."
_ONLY_PLAN = "The reply has only a plan. The step ends without code."


class Preview:
    """Previews replies to one prompt; the arguments are those of `AgentReplyGuide`."""

    def __init__(self, agent: MultiStepAgent, run: Run, phase: str):
        self._agent, self._run, self._phase = agent, run, phase

    def parts(self, reply: Reply) -> Parts:
        """Return what the agent would do with a reply; see `ReplyGuide.preview`."""
        try:
            return self._preview(reply)
        except ParseError as e:
            return [_part("error", f"{type(e).__name__}: {e}")]

    def _preview(self, reply: Reply) -> Parts:
        language = self._agent.language
        if self._phase == "plan":
            return [_plan(parse_progress(language.read_form(reply, PLAN_FORM)))]
        if self._phase == "end":
            return self._preview_end(reply)
        if self._phase != "action":
            return [_part("text", str(reply))]
        parts, rest = self._split(reply)
        if rest is None:
            return parts
        actions = preview_actions(self._agent, self._run, rest)
        return [*parts, *(part for action in actions for part in self._action(action))]

    def _split(self, reply: Reply) -> tuple[Parts, Reply | None]:
        """Return the plan of a reply, and the rest; None if no action follows."""
        if self._run.planning != "fused":
            return [], reply
        plan, rest = self._agent.language.split_plan(reply)
        if not plan:
            return [], reply
        try:
            state = parse_progress(parse_literal(plan))
        except ParseError as e:
            return [_part("warning", f"The plan is unreadable and changes nothing: {e}")], rest
        if state.get("question"):
            return [_plan(state), _part("warning", _ASKS)], None
        if not extract_code(rest):
            return [_plan(state), _part("warning", _ONLY_PLAN)], None
        return [_plan(state)], rest

    def _preview_end(self, reply: Reply) -> Parts:
        language = self._agent.language
        try:
            return [_part("answer", final_result(language.read_form(reply, END_FORM))["output"])]
        except ParseError:
            code = extract_code(reply) if language.form == "code" else ""
            if not code.strip():
                raise
        terminal = " or ".join(self._run.functions.registry.terminal) or "a dict"
        note = f"This code runs and must return the result, by {terminal}."
        return [*_code(code), _part("warning", note)]

    def _action(self, action: Action) -> Parts:
        if isinstance(action, CodeAction):
            return [*_code(action.code), *_notes(action.note)]
        if isinstance(action, ToolCall):
            known = {f.name for f in self._run.functions.registry}
            known |= {form.name for form in self._agent.forms}
            if action.name not in known:
                text = f"Error: no function {action.name!r}; known are: {', '.join(sorted(known))}"
                return [_part("error", text)]
            return [_part("call", describe(action)), *_notes(action.note)]
        if isinstance(action, FinishAction):
            return [_part("answer", action.output)]
        return [_part("call", describe(action))]


def _part(kind: str, text: str) -> dict[str, str]:
    return {"kind": kind, "text": text}


def _notes(note: str) -> Parts:
    return [_part("warning", note)] if note else []


def _plan(state: Mapping[str, Any]) -> dict[str, str]:
    return _part("plan", json.dumps(state, ensure_ascii=False, indent=1))


def _code(code: str) -> Parts:
    """Return the code that would run, with a warning if it is not valid Python."""
    parts = [_part("code", code)]
    try:
        ast.parse(textwrap.dedent(code))
    except SyntaxError as e:
        parts.append(_part("warning", f"SyntaxError: {e.msg} (line {e.lineno})"))
    except (ValueError, MemoryError, RecursionError) as e:
        parts.append(_part("warning", f"{type(e).__name__}: {e}"))
    return parts
