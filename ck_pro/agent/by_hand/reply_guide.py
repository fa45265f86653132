"""What a person needs to be the model of an agent: the expected form of a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent.by_hand.preview import Preview
from ck_pro.exceptions import ParseError
from ck_pro.language import END_FORM, PLAN_FORM, Form, parse_literal
from ck_pro.model import RawReply, Reply
from ck_pro.run.run import Run

if TYPE_CHECKING:
    from ck_pro.agent.agent import MultiStepAgent


class AgentReplyGuide:
    """Describes the reply to one prompt of a run; implements `ck_pro.model.types.ReplyGuide`.

    Args:
        agent: the agent.
        run: its run.
        phase: "plan", "action" or "end", or a phase of a subclass.
    """

    def __init__(self, agent: MultiStepAgent, run: Run, phase: str):
        self._agent, self._run, self._phase = agent, run, phase

    @property
    def _data_form(self) -> Form | None:
        return {"plan": PLAN_FORM, "end": END_FORM}.get(self._phase)

    def describe(self) -> dict[str, Any]:
        """See `ReplyGuide`."""
        form: str = self._agent.language.form
        described: dict[str, Any] = {"language": self._agent.language.name, "plan": False}
        if self._data_form is not None:
            form, described["example"] = "data", _example(self._data_form)
        elif self._phase != "action" or self._agent.parses_itself:
            form = "text"
        else:
            described["plan"] = form == "code" and self._run.planning == "fused"
            described["plan_example"] = _example(PLAN_FORM) if described["plan"] else ""
        return {**described, "form": form, "functions": self._functions()}

    def _functions(self) -> list[dict[str, Any]]:
        if self._phase != "action":
            return [_function(self._data_form)] if self._data_form is not None else []
        calls = self._agent.language.form == "calls"
        functions = self._run.functions
        return [_function(one) for one in (functions.offered if calls else functions.listed)]

    def compose(self, parts: Mapping[str, str]) -> RawReply:
        """See `ReplyGuide`."""
        if "text" in parts:
            return RawReply(parts["text"])
        if self._data_form is not None:
            thought, code = parts.get("thought", ""), parts.get("code", "")
            if self._agent.language.form == "calls":
                return self._form_call(self._data_form, thought, code)
            parts = {"thought": thought, "code": code}
        composed: RawReply = self._agent.language.compose(parts, self._functions())
        return composed

    @staticmethod
    def _form_call(form: Form, thought: str, code: str) -> RawReply:
        data = parse_literal(code)
        if not isinstance(data, dict):
            raise ParseError("Write a dict.")
        function = {"name": form.name, "arguments": json.dumps(data, ensure_ascii=False)}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        return RawReply(thought.strip(), tool_calls=calls, finish_reason="tool_calls")

    def preview(self, reply: Reply) -> list[dict[str, str]]:
        """See `ReplyGuide`."""
        return Preview(self._agent, self._run, self._phase).parts(reply)

    def picture(self) -> Mapping[str, Any] | None:
        """See `ReplyGuide`."""
        environment = self._run.environment
        return environment.picture() if environment is not None else None


def _example(form: Form) -> str:
    """Return the empty data of a form, as Python."""
    types = {name: schema["type"] for name, schema in form.parameters["properties"].items()}
    required = [name for name in form.parameters["required"] if name in types]
    lines = [f"    {name!r}: {[] if types[name] == 'array' else ''!r}," for name in required]
    return "\n".join(["{", *lines, "}"])


def _function(one: Any) -> dict[str, Any]:
    return {
        "name": one.name,
        "help": " ".join(str(one.description).split()),
        "parameters": one.parameters,
        "terminal": bool(getattr(one, "terminal", False)),
        "element_roles": list(getattr(one, "element_roles", ())),
    }
