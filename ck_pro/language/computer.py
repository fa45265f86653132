"""`ComputerUseLanguage`: acts of mouse and keyboard by coordinates, beside function calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


class ComputerUseLanguage(FunctionCallingLanguage):
    """Acts of mouse and keyboard by coordinates of a screenshot, beside function calls.

    Args:
        tool: how the model is offered the computer. "function": as the function
            `computer(action=..., ...)` of chat completions, for any model that sees images; past
            steps are told as text. "computer" or "computer_use_preview": as the built-in tool of
            that type of OpenAI's Responses API; past steps are sent back as the model's own items,
            each call with its screenshot.
        display_width, display_height: of the screenshots, in pixels ("computer_use_preview" asks).
        environment: what is used: "browser", "linux", "mac", "windows" (it asks for that, too).
        screenshots: at least so many of past steps stay in the prompt, and less than twice as
            many; older steps are told as text.
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
        if tool != "function":  # its models end by a message, and its API knows no stop texts
            self.message_ends, self.stop = True, ()
        self.display_width, self.display_height = display_width, display_height
        self.environment = environment
        self.screenshots = max(1, screenshots)

    def with_display(self, width: int, height: int) -> ComputerUseLanguage:
        """The same for another screen."""
        return ComputerUseLanguage(
            self.tool,
            display_width=width,
            display_height=height,
            environment=self.environment,
            screenshots=self.screenshots,
        )

    # --- asking ----------------------------------------------------------------------------

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """The computer and the functions as the `tools` parameter."""
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
        """See `AgentLanguage.render`; of the screenshots the older ones are left out."""
        prompt = super().render(template, values)
        if self.tool == "function":
            return prompt
        return Prompt(_thinned(list(prompt), self.screenshots), prompt.instructions)

    # --- reading ---------------------------------------------------------------------------

    def parse(self, reply: str) -> list[Action]:
        """A `ComputerAction` for each act and a `ToolCall` for each other call, in order."""
        items = getattr(reply, "items", None) or []
        checks = {str(i.get("call_id")): i.get("pending_safety_checks") or () for i in items}
        actions = super().parse(_WithCalls(reply, items))
        made = [_computer_action(a, checks) if _is_computer(a) else a for a in actions]
        if not self.message_ends:
            return made
        return [FinishAction(output=a.content) if isinstance(a, MessageAction) else a for a in made]

    # --- the past --------------------------------------------------------------------------

    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """The step as text; with a built-in tool as the model's own items and their outputs.

        Of a run that keeps no model texts (`store_io=False`) there are no items.
        """
        action = step["action"]
        info = action.get("llm_info", {})
        items = info.get("items") or ()
        calls = info.get("tool_calls") or [call for item in items for call in tool_calls_of(item)]
        if self.tool == "function" or not items or not calls:
            return super().history(step, observation)
        said: Message = {"role": "assistant", "content": action.get("llm_output", "")}
        said.update(tool_calls=calls, items=items)
        screens = {s.get("call_id"): s for s in action.get("screens", ())}
        texts = split_results(action.get("observation"), observation, len(calls))
        texts += [""] * (len(calls) - len(texts))
        outputs = [_output(c, screens.get(c["id"]), t) for c, t in zip(calls, texts, strict=True)]
        return [said, *outputs]


class _WithCalls(str):
    """A reply whose calls are there, also where only its items tell them."""

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
    """The message that answers a call."""
    message: Message = {"role": "tool", "tool_call_id": call["id"], "content": text}
    if screen is None or not screen.get("image"):
        return message
    image = {"type": "image_url", "image_url": {"url": screen["image"]}}
    message["content"] = [{"type": "text", "text": text}, image]
    facts = ("acknowledged_safety_checks", "current_url")
    return {**message, **{k: screen[k] for k in facts if screen.get(k)}}


def _thinned(messages: list[Message], keep: int) -> list[Message]:
    """The messages without the older screenshots of outputs, and none twice.

    They go in batches of `keep`, so that prompts stay prefixes of each other but for a rare jump.
    """
    shown = [n for n, m in enumerate(messages) if m["role"] == "tool" and any(_images(m))]
    for n in shown[: max(0, len(shown) // keep - 1) * keep]:
        messages[n] = {**messages[n], "content": f"{text_of(messages[n]['content'])} {OMITTED}"}
    if shown and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
        last = set(_images(messages[shown[-1]]))
        parts = [p for p in messages[-1]["content"] if not last & set(_images({"content": [p]}))]
        messages[-1] = {**messages[-1], "content": parts}
    return messages


def _images(message: Message) -> Iterator[str]:
    """Addresses of the images of a message."""
    content = message["content"]
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image_url":
            yield part["image_url"]["url"]
