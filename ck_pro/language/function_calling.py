"""`FunctionCallingLanguage`: replies with function calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events import Action, MessageAction, ToolCall
from ck_pro.exceptions import CopiedExample, ParseError
from ck_pro.executor.extract import extract_code, has_python_block
from ck_pro.language.base import OBSERVATION, AgentLanguage
from ck_pro.language.call_results import (
    labelled_results,
    native_calls,
    refused_calls,
    tool_turn,
)
from ck_pro.language.composing import compose_calls
from ck_pro.language.forms import Form
from ck_pro.language.parsing import INVENTED, TRUNCATED, parse_literal, was_truncated
from ck_pro.language.prompt import Message
from ck_pro.language.text_calls import has_call_marks, text_calls
from ck_pro.model.types import RawReply
from ck_pro.tool import function_schema

NO_CODE = (
    "The reply contains Python, but code does not run here. Use the function calls of this "
    "interface."
)
TRUNCATED_CALLS = TRUNCATED.format("none of its calls ran")


class FunctionCallingLanguage(AgentLanguage):
    """Function calls of the chat completions API.

    Calls written as text are parsed as well. Text without a call is a message. It ends the run only
    if the agent has no terminal function such as `stop`.

    Args:
        native_history: send the calls of past steps, and their results, as `tool_calls` and `tool`
            messages. False sends them as text, for servers whose chat template requires that user
            and assistant alternate.
    """

    name = "function_calls"
    form = "calls"
    message_ends = False
    """Whether a message without a call is the answer, by the protocol of the service."""
    native_history = True

    def __init__(self, *, native_history: bool = True):
        self.native_history = native_history
        self.name = "function_calls" if native_history else "function_calls_text"

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """Return the functions as the `tools` parameter."""
        tools = [function_schema(f.name, f.description, f.parameters) for f in functions]
        return {"tools": tools} if tools else {}

    def parse(self, reply: str) -> list[Action]:
        """Return a `ToolCall` for each call of the reply; a `MessageAction` if it has none.

        Raises:
            ParseError: the reply is empty, truncated or Python code, or a call is malformed.
        """
        if was_truncated(reply):
            raise ParseError(TRUNCATED_CALLS)
        calls = getattr(reply, "tool_calls", None) or []
        if calls:
            return [self._call(c) for c in calls]
        if not reply.strip():
            raise ParseError("The reply is empty. Call a function.")
        if has_python_block(reply):
            raise ParseError(NO_CODE)
        written, invented = text_calls(reply)
        if written:
            note = INVENTED.format("call", invented) if invented else ""
            actions = [ToolCall(name=c.name, arguments=c.arguments) for c in written]
            return [*actions[:-1], actions[-1].model_copy(update={"note": note})]
        if has_call_marks(reply):
            raise ParseError("A call in the reply is malformed. Call the function again.")
        if extract_code(reply):
            raise ParseError(NO_CODE)
        return [MessageAction(content=reply.strip())]

    def compose(
        self, parts: Mapping[str, str], functions: Sequence[Mapping[str, Any]] = ()
    ) -> RawReply:
        """Return a reply with a thought and native calls, from calls written as Python."""
        if "text" in parts:
            return RawReply(parts["text"])
        calls = compose_calls(parts.get("code", ""), functions)
        ended = "tool_calls" if calls else "stop"
        return RawReply(parts.get("thought", "").strip(), tool_calls=calls, finish_reason=ended)

    def read_form(self, reply: str, form: Form) -> Any:
        """Return the arguments of the form's call, else the literal in the reply's text."""
        for call in getattr(reply, "tool_calls", None) or []:
            action = self._call(call)
            if action.name == form.name:
                return action.arguments
        written, _ = text_calls(reply)
        for text_call in written:
            if text_call.name == form.name:
                return text_call.arguments
        try:
            return parse_literal(reply)
        except ParseError:
            raise ParseError(f"The reply does not call {form.name}.") from None

    @staticmethod
    def _call(call: Any) -> ToolCall:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise ParseError(f"A call in the reply is malformed: {str(call)[:200]}")
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as e:
                name = function.get("name")
                raise ParseError(f"The arguments of {name} are not JSON: {e}") from None
        if not isinstance(arguments, dict):
            raise ParseError(f"The arguments of {function.get('name')} are not a JSON object.")
        return ToolCall(
            name=str(function.get("name", "")), arguments=arguments, call_id=str(call.get("id", ""))
        )

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """Return the step as a tool turn if the service parsed its calls, else as text.

        A model that wrote its calls as text sees them, and their results, as text.
        """
        action = step["action"]
        calls = native_calls(action, step["step_idx"]) if self.native_history else []
        if calls:
            return tool_turn(action, calls, observation)
        copied = action.get("error") == CopiedExample.__name__
        written = action["code"] or ("" if copied else refused_calls(action))
        reply = "\n".join(t for t in (action["thought"], written) if t)
        seen = f"{OBSERVATION} {step['step_idx']}:\n{labelled_results(action, observation)}"
        return [{"role": "assistant", "content": reply}, {"role": "user", "content": seen}]
