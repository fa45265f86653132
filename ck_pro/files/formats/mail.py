"""E-mails and mailboxes: headers, text, and attachments as separate files."""

from __future__ import annotations

import email
import email.message
import email.policy
import functools
import io
import mailbox
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..document import Document, Facts, Part
from ..limits import MAX_MEMBERS
from ..problem import ToolError
from ..unpacking import save
from .html import Reader as HtmlReader

_HEADERS = ("From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject")
_MESSAGE = "message"
_MAX_PARTS = 5000


class Reader(Document):
    """An e-mail. Its parts are the message and its attachments; of a mailbox, its messages."""

    def facts(self) -> Facts:
        if self._is_mailbox:
            hidden = [f"message {n} has attachments (part='{n}.eml')" for n in self._with_files]
            return Facts([f"{len(self._box):,} messages"], hidden)
        text = self._message.get_body(("plain",))
        html = self._message.get_body(("html",))
        hidden = [f"attachment {name!r}" for name in self._attachments]
        if text is not None and html is not None:
            hidden.append("the text exists twice: as plain text (shown) and as HTML (part='html')")
        facts = [f"{name}: {self._message[name]}" for name in _HEADERS if self._message[name]]
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        if self._is_mailbox:
            parts = [Part(str(n), f"message {n}") for n in range(1, len(self._box) + 1)]
            files = (Part(f"{n}.eml", f"message {n} as a file", True) for n in self._with_files)
            return [*parts, *files]
        parts = [Part(_MESSAGE, "message")]
        if self._message.get_body(("html",)) is not None:
            parts.append(Part("html", "the HTML form of the message", True))
        return [*parts, *(Part(name, f"attachment {name!r}", True) for name in self._attachments)]

    def blocks(self, part: str) -> Iterator[str]:
        message = self._box[int(part) - 1] if self._is_mailbox else self._message
        for name in _HEADERS:
            for value in message.get_all(name, ()):
                yield f"{name}: {value}\n"
        yield "\n"
        body = message.get_body(("plain", "html"))
        if body is not None and body.get_content_subtype() == "html":
            source = io.BytesIO(str(body.get_content()).encode())
            yield from HtmlReader(save(source, "message.html", 0), self.reading).blocks("page")
        elif body is not None:
            yield from (f"{line}\n" for line in str(body.get_content()).splitlines())

    def member(self, part: str) -> Path | None:
        if self._is_mailbox:
            number = part.removesuffix(".eml")
            if number == part or not number.isdigit():
                return None
            message = self._box[int(number) - 1]
            return save(io.BytesIO(message.as_bytes()), part, 0)
        if part == "html":
            body = self._message.get_body(("html",))
            if body is None:
                return None
            return save(io.BytesIO(str(body.get_content()).encode()), "message.html", 0)
        if part not in self._attachments:
            return None
        content = self._attachments[part].get_payload(decode=True)
        if content is None:  # an attached e-mail
            inner: Any = self._attachments[part].get_payload(0)
            content = inner.as_bytes()
            part = part if part.endswith(".eml") else f"{part}.eml"
        assert isinstance(content, bytes)
        return save(io.BytesIO(content), part, 0)

    @functools.cached_property
    def _is_mailbox(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(5) == b"From "

    @functools.cached_property
    def _message(self) -> email.message.EmailMessage:
        with self.path.open("rb") as file:
            made = email.message_from_binary_file(file, policy=email.policy.default)
        if made.is_multipart() and len(made.get_payload()) > _MAX_PARTS:
            raise ToolError(f"the e-mail has more than {_MAX_PARTS:,} parts")
        return made

    @functools.cached_property
    def _box(self) -> list[email.message.EmailMessage]:
        box = mailbox.mbox(self.path, create=False)
        if len(box) > MAX_MEMBERS:
            raise ToolError(f"the mailbox has more than {MAX_MEMBERS:,} messages")
        return [
            email.message_from_bytes(one.as_bytes(), policy=email.policy.default) for one in box
        ]

    @functools.cached_property
    def _with_files(self) -> list[int]:
        """Numbers of the messages of a mailbox that have attachments."""
        box = enumerate(self._box, 1)
        return [n for n, message in box if any(True for _ in message.iter_attachments())]

    @functools.cached_property
    def _attachments(self) -> dict[str, email.message.EmailMessage]:
        found: dict[str, email.message.EmailMessage] = {}
        for number, part in enumerate(self._message.iter_attachments(), 1):
            is_message = part.get_content_type() == "message/rfc822"
            plain = f"message-{number}.eml" if is_message else f"attachment-{number}"
            name = part.get_filename() or plain
            found[name if name not in found else f"{number}-{name}"] = part
        return found
