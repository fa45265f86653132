"""Parse replies of OpenAI's Responses API. Pure. For its prompts, see `responses_input`.

Source of the format: OpenAI's API reference (Responses) and the types of the openai package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events.computer_schema import COMPUTER
from ck_pro.model.backends.backend import FilteredReply
from ck_pro.model.backends.chat_completions import parse_json
from ck_pro.model.backends.service_errors import error_in_body, one_line
from ck_pro.model.retry import Transient
from ck_pro.model.types import RawReply, Usage

Item = dict[str, Any]


def parse_response(target: str, status: int, body: str, headers: Mapping[str, str]) -> RawReply:
    """Parse a response of the Responses API.

    Args:
        target: name of the service, for messages.
        status: HTTP status.
        body: response body.
        headers: response headers.

    Raises:
        Transient, ModelRefused, ContentFiltered: see `Backend.complete`.
    """
    given = parse_json(target, status, body, headers)
    data = given if isinstance(given, dict) else {}
    if data.get("error"):
        raise error_in_body(target, data, headers)
    if data.get("status") in ("failed", "cancelled"):
        raise Transient(f"{target}: the response has the status '{data['status']}'")
    items = data.get("output")
    if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
        raise Transient(
            f"{target}: not a response of the Responses API: '{one_line(body, 120)}'; check that "
            "this service has that API"
        )
    return _reply(target, data, items)


def _reply(target: str, data: dict[str, Any], items: list[Item]) -> RawReply:
    usage = _usage(data.get("usage"))
    text = _message_text(items, "output_text", "text")
    refusal = _message_text(items, "refusal", "refusal")
    calls = [call for item in items for call in tool_calls_of(item)]
    details = _mapping(data.get("incomplete_details"))
    reason = str(details.get("reason") or "") if data.get("status") == "incomplete" else ""
    if reason == "content_filter" or (refusal and not text and not calls):
        why = f": {one_line(refusal)}" if refusal else ""
        raise FilteredReply(f"{target}: the content filter stopped the reply{why}", usage)
    finish = "length" if reason else "tool_calls" if calls else "stop"
    return RawReply(
        text=text,
        reasoning=_reasoning(items),
        tool_calls=calls,
        items=items,
        usage=usage,
        finish_reason=finish,
        model=str(data.get("model") or ""),
    )


def tool_calls_of(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of an output item in the form of chat completions; [] if it is not a call.

    A computer call becomes a call of the function `computer`. A batch of actions becomes several
    calls, with the ids "ID", "ID#2", "ID#3", ...
    """
    call_id = str(item.get("call_id") or "")
    if item.get("type") == "function_call":
        return [_call(call_id, str(item.get("name") or ""), str(item.get("arguments") or "{}"))]
    if item.get("type") != "computer_call":
        return []
    batch = _mappings(item.get("actions") or [item.get("action")])
    calls = []
    for n, action in enumerate(batch, 1):
        given = {k: v for k, v in action.items() if k != "type" and v is not None}
        arguments = json.dumps({"action": action.get("type"), **given}, ensure_ascii=False)
        calls.append(_call(call_id if n == 1 else f"{call_id}#{n}", COMPUTER, arguments))
    return calls


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _message_text(items: Sequence[Item], kind: str, field: str) -> str:
    messages = [i for i in items if i.get("type") == "message"]
    parts = [p for m in messages for p in _mappings(m.get("content"))]
    return "\n".join(str(p.get(field) or "") for p in parts if p.get("type") == kind)


def _reasoning(items: Sequence[Item]) -> str:
    thoughts = [i for i in items if i.get("type") == "reasoning"]
    parts = [p for i in thoughts for p in _mappings(i.get("summary")) + _mappings(i.get("content"))]
    return "\n".join(str(p.get("text") or "") for p in parts)


def _usage(raw: Any) -> Usage | None:
    given = _mapping(raw)
    counted = Usage(
        prompt_tokens=_count(given.get("input_tokens")),
        cached_tokens=_count(_mapping(given.get("input_tokens_details")).get("cached_tokens")),
        completion_tokens=_count(given.get("output_tokens")),
        reasoning_tokens=_count(
            _mapping(given.get("output_tokens_details")).get("reasoning_tokens")
        ),
    )
    return counted if counted.total_tokens else None


def _count(value: Any) -> int:
    return max(0, int(value)) if isinstance(value, int) else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []
