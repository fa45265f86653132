"""Outlook messages (.msg), converted to an e-mail and then read as one.

Source of the format: Microsoft, [MS-OXMSG] and [MS-OXRTFCP].
"""

from __future__ import annotations

import datetime
import email.utils
import functools
import struct
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

from ..limits import MAX_NESTING
from ..problem import library
from .mail import Reader as MailReader

_PROPERTIES = "__properties_version1.0"
_EMBEDDED = "__substg1.0_3701000D"
_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER, _SENDER_ADDRESSES = 0x0C1A, (0x5D01, 0x0C1F)
_NAME, _ADDRESSES, _RECIPIENT_KIND = 0x3001, (0x39FE, 0x3003), 0x0C15
_SENT, _DELIVERED = 0x0039, 0x0E06
_FILE_NAMES, _DATA = (0x3707, 0x3704, _NAME), 0x3701
_CODEPAGES = (0x3FFD, 0x3FDE)
_UTF8_CODEPAGE = 65001
_FIELDS = {1: "To", 2: "Cc", 3: "Bcc"}
_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.timezone.utc)


class Reader(MailReader):
    """An Outlook message, with the parts of an e-mail."""

    @property
    def _is_mailbox(self) -> bool:
        return False

    @functools.cached_property
    def _message(self) -> EmailMessage:
        olefile = library("olefile", "olefile", "Outlook messages")
        with olefile.OleFileIO(self.path) as ole:
            return _converted(_Storage(ole, ()), 0)


class _Storage:
    """A folder of an OLE file that has properties: the message, a recipient or an attachment."""

    def __init__(self, ole: Any, path: tuple[str, ...], header: int = 32):
        self._ole, self._path = ole, path
        self._fixed: dict[int, int] = {}
        data = self._stream(_PROPERTIES) or b""
        for at in range(header, len(data) - 15, 16):
            _, number, _, value = struct.unpack_from("<HHIQ", data, at)
            self._fixed[number] = value
        page = self.number(*_CODEPAGES)
        self._encoding = "utf-8" if page == _UTF8_CODEPAGE else f"cp{page or 1252}"

    def _stream(self, name: str) -> bytes | None:
        path = [*self._path, name]
        return self._ole.openstream(path).read() if self._ole.exists("/".join(path)) else None

    def text(self, *numbers: int) -> str:
        """Return the first text among properties, or ""."""
        for number in numbers:
            data = self._stream(f"__substg1.0_{number:04X}001F")
            if data is not None:
                return data.decode("utf-16-le", "replace").rstrip("\0")
            data = self._stream(f"__substg1.0_{number:04X}001E")
            if data is not None:
                return self.decoded(data)
        return ""

    def decoded(self, data: bytes) -> str:
        try:
            return data.decode(self._encoding, "replace").rstrip("\0")
        except LookupError:
            return data.decode("cp1252", "replace").rstrip("\0")

    def data(self, number: int) -> bytes | None:
        return self._stream(f"__substg1.0_{number:04X}0102")

    def number(self, *numbers: int) -> int:
        return next((self._fixed[n] & 0xFFFFFFFF for n in numbers if n in self._fixed), 0)

    def date(self, *numbers: int) -> datetime.datetime | None:
        ticks = next((self._fixed[n] for n in numbers if self._fixed.get(n)), None)
        return None if ticks is None else _EPOCH + datetime.timedelta(microseconds=ticks // 10)

    def below(self, start: str, header: int) -> Iterator[_Storage]:
        """Yield the storages in this one whose names begin with a text."""
        depth = len(self._path)
        entries = self._ole.listdir(streams=False, storages=True)
        for path in sorted(path for path in entries if len(path) == depth + 1):
            if tuple(path[:depth]) == self._path and path[depth].startswith(start):
                yield _Storage(self._ole, tuple(path), header)


def _converted(stored: _Storage, depth: int) -> EmailMessage:
    """Return a message as an e-mail, with its attachments and attached messages."""
    made = EmailMessage()
    sender = _address(stored.text(_SENDER), stored.text(*_SENDER_ADDRESSES))
    fields: dict[str, list[str]] = {"From": [sender], "To": [], "Cc": [], "Bcc": []}
    for one in stored.below("__recip_version1.0_#", 8):
        shown = _address(one.text(_NAME), one.text(*_ADDRESSES))
        fields[_FIELDS.get(one.number(_RECIPIENT_KIND), "To")].append(shown)
    date = stored.date(_SENT, _DELIVERED)
    fields["Date"] = [email.utils.format_datetime(date)] if date else []
    fields["Subject"] = [stored.text(_SUBJECT)]
    for name, values in fields.items():
        text = " ".join(", ".join(filter(None, values)).split())
        if text:
            made[name] = text
    _add_body(made, stored)
    for number, one in enumerate(stored.below("__attach_version1.0_#", 8), 1):
        name = one.text(*_FILE_NAMES) or f"attachment-{number}"
        inner = next(one.below(_EMBEDDED, 24), None)
        if inner is not None and depth < MAX_NESTING:
            made.add_attachment(_converted(inner, depth + 1), filename=f"message-{number}.eml")
        else:
            data = one.data(_DATA) or b""
            made.add_attachment(data, "application", "octet-stream", filename=name)
    return made


def _add_body(made: EmailMessage, stored: _Storage) -> None:
    text, html = stored.text(_BODY), stored.data(_HTML)
    shown = stored.decoded(html) if html is not None else stored.text(_HTML)
    if text or not shown:
        made.set_content(text)
    if shown:
        add = made.add_alternative if text else made.set_content
        add(shown, subtype="html")
    packed = stored.data(_RTF)
    if packed and not (text or shown):
        made.add_attachment(_unpacked_rtf(packed), "application", "rtf", filename="body.rtf")


def _address(name: str, address: str) -> str:
    return f"{name} <{address}>" if name and address and name != address else name or address


_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_COMPRESSED, _WINDOW = b"LZFu", 4096


def _unpacked_rtf(data: bytes) -> bytes:
    """Return the RTF text of a message, which may be compressed ([MS-OXRTFCP])."""
    if data[8:12] != _COMPRESSED:
        return data[16:]
    end = struct.unpack_from("<I", data)[0] + 4
    window = bytearray(_DICTIONARY.ljust(_WINDOW, b"\0"))
    at, out, place = 16, bytearray(), len(_DICTIONARY)

    def write(byte: int) -> None:
        nonlocal place
        out.append(byte)
        window[place] = byte
        place = (place + 1) % _WINDOW

    while at < min(end, len(data)):
        flags, at = data[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                write(data[at])
                at += 1
                continue
            start, length = divmod(data[at] << 8 | data[at + 1], 16)
            at += 2
            if start == place:
                return bytes(out)
            for step in range(length + 2):
                write(window[(start + step) % _WINDOW])
    return bytes(out)
