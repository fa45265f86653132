"""Serve a recording from a real endpoint: a `FakeChatServer` that answers like `replay:`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from ck_pro.exceptions import ContentFiltered
from ck_pro.model import CallContext, ChatRequest, Reply
from ck_pro.model.recordings.replay import ReplayBackend
from ck_pro.testing.chat_server import ChatCall, Fault

CONTEXT_HEADERS = {
    "X-CK-Agent": "{agent}",
    "X-CK-Phase": "{phase}",
    "X-CK-Step": "{step}",
    "X-CK-Task": "{task}",
    "X-CK-Workdir": "{workdir}",
}
"""Headers for `LLM.headers`; the prompt alone does not identify the recorded reply."""


def recorded_replies(path: str | Path) -> Callable[[ChatCall], Reply | Fault]:
    """Make a script for `FakeChatServer` that answers from a recording.

    The models must send `CONTEXT_HEADERS`. Instructions are not compared, since requests do not
    carry them apart from the prompt.

    Args:
        path: the recording.
    """
    replay = ReplayBackend(path, check=False)

    def answer(call: ChatCall) -> Reply | Fault:
        sent = {name: unquote(call.headers.get(name, "")) for name in CONTEXT_HEADERS}
        context = CallContext(
            agent_path=tuple(sent["X-CK-Agent"].split("/")),
            phase=sent["X-CK-Phase"],
            step=int(sent["X-CK-Step"] or 0),
            task=sent["X-CK-Task"],
            workdir=sent["X-CK-Workdir"],
        )
        try:
            raw = replay.complete(ChatRequest(call.messages, {}, context))
        except ContentFiltered as e:
            return Fault(400, message=str(e), code="content_filter")
        return Reply(raw.text, tool_calls=raw.tool_calls, items=raw.items)

    return answer
