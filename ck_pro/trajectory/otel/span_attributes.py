"""Compute the attributes of spans from the data of events; names follow the conventions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ck_pro.model.backends.targets import parse_target

Attributes = dict[str, Any]
PARAMS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
USAGE = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def with_value(attributes: Attributes) -> Attributes:
    """Return the attributes that have a value."""
    return {k: v for k, v in attributes.items() if v is not None and v != ""}


def provider_of(target: Any) -> str:
    """Return the provider of a `call_target`, such as "openai"; else the name of its scheme."""
    try:
        scheme = parse_target(str(target or "")).innermost().scheme
    except ValueError:
        return "unknown"
    return scheme.provider or scheme.name


def error_type(error: Any) -> str:
    """Return the type of an error recorded as `Type: message`."""
    return str(error or "").partition(":")[0]


def of_model_call(data: Mapping[str, Any], *, texts: bool) -> Attributes:
    """Return model, parameters, usage and cost of a model call; with `texts` also its messages."""
    params, usage = data.get("params") or {}, data.get("usage") or {}
    model = str(data.get("model") or "")
    attributes = {
        "gen_ai.request.model": str(params.get("model") or model or "unknown"),
        "gen_ai.response.model": model,
        **({"gen_ai.provider.name": provider_of(data["target"])} if data.get("target") else {}),
        "gen_ai.response.finish_reasons": [str(data.get("finish_reason") or "stop")],
        **{name: params[k] for k, name in PARAMS.items() if _is_number(params.get(k))},
        **{name: usage[k] for k, name in USAGE.items() if k in usage},
        "ck.cost_usd": data.get("cost"),
        "ck.attempts": data.get("attempts"),
    }
    if isinstance(params.get("stop"), list):
        attributes["gen_ai.request.stop_sequences"] = [str(s) for s in params["stop"]]
    if texts:
        reply = {"role": "assistant", "content": data.get("output", "")}
        if data.get("tool_calls"):
            reply["tool_calls"] = data["tool_calls"]
        attributes["gen_ai.input.messages"] = messages_text(data.get("messages") or [])
        attributes["gen_ai.output.messages"] = messages_text([reply])
    return attributes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def nanoseconds(seconds: float) -> int:
    """Convert Unix seconds to nanoseconds."""
    return int(seconds * 1e9)


def messages_text(messages: Iterable[Any]) -> str:
    """Return chat messages in the form of the conventions, as JSON; images without their data."""
    out = []
    for message in messages:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        converted: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, Mapping) and "text" not in part:
                converted.append({"type": str(part.get("type", "image"))})
            else:
                text = part.get("text") if isinstance(part, Mapping) else part
                converted.append({"type": "text", "content": str(text)})
        for call in message.get("tool_calls") or ():
            function = call.get("function", call)
            body = {"name": function.get("name"), "arguments": function.get("arguments")}
            converted.append({"type": "tool_call", "id": call.get("id"), **body})
        out.append({"role": message.get("role"), "parts": converted})
    return json_text(out)


def json_text(value: Any) -> str:
    """Return a value as JSON text."""
    return json.dumps(value, ensure_ascii=False, default=str)
