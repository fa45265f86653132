"""Outlook messages (.msg): headers, text, and attachments as separate files."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..document import Document, Facts, Part
from ..problem import library
from ..unpacking import save


class Reader(Document):
    """An Outlook message. Its parts are the message and its attachments."""

    def facts(self) -> Facts:
        facts = [f"From: {self._message.sender}", f"Subject: {self._message.subject}"]
        return Facts(facts, [f"attachment {name!r}" for name in self._attachments])

    def parts(self) -> Sequence[Part]:
        attached = [Part(name, f"attachment {name!r}", True) for name in self._attachments]
        return [Part("message", "message"), *attached]

    def blocks(self, part: str) -> Iterator[str]:
        message = self._message
        to = ", ".join(f"{one.name} <{one.email_address}>" for one in message.recipients)
        headers = {"From": message.sender, "To": to, "Date": message.sent_date}
        yield from (f"{name}: {value}\n" for name, value in headers.items() if value)
        yield f"Subject: {message.subject or ''}\n\n"
        yield from (f"{line}\n" for line in (message.body or "").splitlines())

    def member(self, part: str) -> Path | None:
        attachment = self._attachments.get(part)
        if attachment is None:
            return None
        return save(io.BytesIO(attachment.file_bytes or b""), part, 0)

    @functools.cached_property
    def _message(self) -> Any:
        oxmsg = library("oxmsg", "python-oxmsg", "Outlook messages")
        return oxmsg.Message.load(str(self.path))

    @functools.cached_property
    def _attachments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, one in enumerate(self._message.attachments, 1):
            name = one.file_name or f"attachment-{number}"
            found[name if name not in found else f"{number}-{name}"] = one
        return found
