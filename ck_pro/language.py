"""`AgentLanguage`: how an agent speaks with its model; rendering prompts and parsing replies.

Parsing is pure: text in, typed actions or a `ParseError` out. The loop, the tools and the log are
the same for every language.
"""

from __future__ import annotations

import ast
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events import Action, CodeAction, FinishAction, ToolCall
from ck_pro.exceptions import ParseError
from ck_pro.executor.extract import extract_code
from ck_pro.template import TemplatedString
from ck_pro.tool import function_schema

Message = dict[str, Any]


class Prompt(list[Message]):
    """Chat messages, with the part of them that does not depend on how the run went.

    Attributes:
        instructions: role, rules and functions, and the instruction of the phase. A replayed run
            compares it with the recorded one.
    """

    def __init__(self, messages: Sequence[Message], instructions: str = ""):
        super().__init__(messages)
        self.instructions = instructions or "\n".join(
            text_of(m["content"]) for m in messages if m.get("role") == "system"
        )


def compose_prompt(
    system: str,
    task: str,
    history: Sequence[Message],
    current: str | Sequence[Mapping[str, Any]],
    instruction: str,
) -> Prompt:
    """Lay a prompt out for prefix caches: what changes least comes first.

    Args:
        system: role, rules, functions, one worked example; the same in every phase and step.
        task: the task, the same in every step.
        history: chat messages of the steps before.
        current: progress state, observation, notices; text, or parts with images.
        instruction: what this phase wants, last.
    """
    parts = [{"type": "text", "text": current}] if isinstance(current, str) else list(current)
    parts = [*parts, {"type": "text", "text": instruction}]
    if all(p["type"] == "text" for p in parts):
        last: Any = "\n\n".join(p["text"] for p in parts if p["text"].strip())
    else:
        last = parts
    messages: list[Message] = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"# Task\n{task}"},
        *history,
        {"role": "user", "content": last},
    ]
    return Prompt(_alternating(messages), f"{system}\n\n{instruction}")


def _alternating(messages: Sequence[Message]) -> list[Message]:
    """Join neighbours of one role, since many chat templates insist on turns."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            joined = _joined(out[-1]["content"], message["content"])
            out[-1] = {**out[-1], "content": joined}
        else:
            out.append(message)
    return out


def _joined(a: Any, b: Any) -> Any:
    if isinstance(a, str) and isinstance(b, str):
        return f"{a}\n\n{b}"
    as_parts = [[{"type": "text", "text": x}] if isinstance(x, str) else list(x) for x in (a, b)]
    return as_parts[0] + as_parts[1]


def text_of(content: Any) -> str:
    """The text of a message's content, which may be parts with images; None is no text."""
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text", "") for p in content or () if p.get("type") == "text")


class AgentLanguage(ABC):
    """The form in which an agent's model is asked and answers."""

    def render(self, template: TemplatedString, values: Mapping[str, Any]) -> Prompt:
        """The prompt of one phase.

        Raises:
            TemplateError: the template wants a value that is not there.
        """
        made = template.format(**values)
        if isinstance(made, Prompt):
            return made
        messages = [{"role": "user", "content": made}] if isinstance(made, str) else made
        return Prompt(messages)

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """Parameters that the model call needs in this language.

        Args:
            functions: tools and sub-agents: `name`, `description`, `parameters` (JSON schema).
        """
        return {}

    @abstractmethod
    def parse(self, reply: str) -> list[Action]:
        """The actions of a reply, at least one.

        Raises:
            ParseError: the reply has not the agreed form; its text tells the model what to mend.
        """

    @abstractmethod
    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """A finished step as chat messages."""


class CodeLanguage(AgentLanguage):
    """Thoughts in prose, then one block of Python: the native language of ck-pro's agents."""

    def parse(self, reply: str) -> list[Action]:
        """One `CodeAction` with all the code of the reply."""
        parsed = parse_thought_code(reply)
        if not parsed["code"].strip():
            raise ParseError(
                "The reply holds no code. Write your thought, then one block of Python between "
                "```python and ```."
            )
        return [CodeAction(**parsed)]

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """The step's thought and code as the model's turn, the observation as the user's."""
        action = step["action"]
        reply = f"Thought: {action['thought']}\n```python\n{action['code']}\n```"
        if not action["code"]:  # a reply without code is shown as it was
            reply = action["thought"]
        seen = f"Observation of step {step['step_idx']}:\n{observation}"
        return [{"role": "assistant", "content": reply}, {"role": "user", "content": seen}]


class FunctionCallingLanguage(AgentLanguage):
    """Tool calls of the chat-completions API; prose without a call ends the run as its answer."""

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """The functions as the `tools` parameter."""
        tools = [function_schema(f.name, f.description, f.parameters) for f in functions]
        return {"tools": tools} if tools else {}

    def parse(self, reply: str) -> list[Action]:
        """One `ToolCall` for each call of the reply, in order."""
        calls = getattr(reply, "tool_calls", None) or []
        if not calls:
            if not reply.strip():
                raise ParseError("The reply is empty. Call a function, or give the answer.")
            return [FinishAction(output=reply.strip())]
        return [self._call(c) for c in calls]

    @staticmethod
    def _call(call: Mapping[str, Any]) -> ToolCall:
        function = call.get("function", call)
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError as e:
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


# --- pure parsing ----------------------------------------------------------------------------

_THOUGHT = re.compile(
    r"\A\s*(?:#{1,6}[ \t]*|\*\*)?thoughts?(?:\*\*)?(?:[ \t]*:(?:\*\*)?|[ \t]*(?=\n))", re.I
)
_CODE_LABEL = re.compile(r"(?:#{1,6}[ \t]*|\*\*)?code(?:\*\*)?[ \t]*:?(?:\*\*)?", re.I)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_FENCE_HEAD = re.compile(r"[^\n]{0,80}\n\s*")
_PYTHON_TAG = "<|python_tag|>"


def parse_thought_code(reply: str) -> dict[str, str]:
    """Split a reply into `thought` (the prose before the code) and `code` (see `extract_code`)."""
    code = extract_code(reply)
    prose = _before_code(reply, code).rstrip()
    before, _, last = prose.rpartition("\n")
    if code and _CODE_LABEL.fullmatch(last.strip()):
        prose = before
    return {"thought": _THOUGHT.sub("", prose).strip(), "code": code}


def _before_code(reply: str, code: str) -> str:
    """The reply up to the fence, or the tag, that opens its code."""
    if not code.strip():
        return reply
    if _PYTHON_TAG in reply:
        return reply.partition(_PYTHON_TAG)[0]
    first_line = code.strip().partition("\n")[0].strip()
    for fence in _FENCE.finditer(reply):
        head = _FENCE_HEAD.match(reply, fence.end())
        if head is not None and reply.startswith(first_line, head.end()):
            return reply[: fence.start()]
    return reply.partition("```")[0] if "```" in reply else ""


def parse_literal(text: str) -> Any:
    """The Python or JSON literal of a model's reply, which may stand in a fence or in prose.

    Raises:
        ParseError: there is none.
    """
    for candidate in _literal_candidates(text):
        for read in (ast.literal_eval, json.loads):
            try:
                return read(candidate)
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
    raise ParseError("The reply holds no dict that can be read as a Python or JSON literal.")


def _literal_candidates(text: str) -> list[str]:
    """Places to look, the likeliest first: fenced blocks, the whole text, its outer braces."""
    fenced = re.findall(r"```[\w+.-]*[ \t]*\n(.*?)```", text, flags=re.DOTALL)
    start, end = text.find("{"), text.rfind("}")
    braces = [text[start : end + 1]] if 0 <= start < end else []
    # a planner may write `state = {...}`
    assigned = [re.sub(r"\A\s*\w+\s*=\s*", "", f) for f in fenced]
    return [c.strip() for c in (*fenced, *assigned, text, *braces) if c.strip()]
