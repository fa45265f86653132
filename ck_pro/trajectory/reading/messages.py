"""Convert chat messages of any service to one normal form.

A message in normal form has `role` and `content`. An assistant's message may have `tool_calls`
(with `arguments` as an object) and `reasoning_content`; a tool's message has `tool_call_id`.
`content` is text, or a list of the parts `{"type": "text", "text"}` and `{"type": "image"}`. The
images are in a separate list, in order of their parts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ck_pro.events.computer_schema import COMPUTER, COMPUTER_DESCRIPTION, COMPUTER_PARAMETERS
from ck_pro.exceptions import InputError
from ck_pro.tool import function_schema
from ck_pro.trajectory.reading.big_json import plain

Message = dict[str, Any]

_ROLES = {
    **{r: r for r in ("system", "user", "assistant", "tool")},
    **{"developer": "system", "function": "tool", "human": "user", "gpt": "assistant"},
}
_TEXT_PARTS = ("text", "input_text", "output_text")
_IMAGE_PARTS = ("image_url", "image", "input_image")
_DATA_URL = re.compile(r"data:image/([a-z0-9.+-]+);base64,", re.IGNORECASE)
_COMPUTERS = ("computer", "computer_use_preview")
_EXTENSIONS = {"jpeg": "jpg", "svg+xml": "svg"}
MEDIA_TYPES = {"jpg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp"}


class MessageError(InputError):
    """A model call has no normal form; `reason` is a short fixed phrase."""

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True)
class Image:
    """An image of a prompt: its data URL."""

    url: str

    @cached_property
    def data(self) -> bytes:
        """The file's bytes.

        Raises:
            MessageError: the URL is not valid base64.
        """
        try:
            return base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            raise MessageError("unreadable image") from None

    @property
    def base64(self) -> str:
        """The file's bytes in base64."""
        return self.url.partition(",")[2]

    @property
    def ext(self) -> str:
        """The usual suffix of the file, without the dot."""
        found = _DATA_URL.match(self.url)
        kind = found[1].lower() if found else ""
        return _EXTENSIONS.get(kind, kind)

    @property
    def media_type(self) -> str:
        """The media type, such as "image/png"."""
        return MEDIA_TYPES.get(self.ext, f"image/{self.ext}")

    @property
    def name(self) -> str:
        """`<sha256 of the bytes>.<suffix>`."""
        return f"{hashlib.sha256(self.data).hexdigest()}.{self.ext}"


def normal_messages(messages: Any, images: list[Image]) -> list[Message]:
    """Convert a prompt to normal form.

    Args:
        messages: messages of chat completions, or one text.
        images: list to which the images are appended, in order.

    Raises:
        MessageError: it is not a prompt, or has parts that no format supports.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    messages = list(messages) if isinstance(messages, Sequence) else None
    if messages is None or not all(isinstance(m, Mapping) for m in messages):
        raise MessageError("prompt is not a list of messages")
    return [_normal_message(plain(m), images) for m in messages]


def _normal_message(source: Mapping[str, Any], images: list[Image]) -> Message:
    role = _ROLES.get(str(source.get("role")))
    if role is None:
        raise MessageError("unknown role in a message", repr(source.get("role")))
    message: Message = {"role": role, "content": _content(source.get("content"), images)}
    if source.get("tool_calls"):
        message["tool_calls"] = normal_tool_calls(source["tool_calls"])
    if role == "tool" and source.get("tool_call_id"):
        message["tool_call_id"] = str(source["tool_call_id"])
    return message


def _content(content: Any, images: list[Image]) -> str | list[dict[str, Any]]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise MessageError("content is neither text nor parts")
    parts = [_part(p, images) for p in content]
    if any(p["type"] == "image" for p in parts):
        return parts
    return "\n".join(p["text"] for p in parts)


def _part(part: Any, images: list[Image]) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": str(part.get("text", ""))}
    if kind in _IMAGE_PARTS:
        images.append(Image(_image_url(part)))
        return {"type": "image"}
    raise MessageError("part of a message that is neither text nor image", repr(kind))


def _image_url(part: Mapping[str, Any]) -> str:
    for key in ("image_url", "image", "url"):
        value = part.get(key)
        url = value.get("url") if isinstance(value, Mapping) else value
        if isinstance(url, str) and _DATA_URL.match(url):
            return url
    raise MessageError("image that is not in the row")


def calls_as_text(calls: Sequence[Mapping[str, Any]]) -> str:
    """Format tool calls (see `normal_tool_calls`) as text, as Qwen and Hermes models do."""
    texts = [json.dumps(c["function"], ensure_ascii=False) for c in calls]
    return "".join(f"\n<tool_call>\n{t}\n</tool_call>" for t in texts)


def normal_tool_calls(calls: Any) -> list[dict[str, Any]]:
    """Convert tool calls to `{"id", "type", "function": {"name", "arguments": object}}`.

    Raises:
        MessageError: a call has no name, or its arguments are not an object.
    """
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise MessageError("unreadable tool call")
    out = []
    for n, call in enumerate(calls):
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not function.get("name"):
            raise MessageError("unreadable tool call")
        arguments = function.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                arguments = None
        if not isinstance(arguments, dict):
            raise MessageError("unreadable tool call")
        body = {"name": str(function["name"]), "arguments": arguments}
        out.append({"id": str(call.get("id") or f"call_{n}"), "type": "function", "function": body})
    return out


def normal_tools(tools: Any) -> list[dict[str, Any]]:
    """Convert the tools of a request to function schemas of chat completions.

    The built-in computer of the Responses API becomes the function `computer`. Other built-in tools
    of a service, such as its web search, are dropped: chat templates cannot show them.
    """
    out = []
    for tool in tools if isinstance(tools, list) else ():
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        if kind in _COMPUTERS:
            out.append(function_schema(COMPUTER, COMPUTER_DESCRIPTION, COMPUTER_PARAMETERS))
        elif kind in ("function", None) and isinstance(tool, Mapping):
            body = tool.get("function", {k: v for k, v in tool.items() if k != "type"})
            if isinstance(body, Mapping) and body.get("name"):
                out.append({"type": "function", "function": dict(body)})
    return out


def text_of(message: Message) -> str:
    """Return the text of a message in normal form."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] for p in content if p["type"] == "text")


def hash_of(*parts: Any) -> bytes:
    """Return a hash of JSON-able values, 16 bytes."""
    compact: Any = {"ensure_ascii": False, "sort_keys": True, "separators": (",", ":")}
    text = json.dumps(parts, default=plain, **compact)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
