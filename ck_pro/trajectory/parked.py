"""Sessions of journals whose long texts wait on the disk.

A whole row of a long run does not fit in memory: screenshots, pages, observations. While its
journal is read, long texts are put into a temporary file; what stays is the row's structure. A step
is put together again when it is asked for.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ck_pro.exceptions import InputError
from ck_pro.journal import LazyList

_LONG = 500
"""Characters from which on a text is put on the disk."""
_KINDS = ("world", "plan", "action", "observation", "error", "screen", "model_call")
"""Events whose texts are long and stand in steps only."""


class _Text:
    """A text on the disk."""

    __slots__ = ("at", "length")

    def __init__(self, at: int, length: int):
        self.at, self.length = at, length


class ParkedTexts:
    """The long texts of one journal; in a temporary file once there is one."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0

    def without_texts(self, events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The events, their long texts put on the disk. Messages stay as they are."""
        for event in events:
            if event["kind"] in _KINDS:
                event["data"] = self._put(event["data"])
            yield event

    def session(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """A session of such events with steps that are whole when they are asked for."""
        return {**session, "steps": LazyList(session["steps"], self.whole)}

    def _put(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._put_text(value) if len(value) >= _LONG else value
        if isinstance(value, dict):
            return {k: self._put(v) for k, v in value.items()}
        return [self._put(v) for v in value] if isinstance(value, list) else value

    def _put_text(self, text: str) -> _Text:
        data = text.encode("utf-8", "surrogatepass")
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the row
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            self._file.write(data)
        except OSError as e:
            folder = tempfile.gettempdir()
            raise InputError(f"cannot write a temporary file in {folder}: {e.strerror}") from None
        at, self._end = self._end, self._end + len(data)
        return _Text(at, len(data))

    def whole(self, value: Any) -> Any:
        """A value with its texts, but for the steps of sessions in it."""
        if isinstance(value, _Text):
            assert self._file is not None
            self._file.seek(value.at)
            return self._file.read(value.length).decode("utf-8", "surrogatepass")
        if isinstance(value, dict):
            if isinstance(value.get("steps"), list) and "info" in value:
                return self.session(value)
            return {k: self.whole(v) for k, v in value.items()}
        return [self.whole(v) for v in value] if isinstance(value, list) else value
