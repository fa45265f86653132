"""`FunctionCallingLanguage`: function calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events import Action, FinishAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.language.base import AgentLanguage
from ck_pro.language.parsing import was_cut_off
from ck_pro.language.prompt import Message
from ck_pro.tool import function_schema


class FunctionCallingLanguage(AgentLanguage):
    """Tool calls of the chat-completions API; prose without a call ends the run as its answer."""

    name = "function_calls"

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """The functions as the `tools` parameter."""
        tools = [function_schema(f.name, f.description, f.parameters) for f in functions]
        return {"tools": tools} if tools else {}

    def parse(self, reply: str) -> list[Action]:
        """One `ToolCall` for each call of the reply, in order."""
        calls = getattr(reply, "tool_calls", None) or []
        if not calls and was_cut_off(reply):
            raise ParseError("The reply was cut off at its greatest length. Write less at a time.")
        if not calls:
            if not reply.strip():
                raise ParseError("The reply is empty. Call a function, or give the answer.")
            return [FinishAction(output=reply.strip())]
        return [self._call(c) for c in calls]

    @staticmethod
    def _call(call: Any) -> ToolCall:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise ParseError(f"A call of the reply cannot be read: {str(call)[:200]}")
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as e:
                name = function.get("name")
                raise ParseError(f"The arguments of {name} are not JSON: {e}") from None
        if not isinstance(arguments, dict):
            raise ParseError(f"The arguments of {function.get('name')} are not an object.")
        return ToolCall(
            name=str(function.get("name", "")), arguments=arguments, call_id=str(call.get("id", ""))
        )

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """The step's calls as text; native tool turns would tie the log to one provider."""
        said = "\n".join(t for t in (step["action"]["thought"], step["action"]["code"]) if t)
        return [
            {"role": "assistant", "content": said},
            {"role": "user", "content": f"Observation of step {step['step_idx']}:\n{observation}"},
        ]
