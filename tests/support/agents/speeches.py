"""Replies of scripted models in each language of an agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ck_pro.language import (
    AgentLanguage,
    CodeLanguage,
    ComputerUseLanguage,
    FunctionCallingLanguage,
)
from ck_pro.model import Reply
from ck_pro.model.backends.responses import tool_calls_of

Call = tuple[str, dict[str, Any]]


@dataclass
class Speech:
    """Writes the replies of a scripted model in one language.

    Args:
        calls: several calls of functions, in one reply.
        finish: the answer, in the form that ends a run.
        broken: a reply that has not the agreed form.
    """

    language: Callable[[], AgentLanguage]
    calls: Callable[[Sequence[Call]], str]
    finish: Callable[[str], str]
    broken: str
    fault: str = field(default="ParseError")

    def call(self, name: str, **arguments: Any) -> str:
        return self.calls([(name, arguments)])


def _code(calls: Sequence[Call]) -> str:
    lines = [f"print({n}({', '.join(f'{k}={v!r}' for k, v in a.items())}))" for n, a in calls]
    return "Thought: so\n```python\n" + "\n".join(lines) + "\n```"


def _tool_calls(calls: Sequence[Call]) -> str:
    made = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(calls)
    ]
    return Reply("so", tool_calls=made)


def _items(calls: Sequence[Call]) -> str:
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs", "summary": []}]
    for i, (name, arguments) in enumerate(calls):
        if name == "computer":
            given = dict(arguments)
            act = {"type": given.pop("action"), **given}
            checks = act.pop("checks", [])
            item = {"type": "computer_call", "call_id": f"c{i}", "action": act}
            items.append({**item, "pending_safety_checks": checks})
        else:
            text = json.dumps(arguments)
            items.append(
                {"type": "function_call", "call_id": f"c{i}", "name": name, "arguments": text}
            )
    return Reply("so", items=items, tool_calls=[c for i in items for c in tool_calls_of(i)])


def _message(text: str) -> str:
    part = {"type": "output_text", "text": text}
    return Reply(text, items=[{"type": "message", "role": "assistant", "content": [part]}])


def _stop_call(answer: str) -> str:
    return _tool_calls([("stop", {"output": answer})])


def _as_text(calls: Sequence[Call]) -> str:
    """Return calls as text, as models write them whose server does not parse them."""
    made = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "so\n" + "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in made)


BAD_ARGUMENTS = Reply("", tool_calls=[{"id": "c0", "function": {"name": "add", "arguments": "{"}}])
SPEECHES = {
    "code": Speech(CodeLanguage, _code, lambda a: _code([("stop", {"output": a})]), "I talk."),
    "function_calls": Speech(FunctionCallingLanguage, _tool_calls, _stop_call, BAD_ARGUMENTS),
    "calls_as_text": Speech(
        FunctionCallingLanguage,
        _as_text,
        lambda a: _as_text([("stop", {"output": a})]),
        "<tool_call>{broken</tool_call>",
    ),
    "computer_use": Speech(
        ComputerUseLanguage, _tool_calls, _stop_call, _tool_calls([("computer", {"action": "fly"})])
    ),
    "computer_items": Speech(
        lambda: ComputerUseLanguage("computer_use_preview"),
        _items,
        _message,
        _items([("computer", {"action": "fly"})]),
    ),
}
IN_CODE = pytest.param("code", marks=pytest.mark.worker)
OTHERS = [name for name in SPEECHES if name != "code"]
