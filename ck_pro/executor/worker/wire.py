"""Frames and values: what crosses the socket between the parent and a worker.

A frame is four bytes of length (big-endian) and that many bytes of JSON; never pickle. Values that
JSON lacks are tagged: an object `{"$": tag, "v": value}`. Tags are `bytes` (base64), `int` (beyond
64 bits, in hexadecimal), `complex`, `tuple`, `set`, `frozenset`, `map` (keys that are no text, or
the text "$"), `date`, `time`, `datetime` (ISO 8601), `timedelta`, `decimal` (of some thousand
digits), and `result` (an object of the parent's, by a handle). Subclasses cross as what they derive
from; ranges, queues and views of dictionaries as lists. What is none of all this crosses as its
`str()`.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import collections
import collections.abc
import datetime
import json
import os
import select
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_FRAME = 32 * 1024 * 1024
"""Bytes of a frame at most, in either direction."""

_HEAD = struct.Struct(">I")
_DEEPEST = 100
_CROWDED_SECONDS = 0.00005
_SKIPPED = 8
_MOST_ITEMS = 1 << 20
_MOST_DIGITS = 10_000
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_ITERATE: Callable[[Any, int], Iterable[str]] = _ENCODER.iterencode  # type: ignore[assignment]
_make: Any = getattr(json.encoder, "c_make_encoder", None)
if _make is not None:  # what `iterencode` makes anew for every message
    _text = json.encoder.encode_basestring_ascii
    _ITERATE = _make(None, _ENCODER.default, _text, None, ":", ",", False, False, True)
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
_PLAIN = frozenset({str, bool, float, type(None)})

Special = Callable[[Any], "dict[str, Any] | None"]
"""Gives the tagged form of an object that only one side knows, or None."""


class Spin:
    """Polls for a very short time without going to sleep: to be woken costs more than most answers.

    Anything else that wants this processor gets it, and ends this. When it was of no use, the next
    times go to sleep at once.

    Args:
        poll: what to poll.
        seconds: at most.
    """

    def __init__(self, poll: select.poll, seconds: float):
        self._poll = poll
        self._seconds = seconds
        self._skip = 0

    def wait(self) -> list[tuple[int, int]]:
        """Give what is ready, or nothing."""
        if self._skip:
            self._skip -= 1
            return []
        now = time.monotonic()
        until = now + self._seconds
        crowded = False
        while not (ready := self._poll.poll(0)) and not crowded and now < until:
            _yield()
            before, now = now, time.monotonic()
            crowded = now - before > _CROWDED_SECONDS
        if not ready:
            self._skip = _SKIPPED
        return ready


class WireError(Exception):
    """What came over the wire is not a frame, or not a value."""


class TooLarge(ValueError):
    """A value does not fit into a frame."""


def pack(message: list[Any]) -> bytes:
    """Make a frame of a message whose values are encoded already.

    Raises:
        TooLarge: the frame would be longer than `MAX_FRAME` bytes.
    """
    body = "".join(_ITERATE(message, 0)).encode("ascii")
    if len(body) > MAX_FRAME:
        raise TooLarge(f"{len(body)} bytes are too many to hand over (at most {MAX_FRAME})")
    return _HEAD.pack(len(body)) + body


class FrameReader:
    """Cuts a stream of bytes into messages.

    Args:
        restore: called with each `result` tag's object; gives the value it stands for.
        limit: bytes of a frame at most; a longer one is a `WireError` before it is read.
    """

    def __init__(self, restore: Callable[[dict[str, Any]], Any], limit: int = MAX_FRAME):
        self._buffer = bytearray()
        self._limit = limit
        decoder = json.JSONDecoder(object_hook=lambda found: _untag(found, restore))
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        self._buffer += data

    def take(self) -> list[Any] | None:
        """Give the next whole message, or None.

        Raises:
            WireError: the next bytes are not a frame. Nothing after that can be trusted.
        """
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        (length,) = _HEAD.unpack_from(buffer)
        if length > self._limit:
            raise WireError(f"a frame of {length} bytes (at most {self._limit})")
        if len(buffer) < 4 + length:
            return None
        body = buffer[4 : 4 + length]
        del buffer[: 4 + length]
        try:
            text = body.decode("ascii")
            message, end = self._scan(text, 0)
            if end != len(text):
                raise ValueError("more than one value")
        except StopIteration:
            raise WireError("a frame that cannot be read: no value") from None
        except (ValueError, TypeError, RecursionError, ArithmeticError, LookupError) as error:
            raise WireError(f"a frame that cannot be read: {error}") from error
        if not isinstance(message, list) or not message or not isinstance(message[0], str):
            raise WireError("a frame that is no message")
        return message


def encode(value: Any, special: Special) -> Any:
    """Turn any value into what JSON can carry (see the top of this file)."""
    return _encode(value, special, set())


def _encode(value: Any, special: Special, inside: set[int]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return _integer(value)
    if kind in _CONTAINERS:
        if id(value) in inside or len(inside) > _DEEPEST:
            return str(value)
        inside.add(id(value))
        try:
            return _container(value, kind, special, inside)
        finally:
            inside.discard(id(value))
    return _other(value, special, inside)


def _integer(value: int) -> Any:
    if -(2**63) <= value < 2**63:
        return value
    return {"$": "int", "v": hex(value)}


def _container(value: Any, kind: type, special: Special, inside: set[int]) -> Any:
    if kind is list:
        return [_encode(one, special, inside) for one in value]
    if kind is dict:
        if "$" not in value and all(type(key) is str for key in value):
            return {key: _encode(one, special, inside) for key, one in value.items()}
        pairs = [
            [_encode(key, special, inside), _encode(one, special, inside)]
            for key, one in value.items()
        ]
        return {"$": "map", "v": pairs}
    return {"$": kind.__name__, "v": [_encode(one, special, inside) for one in value]}


def _other(value: Any, special: Special, inside: set[int]) -> Any:
    tagged = special(value)
    if tagged is not None:
        return tagged
    if isinstance(value, (bytes, bytearray)):
        return {"$": "bytes", "v": base64.b64encode(value).decode("ascii")}
    if isinstance(value, memoryview):
        return {"$": "bytes", "v": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, datetime.timedelta):
        return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if type(value).__module__ == "decimal" and type(value).__name__ == "Decimal":
        return {"$": "decimal", "v": str(value)} if _is_handy(value) else str(value)
    if isinstance(value, complex):
        return {"$": "complex", "v": [value.real, value.imag]}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        if type(value).__module__ == "datetime":
            return {"$": type(value).__name__, "v": value.isoformat()}
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _encode(value.tolist(), special, inside)
    for base, plain in _BASES:
        if isinstance(value, base):
            return _encode(plain(value), special, inside)
    return str(value)


_CONTAINERS = frozenset({list, dict, tuple, set, frozenset})
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, lambda value: str.__str__(value)),
    (int, lambda value: int.__int__(value)),
    (float, lambda value: float.__float__(value)),
    (dict, lambda value: dict(value)),
    (list, lambda value: list(value)),
    (tuple, lambda value: tuple(value)),
    (set, lambda value: set(value)),
    (frozenset, lambda value: frozenset(value)),
    (range, lambda value: _items(value)),
    (collections.deque, lambda value: _items(value)),
    (collections.abc.KeysView, lambda value: _items(value)),
    (collections.abc.ValuesView, lambda value: _items(value)),
    (collections.abc.ItemsView, lambda value: _items(value)),
)
"""Subclasses (an `IntEnum`, an `OrderedDict`, a named tuple) cross as what they derive from."""


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _items(value: Any) -> Any:
    return list(value) if len(value) <= _MOST_ITEMS else str(value)


def _decimal(value: Any) -> Any:
    import decimal

    made = decimal.Decimal(value)
    if not _is_handy(made):
        raise ValueError("a decimal number with too many digits")
    return made


def _is_handy(number: Any) -> bool:
    """Whether a decimal can be used without care: `int()` of 1E+999999 takes minutes."""
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, str) or max(len(digits), abs(exponent)) <= _MOST_DIGITS


_TAGS: dict[str, Callable[[Any], Any]] = {
    "bytes": _bytes,
    "int": lambda value: int(value, 16),
    "complex": lambda value: complex(*value),
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "map": dict,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": lambda value: datetime.timedelta(*value),
    "decimal": _decimal,
}


def _untag(found: dict[str, Any], restore: Callable[[dict[str, Any]], Any]) -> Any:
    tag = found.get("$")
    if tag is None:
        if "$" in found:
            raise ValueError("a tag that is null")
        return found
    if tag == "result":
        return restore(found)
    return _TAGS[tag](found["v"])


def ancestors(error: BaseException) -> Iterator[str]:
    """Name the built-in classes that an exception's class derives from, the nearest first."""
    for base in type(error).__mro__:
        if base.__module__ == "builtins" and base not in (object, BaseException, Exception):
            yield base.__name__
