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
import itertools
import json
import os
import re
import select
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_FRAME = 32 * 1024 * 1024
"""Bytes of a frame at most, in either direction."""

MAX_DECODED = 128 * 1024 * 1024
"""Bytes that all calls in progress of one worker may take in the parent, once decoded."""

MAX_CALLS = 64
"""Calls of one worker in progress at once; in the worker, further ones wait."""

MAX_VALUES = 500_000
"""Values in one frame from a worker."""

MAX_HASHED = 1000
"""Values other than text in the sets and keys of one message from a worker."""

_HEAD = struct.Struct(">I")
_CALL = re.compile(rb'\["(?:thread_)?call",(\d{1,15}),(\d{1,15}),"')
_STRING = re.compile(rb'"[^"]*"')
_VALUE_BYTES = 100  # of an empty dict in a list, about
_LONGEST_NUMBER = 40
_DEEPEST = 100
_DEEPEST_FRAME = 3 * _DEEPEST + 10  # a tagged value is an object around a list
_STEPS = {91: 1, 123: 1, 93: -1, 125: -1}
_NOT_BRACKETS = bytes(set(range(256)) - set(_STEPS))
_HASHED = frozenset({"set", "frozenset", "map"})
_UNREADABLE = (
    ValueError, TypeError, RecursionError, ArithmeticError, LookupError, AttributeError,
    MemoryError,
)  # fmt: skip
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
        bounds: what a message may cost; None: whatever it does, for a sender that is trusted.
    """

    def __init__(
        self,
        restore: Callable[[dict[str, Any]], Any],
        limit: int = MAX_FRAME,
        bounds: Bounds | None = None,
    ):
        self._buffer = bytearray()
        self._at = 0  # where the next frame begins
        self._limit = limit
        self._restore = restore
        self._hashed = 0  # values of the current message that were hashed
        self._bounds = bounds
        decoder = json.JSONDecoder(
            object_hook=self._untag, parse_int=_parse_int, parse_float=_parse_float
        )
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def take(self) -> Message | None:
        """Give the next whole message, or None.

        A call that is beyond the bounds comes as `["refused", step, id, why]`, without its content.

        Raises:
            WireError: the next bytes are not a frame. Nothing after that can be trusted.
        """
        buffer, begin = self._buffer, self._at + 4
        if len(buffer) < begin:
            return None
        (length,) = _HEAD.unpack_from(buffer, self._at)
        if length > self._limit:
            raise WireError(f"a frame of {length} bytes (at most {self._limit})")
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
                raise WireError(f"a frame that cannot be accepted: {error}") from error
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
        return _TAGS[tag](value)

    def _check_hashed(self, values: Any) -> None:
        # other values than text and bytes could be chosen so that their hashes collide
        waiting = [values]
        while waiting:
            for one in waiting.pop():
                kind = type(one)
                if kind is str or kind is bytes or kind is frozenset:  # that has been counted
                    continue
                if kind is tuple:
                    waiting.append(one)
                elif kind is int:
                    self._hashed += one.bit_length() >> 6
                elif kind.__name__ == "Decimal":
                    self._hashed += len(str(one)) >> 4
                self._hashed += 1
                if self._hashed > MAX_HASHED:
                    raise TooLarge(
                        f"sets, and dicts whose keys are not text, have more than {MAX_HASHED:,} "
                        "values, too many to hand over: pass a list"
                    )


class Message(list[Any]):
    """A message. While it lives, its cost counts against the bounds of its sender."""

    bounds: Bounds | None = None
    cost = 0

    def __del__(self) -> None:
        if self.bounds is not None:
            self.bounds.give_back(self.cost)


class Bounds:
    """What the messages of one sender may cost here while they are in use, all together.

    Args:
        most: bytes that they take once they are decoded.
    """

    def __init__(self, most: int = MAX_DECODED):
        self._most = most
        self._used = 0
        self._given_back: collections.deque[int] = collections.deque()

    def charge(self, cost: int) -> None:
        """Count a message.

        Raises:
            TooLarge: it does not fit beside the others.
        """
        while self._given_back:
            self._used -= self._given_back.popleft()
        if self._used + cost > self._most:
            raise TooLarge(
                f"the calls in progress have too much data: {self._used + cost:,} bytes "
                f"(at most {self._most:,}). Pass less, or write it to a file"
            )
        self._used += cost

    def give_back(self, cost: int) -> None:
        """Count a message no more. Without a lock: garbage collection may call it anywhere."""
        self._given_back.append(cost)


def cost_of(body: bytes) -> int:
    """Estimate the bytes that a frame's JSON takes once it is decoded, without decoding it.

    Raises:
        TooLarge: it has too many values, or they are nested too deeply.
    """
    opened = body.count(b"[") + body.count(b"{")
    values = opened + body.count(b",") + body.count(b":")
    if opened > _DEEPEST_FRAME or values > MAX_VALUES:
        bare = _without_strings(body)
        opened = bare.count(b"[") + bare.count(b"{")
        values = opened + bare.count(b",") + bare.count(b":")
        if values > MAX_VALUES:
            raise TooLarge(
                f"{values:,} values are too many to hand over (at most {MAX_VALUES:,}). "
                "Pass fewer, or write them to a file"
            )
        if opened > _DEEPEST_FRAME:
            steps = (_STEPS[one] for one in bare.translate(None, _NOT_BRACKETS))
            if max(itertools.accumulate(steps)) > _DEEPEST_FRAME:
                raise TooLarge(f"lists in lists are too deep to hand over (at most {_DEEPEST})")
    escaped = body.count(b"\\u")  # a text that has one takes up to four bytes for each character
    size = 4 * (len(body) - 5 * escaped) if escaped else len(body)
    return size + _VALUE_BYTES * values


def _without_strings(body: bytes) -> bytes:
    for escaped in (b"\\\\", b'\\"'):
        if escaped in body:
            body = body.replace(escaped, b"")
    if body.count(b'"') > 4 * MAX_VALUES:
        raise TooLarge("too many texts to hand over")
    return _STRING.sub(b"", body)


def _parse_int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:  # larger ones are sent in hexadecimal
        raise ValueError("a number with too many digits")
    return int(text)


def _parse_float(text: str) -> float:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number with too many digits")
    return float(text)


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

    if not isinstance(value, str) or len(value) > _MOST_DIGITS + 40:
        raise ValueError("a decimal number with too many digits")
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


def ancestors(error: BaseException) -> Iterator[str]:
    """Name the built-in classes that an exception's class derives from, the nearest first."""
    for base in type(error).__mro__:
        if base.__module__ == "builtins" and base not in (object, BaseException, Exception):
            yield base.__name__
