"""Read response bodies, and parse chat completions.

Source of the format: OpenAI's API reference (Chat Completions), and the variants of vLLM, Ollama,
DeepSeek and common gateways.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ck_pro.exceptions import ModelRefused
from ck_pro.model.backends.backend import ChatRequest, FilteredReply
from ck_pro.model.backends.service_errors import error_in_body, one_line, service_error
from ck_pro.model.retry import Transient
from ck_pro.model.types import RawReply, Usage

LARGEST_BODY = 64 << 20
"""Limit of a response body, in bytes."""
_LENGTH_REASONS = ("length", "max_tokens", "model_length", "max_output_tokens")
"""Finish reasons of services for a reply that reached its length limit."""
_NOT_JSON = object()


def read_body(chunks: Iterable[bytes], request: ChatRequest, target: str) -> str:
    """Read a response body as it arrives.

    Raises:
        Transient: the request was abandoned meanwhile.
        ModelRefused: the body exceeds `LARGEST_BODY`.
    """
    read, size = [], 0
    for chunk in chunks:
        if request.abandoned.is_set():
            raise Transient(f"{target}: the call was abandoned")
        size += len(chunk)
        if size > LARGEST_BODY:
            raise ModelRefused(f"{target}: the response exceeds {LARGEST_BODY >> 20} MB")
        read.append(chunk)
    return b"".join(read).decode("utf-8-sig", "replace")


def parse_completion(target: str, status: int, body: str, headers: Mapping[str, str]) -> RawReply:
    """Parse a response of the chat completions API.

    Args:
        target: name of the service, for messages.
        status: HTTP status.
        body: response body.
        headers: response headers.

    Raises:
        Transient, ModelRefused, ContentFiltered: see `Backend.complete`.
    """
    data = parse_json(target, status, body, headers)
    if isinstance(data, dict) and data.get("error"):  # some gateways send errors with status 200
        raise error_in_body(target, data, headers)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):  # a wrong URL, or a gateway's error page
        raise Transient(
            f"{target}: the response is not a chat completion: '{one_line(body, 120)}'; "
            "check that the URL is an OpenAI-compatible API"
        )
    if not choices or not isinstance(choices[0], dict):
        raise Transient(f"{target}: the response contains no choice")
    return parse_choice(target, choices[0], data)


def parse_json(target: str, status: int, body: str, headers: Mapping[str, str]) -> Any:
    """Return a response body as JSON data; arguments and errors are those of `parse_completion`."""
    data = _json(body)
    if not 200 <= status < 300:
        raise service_error(target, status, body if data is _NOT_JSON else data, headers)
    if data is _NOT_JSON:
        shown = one_line(body, 120)
        raise Transient(f"{target}: the response is truncated or not JSON: '{shown}'")
    return data


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _NOT_JSON


def parse_choice(target: str, choice: dict[str, Any], data: dict[str, Any]) -> RawReply:
    """Return one choice of a response; `data` is the whole response."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Transient(f"{target}: the response's choice contains no message")
    finish = str(choice.get("finish_reason") or "stop")
    finish = "length" if finish.lower() in _LENGTH_REASONS else finish
    refusal = message.get("refusal")
    if finish == "content_filter" or (refusal and not message.get("content")):
        reason = f": {one_line(str(refusal))}" if refusal else ""
        raise FilteredReply(f"{target}: the content filter stopped the reply{reason}", _usage(data))
    model = str(data.get("model") or "")
    return replace(parse_message(message), usage=_usage(data), finish_reason=finish, model=model)


def parse_message(message: Mapping[str, Any]) -> RawReply:
    """Return the message of an assistant as a reply."""
    return RawReply(
        text=_text(message.get("content")),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        tool_calls=calls if isinstance(calls := message.get("tool_calls"), list) else [],
    )


def _text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        parts = [p.get("text", "") if isinstance(p, dict) else p for p in content]
        return "".join(str(p) for p in parts)
    return str(content or "")


def _usage(data: dict[str, Any]) -> Usage | None:
    """Return the usage that the service reports; None if it reports none.

    If one of the two counts is missing, the usage is marked as estimated and `LLM` fills it in.
    Cached tokens are also read under DeepSeek's name.
    """
    raw = data.get("usage")
    if not isinstance(raw, dict):
        return None
    if not _count(raw, "prompt_tokens") and not _count(raw, "completion_tokens"):
        return None
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    cached = _count(prompt, "cached_tokens") or _count(raw, "prompt_cache_hit_tokens")
    return Usage(
        prompt_tokens=_count(raw, "prompt_tokens"),
        cached_tokens=min(cached, _count(raw, "prompt_tokens")),
        completion_tokens=_count(raw, "completion_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        estimated=raw.get("prompt_tokens") is None or raw.get("completion_tokens") is None,
    )


def _count(raw: Any, name: str) -> int:
    value = raw.get(name) if isinstance(raw, dict) else None
    try:
        return max(0, int(float(value or 0)))  # some services send numbers as text
    except (TypeError, ValueError, OverflowError):
        return 0
