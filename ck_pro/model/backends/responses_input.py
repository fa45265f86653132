"""Convert prompts to input items of OpenAI's Responses API. Pure.

Built-in tools such as the computer exist only in this API, so calls with such a tool use it. All
other code works with chat messages. An assistant message keeps the output items that it came from
under `items`; they are sent back unchanged, each call with its output.

Source of the format: OpenAI's API reference (Responses) and the types of the openai package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_pro.model.types import Message

Item = dict[str, Any]
_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}


def wants_responses(params: Mapping[str, Any], messages: Sequence[Message]) -> bool:
    """Return whether a call needs the Responses API.

    Args:
        params: "api" ("responses" or "chat") decides; otherwise, a tool that is not a function
            needs it.
        messages: output items in a message also need it.
    """
    if params.get("api"):
        return str(params["api"]) == "responses"
    tools = params.get("tools") or []
    return any(t.get("type") != "function" for t in tools) or any("items" in m for m in messages)


def chat_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for chat completions: all except "api"."""
    return {k: v for k, v in params.items() if k != "api"}


def request_body(messages: Sequence[Message], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request body, without the model's name.

    Args:
        messages: chat messages.
        params: parameters of chat completions; they are translated.
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
    if preview:  # its models reject calls without it
        body.setdefault("truncation", "auto")
    return {**body, "input": list(_input_items(messages, with_url=preview))}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    flat = _flat(tool)
    # in this API the default is strict, which forbids optional arguments
    return {"strict": False, **flat} if flat.get("type") == "function" else flat


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function in this API's form, which has no nested "function" object."""
    return {**{k: v for k, v in tool.items() if k != "function"}, **tool.get("function", {})}


def _input_items(messages: Sequence[Message], *, with_url: bool) -> Iterator[Item]:
    """Yield the messages as items, calls together with their outputs."""
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
            yield from _turn(message, messages[at:end], with_url)
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
    """Return URL and detail of an image part; empty for other parts."""
    if not isinstance(part, Mapping) or part.get("type") not in ("image_url", "input_image"):
        return "", ""
    image = part.get("image_url")
    if isinstance(image, Mapping):
        return str(image.get("url") or ""), str(image.get("detail") or "")
    return str(image or ""), str(part.get("detail") or "")


def _turn(reply: Message, outputs: Sequence[Message], with_url: bool) -> Iterator[Item]:
    """Yield a reply with calls, and the outputs of the calls.

    The service rejects a call without an output, and a computer call without a screenshot. If one
    is missing, because the prompt was shortened or an approver rejected a call, the turn becomes
    text.
    """
    by_call: dict[str, list[Message]] = {}
    for output in outputs:
        # the actions of one computer call have the ids "id", "id#2", "id#3"
        by_call.setdefault(str(output.get("tool_call_id", "")).partition("#")[0], []).append(output)
    items = list(reply.get("items") or _items_of(reply))
    results = [_output(i, by_call.get(_id(i), []), with_url) for i in items if _is_call(i)]
    if all(r is not None for r in results):
        yield from items
        yield from (r for r in results if r is not None)
        for item in items:
            if item.get("type") == "computer_call" and (text := _output_text(by_call[_id(item)])):
                yield {"role": "user", "content": text}  # a screenshot output cannot have text
        return
    calls = [_call_text(c) for c in reply.get("tool_calls") or ()]
    text = "\n".join(t for t in (_text(reply.get("content")), *calls) if t)
    yield {"role": "assistant", "content": text}
    for output in outputs:
        yield _plain(output)


def _items_of(reply: Message) -> list[Item]:
    """Return the items for an assistant message from another API."""
    items: list[Item] = []
    if text := _text(reply.get("content")):
        items.append({"role": "assistant", "content": text})
    for call in reply.get("tool_calls") or ():
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


def _output(call: Item, outputs: Sequence[Message], with_url: bool) -> Item | None:
    """Return the output item of a call; None if its output is missing."""
    if not outputs:
        return None
    if call["type"] == "function_call":
        text = _output_text(outputs)
        return {"type": "function_call_output", "call_id": _id(call), "output": text}
    last = outputs[-1]
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


def _output_text(outputs: Sequence[Message]) -> str:
    return "\n".join(t for o in outputs if (t := _text(o.get("content"))))


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
