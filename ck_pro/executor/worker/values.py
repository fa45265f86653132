"""Values that cross the socket, as JSON.

JSON lacks some Python types. Such a value becomes an object `{"$": tag, "v": value}`. Tags:

- `bytes` (base64), `int` (beyond 64 bits, in hexadecimal), `complex`, `decimal` (up to 10,000
  digits), `date`, `time` and `datetime` (ISO 8601), `timedelta`;
- `tuple`, `set`, `frozenset`, `map` (a dict whose keys are not all text, or include "$");
- `result` (an object in the parent, by its handle).

A subclass becomes its base type. Ranges, queues and views of dicts become lists. Every other object
becomes its `str()`.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import collections
import collections.abc
import datetime
from collections.abc import Callable, Iterator
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_DEPTH = 100
_MAX_ITEMS = 1 << 20
_MAX_DIGITS = 10_000
_PLAIN = frozenset({str, bool, float, type(None)})

Special = Callable[[Any], "dict[str, Any] | None"]
"""Returns the tagged form of an object that only one side knows, or None."""


def encode(value: Any, special: Special) -> Any:
    """Turn any value into JSON data."""
    return _encode(value, special, set())


def _encode(value: Any, special: Special, inside: set[int]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return _integer(value)
    if kind in _CONTAINERS:
        if id(value) in inside or len(inside) > MAX_DEPTH:
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
        return {"$": "decimal", "v": str(value)} if _is_small(value) else str(value)
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
"""Conversions of subclasses, such as `IntEnum`, `OrderedDict` and named tuples."""


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _items(value: Any) -> Any:
    return list(value) if len(value) <= _MAX_ITEMS else str(value)


def _decimal(value: Any) -> Any:
    import decimal

    if not isinstance(value, str) or len(value) > _MAX_DIGITS + 40:
        raise ValueError("a decimal number with too many digits")
    made = decimal.Decimal(value)
    if not _is_small(made):
        raise ValueError("a decimal number with too many digits")
    return made


def _is_small(number: Any) -> bool:
    """Return whether a decimal is safe to use: `int()` of 1E+999999 takes minutes."""
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, str) or max(len(digits), abs(exponent)) <= _MAX_DIGITS


DECODERS: dict[str, Callable[[Any], Any]] = {
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
"""Tag -> function that restores the value. The tag `result` is not among them."""


def ancestors(error: BaseException) -> Iterator[str]:
    """Yield the names of an exception's built-in base classes, the nearest first."""
    for base in type(error).__mro__:
        if base.__module__ == "builtins" and base not in (object, BaseException, Exception):
            yield base.__name__
