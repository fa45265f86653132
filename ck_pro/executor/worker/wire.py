"""Frames: the messages between the parent and a worker.

A frame is a length in four bytes (big-endian) and that many bytes of JSON, never pickle. Both
processes use this file, and `values.py`, which describes the values.
"""

from __future__ import annotations

import builtins
import collections
import itertools
import json
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

from .values import DECODERS, MAX_DEPTH

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_FRAME = 32 * 1024 * 1024
"""Maximum bytes of a frame, in either direction."""

MAX_DECODED = 128 * 1024 * 1024
"""Maximum bytes that all pending calls of a worker take in the parent after decoding."""

MAX_CALLS = 64
"""Maximum number of pending calls of a worker; further calls wait in the worker."""

MAX_VALUES = 500_000
"""Maximum number of values in a frame from a worker."""

MAX_HASHED = 1000
"""Maximum number of values other than text in sets and keys of a message from a worker."""

_HEAD = struct.Struct(">I")
_CALL = re.compile(rb'\["(?:thread_)?call",(\d{1,15}),(\d{1,15}),"')
_STRING = re.compile(rb'"[^"]*"')
_VALUE_BYTES = 100  # about an empty dict in a list
_MAX_NUMBER_LENGTH = 40
_MAX_JSON_DEPTH = 3 * MAX_DEPTH + 10  # a tagged value is an object around a list
_STEPS = {91: 1, 123: 1, 93: -1, 125: -1}
_NOT_BRACKETS = bytes(set(range(256)) - set(_STEPS))
_HASHED = frozenset({"set", "frozenset", "map"})
_UNREADABLE = (
    ValueError, TypeError, RecursionError, ArithmeticError, LookupError, AttributeError,
    MemoryError,
)  # fmt: skip
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_ITERATE: Callable[[Any, int], Iterable[str]] = _ENCODER.iterencode  # type: ignore[assignment]
_make: Any = getattr(json.encoder, "c_make_encoder", None)
if _make is not None:  # `iterencode` would create it for every message
    _text = json.encoder.encode_basestring_ascii
    _ITERATE = _make(None, _ENCODER.default, _text, None, ":", ",", False, False, True)


class WireError(Exception):
    """The received bytes are not a frame or not a value."""


class TooLarge(ValueError):
    """A value does not fit into a frame."""


def pack(message: list[Any]) -> bytes:
    """Make a frame from a message whose values are already encoded.

    Raises:
        TooLarge: the frame would be longer than `MAX_FRAME` bytes.
    """
    body = "".join(_ITERATE(message, 0)).encode("ascii")
    if len(body) > MAX_FRAME:
        raise TooLarge(f"{len(body):,} bytes are too many to pass (at most {MAX_FRAME:,})")
    return _HEAD.pack(len(body)) + body


class FrameReader:
    """Splits a stream of bytes into messages.

    Args:
        restore: called with each object of the tag `result`; returns its value.
        limit: maximum bytes of a frame; a longer one is a `WireError` before it is read.
        bounds: limits for a sender that is not trusted; None for the parent.
    """

    def __init__(
        self,
        restore: Callable[[dict[str, Any]], Any],
        limit: int = MAX_FRAME,
        bounds: Bounds | None = None,
    ):
        self._buffer = bytearray()
        self._at = 0  # start of the next frame
        self._limit = limit
        self._restore = restore
        self._hashed = 0  # values of the current message that were hashed
        self._bounds = bounds
        decoder = json.JSONDecoder(
            object_hook=self._untag, parse_int=_parse_int, parse_float=_parse_float
        )
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def take(self) -> Message | None:
        """Return the next complete message, or None.

        A call that exceeds the bounds becomes `["refused", step, id, why]`, without its content.

        Raises:
            WireError: the next bytes are not a frame; the rest of the stream is unusable.
        """
        buffer, begin = self._buffer, self._at + 4
        if len(buffer) < begin:
            return None
        (length,) = _HEAD.unpack_from(buffer, self._at)
        if length > self._limit:
            raise WireError(f"a frame of {length:,} bytes (at most {self._limit:,})")
        if len(buffer) < begin + length:
            return None
        body = bytes(buffer[begin : begin + length])
        self._at = begin + length
        if self._at == len(buffer):
            buffer.clear()
            self._at = 0
        try:
            return self._read(body)
        except TooLarge as error:
            call = _CALL.match(body)
            if call is None:
                raise WireError(f"a frame beyond the limits: {error}") from error
            return Message(["refused", int(call[1]), int(call[2]), str(error)])
        except StopIteration:
            raise WireError("a frame that cannot be read: no value") from None
        except _UNREADABLE as error:
            raise WireError(f"a frame that cannot be read: {error}") from error

    def _read(self, body: bytes) -> Message:
        cost = 0
        if self._bounds is not None:
            cost = cost_of(body)
            self._bounds.charge(cost)
        message = Message()
        message.bounds, message.cost = self._bounds, cost
        self._hashed = 0
        text = body.decode("ascii")
        found, end = self._scan(text, 0)
        if end != len(text):
            raise ValueError("more than one value")
        if not isinstance(found, list) or not found or not isinstance(found[0], str):
            raise ValueError("it is not a message")
        message += found
        return message

    def _untag(self, found: dict[str, Any]) -> Any:
        tag = found.get("$")
        if tag is None:
            if "$" in found:
                raise ValueError("a tag that is null")
            return found
        if tag == "result":
            return self._restore(found)
        value = found["v"]
        if tag in _HASHED and self._bounds is not None:
            self._check_hashed(value if tag != "map" else [key for key, _ in value])
        return DECODERS[tag](value)

    def _check_hashed(self, values: Any) -> None:
        # a hostile sender can choose values whose hashes collide, except text and bytes
        pending = [values]
        while pending:
            for one in pending.pop():
                kind = type(one)
                if kind is str or kind is bytes or kind is frozenset:  # counted when it was decoded
                    continue
                if kind is tuple:
                    pending.append(one)
                elif kind is int:
                    self._hashed += one.bit_length() >> 6
                elif kind.__name__ == "Decimal":
                    self._hashed += len(str(one)) >> 4
                self._hashed += 1
                if self._hashed > MAX_HASHED:
                    raise TooLarge(
                        f"sets, and dicts whose keys are not text, have more than {MAX_HASHED:,} "
                        "values, too many to pass: use a list"
                    )


class Message(list[Any]):
    """A message. Its cost counts against the bounds of its sender until it is deleted."""

    bounds: Bounds | None = None
    cost = 0

    def __del__(self) -> None:
        if self.bounds is not None:
            self.bounds.release(self.cost)


class Bounds:
    """Limits the memory of all messages from one sender that are in use.

    Args:
        most: maximum bytes after decoding.
    """

    def __init__(self, most: int = MAX_DECODED):
        self._most = most
        self._used = 0
        self._released: collections.deque[int] = collections.deque()

    def charge(self, cost: int) -> None:
        """Count a message.

        Raises:
            TooLarge: the messages in use would exceed the limit.
        """
        while self._released:
            self._used -= self._released.popleft()
        if self._used + cost > self._most:
            raise TooLarge(
                f"the pending calls have {self._used + cost:,} bytes of data "
                f"(at most {self._most:,}). Pass less, or write it to a file"
            )
        self._used += cost

    def release(self, cost: int) -> None:
        """Stop counting a message. Takes no lock, since the garbage collector may call it."""
        self._released.append(cost)


def cost_of(body: bytes) -> int:
    """Estimate the bytes that a frame's JSON takes after decoding, without decoding it.

    Raises:
        TooLarge: there are too many values, or they are nested too deeply.
    """
    opened = body.count(b"[") + body.count(b"{")
    values = opened + body.count(b",") + body.count(b":")
    if opened > _MAX_JSON_DEPTH or values > MAX_VALUES:
        bare = _without_strings(body)
        opened = bare.count(b"[") + bare.count(b"{")
        values = opened + bare.count(b",") + bare.count(b":")
        if values > MAX_VALUES:
            raise TooLarge(
                f"{values:,} values are too many to pass (at most {MAX_VALUES:,}). "
                "Pass fewer, or write them to a file"
            )
        if opened > _MAX_JSON_DEPTH:
            steps = (_STEPS[one] for one in bare.translate(None, _NOT_BRACKETS))
            if max(itertools.accumulate(steps)) > _MAX_JSON_DEPTH:
                raise TooLarge(f"lists are nested too deeply to pass (at most {MAX_DEPTH} levels)")
    escaped = body.count(b"\\u")  # a text with an escape takes up to four bytes per character
    size = 4 * (len(body) - 5 * escaped) if escaped else len(body)
    return size + _VALUE_BYTES * values


def _without_strings(body: bytes) -> bytes:
    for escaped in (b"\\\\", b'\\"'):
        if escaped in body:
            body = body.replace(escaped, b"")
    if body.count(b'"') > 4 * MAX_VALUES:
        raise TooLarge("too many texts to pass")
    return _STRING.sub(b"", body)


def _parse_int(text: str) -> int:
    if len(text) > _MAX_NUMBER_LENGTH:  # longer numbers are sent in hexadecimal
        raise ValueError("a number with too many digits")
    return int(text)


def _parse_float(text: str) -> float:
    if len(text) > _MAX_NUMBER_LENGTH:
        raise ValueError("a number with too many digits")
    return float(text)
