"""`ComputerUseLanguage`: mouse and keyboard actions on a screenshot, and function calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

from ck_pro.events import Action, ComputerAction, FinishAction, MessageAction, ToolCall
from ck_pro.events.computer_schema import (
    COMPUTER,
    COMPUTER_DESCRIPTION,
    COMPUTER_PARAMETERS,
    computer_action,
)
from ck_pro.language.call_results import split_results
from ck_pro.language.function_calling import FunctionCallingLanguage
from ck_pro.language.prompt import Message, Prompt, text_of
from ck_pro.model.backends.responses import tool_calls_of
from ck_pro.template import TemplatedString
from ck_pro.tool import function_schema

OMITTED = "[screenshot omitted]"
UNCHANGED = "[the screen did not change until the next screenshot]"
_CONTENT = "screen_content"  # key of a message: equal for screens that show the same


class ComputerUseLanguage(FunctionCallingLanguage):
    """Mouse and keyboard actions at coordinates of a screenshot, and function calls.

    Args:
        tool: how the model calls the computer. "function": with the function
            `computer(action=..., ...)` of chat completions, for any model that reads images; past
            steps are sent as text. "computer" or "computer_use_preview": with that built-in tool of
            OpenAI's Responses API; past steps are sent as output items, each call with its
            screenshot.
        display_width, display_height: size of the screenshots in pixels, for
            "computer_use_preview".
        environment: "browser", "linux", "mac" or "windows", for "computer_use_preview".
        screenshots: minimum number of past screenshots in the prompt; the maximum is twice that.
            Older steps are sent as text, and so are steps after which the screen did not change.
    """

    def __init__(
        self,
        tool: Literal["function", "computer", "computer_use_preview"] = "function",
        *,
        display_width: int = 1280,
        display_height: int = 720,
        environment: str = "browser",
        screenshots: int = 4,
    ):
        self.name = "computer_use" if tool == "function" else tool
        self.tool = tool
        if tool != "function":  # a message ends the run, and the API has no stop texts
            self.message_ends, self.stop = True, ()
        self.display_width, self.display_height = display_width, display_height
        self.environment = environment
        self.screenshots = max(1, screenshots)

    def with_display(self, width: int, height: int, environment: str = "") -> ComputerUseLanguage:
        """Return a copy for another screen size, and for another environment if given."""
        return ComputerUseLanguage(
            self.tool,
            display_width=width,
            display_height=height,
            environment=environment or self.environment,
            screenshots=self.screenshots,
        )

    # --- prompts ---------------------------------------------------------------------------

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """Return the computer and the functions as the `tools` parameter."""
        others = [f for f in functions if f.name != COMPUTER]
        return {"tools": [self._computer(), *super().call_kwargs(others).get("tools", [])]}

    def _computer(self) -> dict[str, Any]:
        if self.tool == "function":
            return function_schema(COMPUTER, COMPUTER_DESCRIPTION, COMPUTER_PARAMETERS)
        if self.tool == "computer":
            return {"type": self.tool}
        return {
            "type": self.tool,
            "display_width": self.display_width,
            "display_height": self.display_height,
            "environment": self.environment,
        }

    def render(self, template: TemplatedString, values: Mapping[str, Any]) -> Prompt:
        """Render the prompt of one phase, without older screenshots; see `AgentLanguage.render`."""
        prompt = super().render(template, values)
        if self.tool == "function":
            return prompt
        return Prompt(_omit_old_screenshots(list(prompt), self.screenshots), prompt.instructions)

    # --- replies ---------------------------------------------------------------------------

    def parse(self, reply: str) -> list[Action]:
        """Return a `ComputerAction` for each computer call and a `ToolCall` for each other call."""
        items = getattr(reply, "items", None) or []
        checks = {str(i.get("call_id")): i.get("pending_safety_checks") or () for i in items}
        actions = super().parse(_WithCalls(reply, items))
        actions = [_computer_action(a, checks) if _is_computer(a) else a for a in actions]
        if not self.message_ends:
            return actions
        return [
            FinishAction(output=a.content) if isinstance(a, MessageAction) else a for a in actions
        ]

    # --- history --------------------------------------------------------------------------

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """Return the step as text, or with a built-in tool as output items.

        Runs without stored model texts (`store_io=False`) have no items.
        """
        action = step["action"]
        info = action.get("llm_info", {})
        items = info.get("items") or ()
        calls = info.get("tool_calls") or [call for item in items for call in tool_calls_of(item)]
        if self.tool == "function" or not items or not calls:
            return super().history(step, observation)
        reply: Message = {"role": "assistant", "content": action.get("llm_output", "")}
        reply.update(tool_calls=calls, items=items)
        screens = {s.get("call_id"): s for s in action.get("screens", ())}
        texts = split_results(action.get("observation"), observation, len(calls))
        texts += [""] * (len(calls) - len(texts))
        outputs = [_output(c, screens.get(c["id"]), t) for c, t in zip(calls, texts, strict=True)]
        return [reply, *outputs]


class _WithCalls(str):
    """A reply whose `tool_calls` are set, if necessary from its items."""

    tool_calls: list[dict[str, Any]]

    def __new__(cls, reply: str, items: Sequence[Mapping[str, Any]]) -> _WithCalls:
        self = super().__new__(cls, reply)
        given = getattr(reply, "tool_calls", None)
        self.tool_calls = given or [call for item in items for call in tool_calls_of(item)]
        return self


def _is_computer(action: Action) -> bool:
    return isinstance(action, ToolCall) and action.name == COMPUTER


def _computer_action(call: Action, checks: Mapping[str, Any]) -> ComputerAction:
    assert isinstance(call, ToolCall)
    pending = checks.get(call.call_id.partition("#")[0], ())
    return computer_action(call.arguments, call_id=call.call_id, pending_safety_checks=pending)


def _output(call: Mapping[str, Any], screen: Mapping[str, Any] | None, text: str) -> Message:
    """Return the message with the output of a call."""
    message: Message = {"role": "tool", "tool_call_id": call["id"], "content": text}
    if screen is None or not screen.get("image"):
        return message
    image = {"type": "image_url", "image_url": {"url": screen["image"]}}
    message["content"] = [{"type": "text", "text": text}, image]
    facts = ("acknowledged_safety_checks", "current_url")
    content = {_CONTENT: screen["content"]} if screen.get("content") else {}
    return {**message, **content, **{k: screen[k] for k in facts if screen.get(k)}}


def _omit_old_screenshots(messages: list[Message], keep: int) -> list[Message]:
    """Omit the older screenshots of outputs, and the current one if an output already has it.

    A screenshot is also omitted if the next one shows the same. The others are omitted in batches
    of `keep`, so that the prefix of prompts changes rarely.
    """
    shown = [n for n, m in enumerate(messages) if m["role"] == "tool" and any(_images(m))]
    distinct = []
    for n, later in zip_longest(shown, shown[1:]):
        if later is not None and _shows_same(messages[n], messages[later]):
            _omit(messages, n, UNCHANGED)
        else:
            distinct.append(n)
    for n in distinct[: max(0, len(distinct) // keep - 1) * keep]:
        _omit(messages, n, OMITTED)
    if shown and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
        last = set(_images(messages[shown[-1]]))
        parts = [p for p in messages[-1]["content"] if not last & set(_images({"content": [p]}))]
        messages[-1] = {**messages[-1], "content": parts}
    return [{k: v for k, v in m.items() if k != _CONTENT} for m in messages]


def _omit(messages: list[Message], number: int, note: str) -> None:
    """Replace the screenshot of a message by a note."""
    message = messages[number]
    messages[number] = {**message, "content": f"{text_of(message['content'])} {note}"}


def _shows_same(message: Message, later: Message) -> bool:
    if message.get(_CONTENT) and later.get(_CONTENT):
        return bool(message[_CONTENT] == later[_CONTENT])
    return set(_images(message)) == set(_images(later))


def _images(message: Message) -> Iterator[str]:
    """Yield the URLs of the images of a message."""
    content = message["content"]
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image_url":
            yield part["image_url"]["url"]
