"""Items of the Responses API: conversations of OpenAI's sample agent from sessions, and back. Pure.

Source of the shapes: OpenAI's sample agent for computer use (`run_full_turn`, `handle_item`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.language import AgentLanguage, ComputerUseLanguage, Message
from ck_pro.language.call_results import split_results
from ck_pro.language.computer import OMITTED
from ck_pro.model import Reply
from ck_pro.model.backends.responses import tool_calls_of
from ck_pro.session import AgentSession
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import Step

_CALLS = ("computer_call", "function_call")
_OUTPUTS = ("computer_call_output", "function_call_output")
_EARLIER = "# Earlier in this conversation"
_NOW = "# End of the earlier conversation\nWork on the task above."


class Item(dict[str, Any]):
    """An item of a conversation; `session` is the session that made it."""

    session: AgentSession | None = None

    @classmethod
    def message(cls, text: str) -> Item:
        """Return a message of the assistant."""
        content = [{"type": "output_text", "text": text}]
        return cls(type="message", role="assistant", content=content)


# --- conversations -----------------------------------------------------------------------------


def split_conversation(
    items: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], str]:
    """Return the items before the last user message, and its text.

    Raises:
        InputError: an item is not a dict, or the last one is not a message of the user.
    """
    require_items(items)
    if not items or items[-1].get("role") != "user" or not (text := text_of_item(items[-1])):
        raise InputError('the last item must be a message of the user: {"role": "user", "content"}')
    return [dict(item) for item in items[:-1]], text


def require_items(items: Sequence[Any]) -> None:
    """Return if all items are dicts.

    Raises:
        InputError: one is not.
    """
    for item in items:
        if not isinstance(item, Mapping):
            raise InputError(f"{item!r:.80} is not an item of the Responses API, which is a dict")


def continued_session(items: Sequence[Mapping[str, Any]]) -> AgentSession | None:
    """Return the session whose items a conversation has; None for a new conversation."""
    found = [item.session for item in items if isinstance(item, Item) and item.session is not None]
    return found[-1] if found else None


def text_of_item(item: Mapping[str, Any]) -> str:
    """Return the text of a message item."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [p.get("text") or p.get("refusal") for p in parts if isinstance(p, Mapping)]
    return "\n".join(str(text) for text in texts if text)


def messages_of(items: Sequence[Mapping[str, Any]], language: AgentLanguage) -> list[Message]:
    """Return an earlier conversation as messages of a prompt; [] without one.

    Args:
        items: its items.
        language: one with a built-in computer tool gets the items themselves, others get text.
    """
    if not items:
        return []
    native = isinstance(language, ComputerUseLanguage) and language.tool != "function"
    messages: list[Message] = [{"role": "user", "content": _EARLIER}]
    for made, outputs in _turns(items):
        if any(item.get("type") in _CALLS for item in made):
            messages += _native_turn(made, outputs) if native else _text_turn(made, outputs)
        else:
            messages += [_plain(item) for item in made if item.get("type") != "reasoning"]
    return [*messages, {"role": "user", "content": _NOW}]


def _turns(
    items: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Yield the items of each reply with the outputs of its calls."""
    made: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = []
    for item in map(dict, items):
        if item.get("type") in _OUTPUTS:
            outputs.append(item)
            continue
        by_user = item.get("role") not in (None, "assistant")
        if made and (outputs or by_user):
            yield made, outputs
            made, outputs = [], []
        made.append(item)
        if by_user:
            yield made, outputs
            made = []
    if made:
        yield made, outputs


def _plain(item: Mapping[str, Any]) -> Message:
    return {"role": str(item.get("role") or "assistant"), "content": text_of_item(item)}


def _native_turn(made: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> list[Message]:
    text = "\n".join(filter(None, map(text_of_item, made)))
    calls = [call for item in made for call in tool_calls_of(item)]
    reply: Message = {"role": "assistant", "content": text, "tool_calls": calls, "items": made}
    return [reply, *map(_tool_message, outputs)]


def _tool_message(item: Mapping[str, Any]) -> Message:
    message: Message = {"role": "tool", "tool_call_id": item.get("call_id", ""), "content": ""}
    output = item.get("output")
    if not isinstance(output, Mapping):
        return {**message, "content": str(output or "")}
    image = {"type": "image_url", "image_url": {"url": output.get("image_url", "")}}
    message["content"] = [{"type": "text", "text": ""}, image]
    if url := output.get("current_url"):
        message["current_url"] = url
    if checks := item.get("acknowledged_safety_checks"):
        message["acknowledged_safety_checks"] = checks
    return message


def _text_turn(made: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> list[Message]:
    said = [text_of_item(item) or call_line(item) for item in made]
    seen = [o["output"] if isinstance(o.get("output"), str) else OMITTED for o in outputs]
    return [
        {"role": "assistant", "content": "\n".join(filter(None, said))},
        {"role": "user", "content": "\n".join(seen) or OMITTED},
    ]


def call_line(item: Mapping[str, Any]) -> str:
    """Return a call item as one line per call, `click({'x': 1, 'y': 2})`; "" for other items."""
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments') or '{}'})"
    if item.get("type") != "computer_call":
        return ""
    actions = item.get("actions") or [item.get("action") or {}]
    shown = [{k: v for k, v in a.items() if k != "type" and v is not None} for a in actions]
    return "\n".join(f"{a.get('type')}({s})" for a, s in zip(actions, shown, strict=True))


# --- steps -------------------------------------------------------------------------------------


def items_of_step(step: Step) -> list[Item]:
    """Return the items of a finished step: the model's reply, and the outputs of its calls."""
    action = step["action"]
    info = action.get("llm_info", {})
    made = [Item(item) for item in info.get("items") or ()]
    if not made:
        made = _made_items(action, info.get("tool_calls") or [])
    return [*made, *outputs_of(made, action, action.get("observation", ""))]


def _made_items(action: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Return the items for a reply of another API."""
    text = str(action.get("llm_output") or action.get("thought") or "")
    if not calls and not text:
        text = str(action.get("code") or "")
    items = [Item.message(text)] if text else []
    for number, call in enumerate(calls):
        function = call.get("function", {})
        arguments = function.get("arguments") or "{}"
        items.append(
            Item(
                type="function_call",
                call_id=str(call.get("id") or f"call_{number}"),
                name=str(function.get("name", "")),
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
        )
    return items


def outputs_of(
    made: Sequence[Mapping[str, Any]], action: Mapping[str, Any], observation: Any
) -> list[Item]:
    """Return the output items of the calls among a reply's items.

    Args:
        made: the items of the reply.
        action: the step's action, with the screens after its computer calls.
        observation: the observation of the step.
    """
    calls = [item for item in made if item.get("type") in _CALLS]
    ids = [call["id"] for item in calls for call in tool_calls_of(item)]
    texts = dict(
        zip(ids, split_results(observation, observation_text(observation), len(ids)), strict=False)
    )
    screens = {str(s.get("call_id")): s for s in action.get("screens", ())}
    outputs = []
    for call in calls:
        own = [n for n in ids if n.partition("#")[0] == str(call.get("call_id"))]
        if call["type"] == "function_call":
            text = "\n".join(texts.get(n, "") for n in own)
            outputs.append(
                Item(type="function_call_output", call_id=call.get("call_id"), output=text)
            )
        elif shown := [screens[n] for n in own if screens.get(n, {}).get("image")]:
            outputs.append(_screen_output(call, shown[-1]))
    return outputs


def _screen_output(call: Mapping[str, Any], screen: Mapping[str, Any]) -> Item:
    output = {"type": "input_image", "image_url": screen["image"]}
    if screen.get("current_url"):
        output["current_url"] = screen["current_url"]
    return Item(
        type="computer_call_output",
        call_id=call.get("call_id"),
        acknowledged_safety_checks=[*screen.get("acknowledged_safety_checks", ())],
        output=output,
    )


def reply_of(item: Mapping[str, Any]) -> Reply | None:
    """Return a reply that consists of one call item; None for other items."""
    if item.get("type") not in _CALLS:
        return None
    return Reply("", items=[dict(item)], tool_calls=tool_calls_of(item))
