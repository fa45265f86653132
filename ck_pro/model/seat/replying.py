"""From the parts that a person writes to the reply of a waiting call, with a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.exceptions import ParseError, ReplayError
from ck_pro.model.backends.backend import ChatRequest
from ck_pro.model.recordings.elements import fill_reply
from ck_pro.model.types import RawReply, Reply

PARTS = ("thought", "code", "plan", "text")
"""The parts of a reply. `text` is a whole reply, without the others."""
_NO_GUIDE = {"form": "text", "language": "", "plan": False, "functions": []}
_EMPTY = "The reply is empty."


def described(request: ChatRequest) -> dict[str, Any]:
    """Return the form of the expected reply; see `ReplyGuide.describe`."""
    guide = request.context.guide
    return guide.describe() if guide is not None else dict(_NO_GUIDE)


def composed(request: ChatRequest, parts: Mapping[str, str]) -> RawReply:
    """Return the reply that the parts make.

    Raises:
        ParseError: a part is malformed, or all are empty.
        ReplayError: a reference such as `{{button 'Save'}}` matches no element.
    """
    if not any(text.strip() for text in parts.values()):
        raise ParseError(_EMPTY)
    filled = {n: fill_reply(t, request.messages, request.context) for n, t in parts.items()}
    guide = request.context.guide
    reply = guide.compose(filled) if guide is not None else RawReply(filled.get("text", ""))
    if not (reply.text.strip() or reply.tool_calls):
        raise ParseError(_EMPTY)
    reply.model = "manual"
    return reply


def preview(request: ChatRequest, parts: Mapping[str, str]) -> dict[str, Any]:
    """Return the reply that the parts make, and what the agent would do with it.

    Returns:
        `text` and `calls` of the reply, and `parts` as `ReplyGuide.preview` returns them. The
        kind "refused" means that the parts make no reply.
    """
    try:
        raw = composed(request, parts)
    except (ParseError, ReplayError) as e:
        return {"text": "", "calls": [], "parts": [{"kind": "refused", "text": str(e)}]}
    reply = Reply(
        raw.text,
        tool_calls=raw.tool_calls,
        finish_reason=raw.finish_reason,
        messages=request.messages,
    )
    guide = request.context.guide
    found = [{"kind": "text", "text": raw.text}] if guide is None else guide.preview(reply)
    return {"text": raw.text, "calls": raw.tool_calls, "parts": found}
