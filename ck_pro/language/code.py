"""`CodeLanguage`: replies with a block of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events import Action, CodeAction
from ck_pro.language.base import OBSERVATION, AgentLanguage
from ck_pro.language.composing import compose_code
from ck_pro.language.forms import PLAN_SCHEMA, Form
from ck_pro.language.parsing import code_of, split_plan, thought_before
from ck_pro.language.prompt import Message, fenced
from ck_pro.model.types import RawReply, Reply


class CodeLanguage(AgentLanguage):
    """A thought, then one block of Python. The default language."""

    name = "code"
    form = "code"

    def parse(self, reply: str) -> list[Action]:
        """Return one `CodeAction` with the reply's code up to any invented observation.

        Raises:
            ParseError: see `code_of`.
        """
        code, note = code_of(reply)
        return [CodeAction(code=code, thought=thought_before(reply, code), note=note)]

    def compose(
        self, parts: Mapping[str, str], functions: Sequence[Mapping[str, Any]] = ()
    ) -> RawReply:
        """Return a reply with a thought, a plan and a block of Python."""
        if "text" in parts:
            return RawReply(parts["text"])
        return RawReply(
            compose_code(parts.get("thought", ""), parts.get("code", ""), parts.get("plan", ""))
        )

    def reply_schema(self, phase: str) -> dict[str, Any] | None:
        """Return the schema of a plan, with a thought before it."""
        return PLAN_SCHEMA if phase == "plan" else None

    def read_form(self, reply: str, form: Form) -> Any:
        """Return the dict of a reply, without the thought that `reply_schema` asks for."""
        data = super().read_form(reply, form)
        if isinstance(data, dict) and "thought" not in form.parameters["properties"]:
            data.pop("thought", None)
        return data

    def split_plan(self, reply: Reply) -> tuple[str, Reply]:
        """Return a block that contains only a plan, and the reply without it."""
        plan, rest = split_plan(reply)
        if not plan:
            return "", reply
        if isinstance(reply, Reply):
            return plan, reply.with_text(rest)
        return plan, Reply(rest)

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """Return an assistant message (thought, code) and a user message (observation)."""
        action = step["action"]
        reply = f"Thought: {action['thought']}\n```python\n{action['code']}\n```"
        if not action["code"]:  # show a malformed reply unchanged
            reply = action["thought"]
        seen = f"{OBSERVATION} {step['step_idx']}:\n{fenced(observation)}"
        return [{"role": "assistant", "content": reply}, {"role": "user", "content": seen}]
