"""Prompts as input items of OpenAI's Responses API. Pure.

Chat completions know functions alone; a built-in tool such as the computer is known to this API
only, so a call that has one goes there. Prompts stay chat messages everywhere else: a message of
the assistant keeps the output items that it was made of under `items`, and they are sent back as
they came, each call with its output.

Source of the form: OpenAI's API reference (Responses) and the types of the openai package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_pro.model.types import Message

Item = dict[str, Any]
_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}


def wants_responses(params: Mapping[str, Any], messages: Sequence[Message]) -> bool:
    """Whether a call needs the Responses API.

    Args:
        params: with "api", "responses" or "chat" decides; else a tool that is no function does.
        messages: those that hold output items do, too.
    """
    if params.get("api"):
        return str(params["api"]) == "responses"
    tools = params.get("tools") or []
    return any(t.get("type") != "function" for t in tools) or any("items" in m for m in messages)


def chat_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of chat completions: without what only chooses the API."""
    return {k: v for k, v in params.items() if k != "api"}


def request_body(messages: Sequence[Message], params: Mapping[str, Any]) -> dict[str, Any]:
    """What a call sends, without the model's name.

    Args:
        messages: chat messages.
        params: as for chat completions; what has another name or form here is translated.
    """
    body = {_RENAMED.get(k, k): v for k, v in params.items() if k not in ("api", "model")}
    tools = [_tool(t) for t in body.pop("tools", None) or []]
    if tools:
        body["tools"] = tools
    if isinstance(body.get("tool_choice"), Mapping):
        body["tool_choice"] = _flat(body["tool_choice"])
    if "reasoning_effort" in body:
        effort = {"effort": body.pop("reasoning_effort")}
        body["reasoning"] = {**effort, **(body.get("reasoning") or {})}
    if "response_format" in body:
        form = dict(body.pop("response_format"))
        schema = form.pop("json_schema", {})
        body["text"] = {"format": {**form, **schema}}
    preview = any(t.get("type") == "computer_use_preview" for t in tools)
    if preview:  # that tool's models refuse calls without it
        body.setdefault("truncation", "auto")
    return {**body, "input": list(_input_items(messages, with_url=preview))}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    flat = _flat(tool)
    # absent means strict here, and that forbids optional arguments
    return {"strict": False, **flat} if flat.get("type") == "function" else flat


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A function in this API's form, which has no object of its own for it."""
    return {**{k: v for k, v in tool.items() if k != "function"}, **tool.get("function", {})}


def _input_items(messages: Sequence[Message], *, with_url: bool) -> Iterator[Item]:
    """The messages as items; calls together with their outputs."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.get("role") == "assistant" and (
            message.get("items") or message.get("tool_calls")
        ):
            end = at
            while end < len(messages) and messages[end].get("role") == "tool":
                end += 1
            yield from _exchange(message, messages[at:end], with_url)
            at = end
        else:
            yield _plain(message)


def _plain(message: Message) -> Item:
    content = message.get("content")
    if isinstance(content, list):
        assistant = message.get("role") == "assistant"
        content = [_part(p, assistant) for p in content]
    role = message.get("role", "user")
    return {"role": "user" if role == "tool" else role, "content": content or ""}


def _part(part: Any, assistant: bool) -> Item:
    if not isinstance(part, Mapping):
        part = {"text": str(part)}
    url, detail = _image(part)
    if url:
        return {"type": "input_image", "image_url": url, "detail": detail or "auto"}
    return {"type": "output_text" if assistant else "input_text", "text": part.get("text") or ""}


def _image(part: Any) -> tuple[str, str]:
    """Address and detail of an image part; empty for any other."""
    if not isinstance(part, Mapping) or part.get("type") not in ("image_url", "input_image"):
        return "", ""
    image = part.get("image_url")
    if isinstance(image, Mapping):
        return str(image.get("url") or ""), str(image.get("detail") or "")
    return str(image or ""), str(part.get("detail") or "")


def _exchange(said: Message, outputs: Sequence[Message], with_url: bool) -> Iterator[Item]:
    """What the model said with its calls, and their outputs: as items if all can be given.

    A call without its output is refused by the service, and so is a computer's without a
    screenshot. Such a turn is told as text: it was shortened, or its approver refused a call.
    """
    answers: dict[str, list[Message]] = {}
    for output in outputs:
        # acts of one call have ids of their own: "id", "id#2", "id#3"
        answers.setdefault(str(output.get("tool_call_id", "")).partition("#")[0], []).append(output)
    items = list(said.get("items") or _items_of(said))
    results = [_output(i, answers.get(_id(i), []), with_url) for i in items if _is_call(i)]
    if all(r is not None for r in results):
        yield from items
        yield from (r for r in results if r is not None)
        for item in items:
            if item.get("type") == "computer_call" and (text := _told(answers[_id(item)])):
                yield {"role": "user", "content": text}  # what no picture shows
        return
    calls = [_call_text(c) for c in said.get("tool_calls") or ()]
    text = "\n".join(t for t in (_text(said.get("content")), *calls) if t)
    yield {"role": "assistant", "content": text}
    for output in outputs:
        yield _plain(output)


def _items_of(said: Message) -> list[Item]:
    """Items for an assistant's message that came over another API."""
    items: list[Item] = []
    if text := _text(said.get("content")):
        items.append({"role": "assistant", "content": text})
    for call in said.get("tool_calls") or ():
        function = call.get("function", {})
        arguments = function.get("arguments") or "{}"
        items.append(
            {
                "type": "function_call",
                "call_id": str(call.get("id", "")),
                "name": function.get("name", ""),
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            }
        )
    return items


def _is_call(item: Item) -> bool:
    return item.get("type") in ("function_call", "computer_call")


def _id(item: Item) -> str:
    return str(item.get("call_id", ""))


def _output(call: Item, answers: Sequence[Message], with_url: bool) -> Item | None:
    """The output item of a call; None when there is none to give."""
    if not answers:
        return None
    if call["type"] == "function_call":
        return {"type": "function_call_output", "call_id": _id(call), "output": _told(answers)}
    last = answers[-1]
    content = last.get("content")
    urls = [_image(p)[0] for p in content] if isinstance(content, list) else []
    shown = [u for u in urls if u]
    checks = call.get("pending_safety_checks") or []
    acknowledged = last.get("acknowledged_safety_checks") or []
    if not shown or {c["id"] for c in checks} - {c["id"] for c in acknowledged}:
        return None
    output: Item = {"type": "computer_screenshot", "image_url": shown[-1]}
    if with_url and last.get("current_url"):
        output["current_url"] = last["current_url"]
    item: Item = {"type": "computer_call_output", "call_id": _id(call), "output": output}
    if checks:
        item["acknowledged_safety_checks"] = [dict(c) for c in checks]
    return item


def _told(answers: Sequence[Message]) -> str:
    return "\n".join(t for a in answers if (t := _text(a.get("content"))))


def _call_text(call: Mapping[str, Any]) -> str:
    function = call.get("function", {})
    arguments = function.get("arguments") or "{}"
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{function.get('name', '')}({shown})"


def _text(content: Any) -> str:
    if isinstance(content, list):
        texts = [p.get("text") if isinstance(p, Mapping) else str(p) for p in content]
        return "\n".join(t for t in texts if t)
    return str(content or "")
