"""The names that the code has defined: described, and as plain data. Runs none of the code.

Only values of exact built-in types are read, because a method of the code's own class could run
code, block or raise.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_LINES, MAX_LINE = 60, 120
"""Maximum number and length of the lines of `describe_names`."""

MAX_VALUES = 64 * 1024
"""Maximum length of the JSON text of `plain_values`."""

_SHORT_TEXT = 40
_MAX_DEPTH, _MAX_PARTS = 20, 20_000  # of one value
_SHORT_BITS = 64
_COMPARED = 20  # items whose types are compared
_MAX_KEYS = 6
_SIZED = (list, tuple, set, frozenset, dict)
_ENCODE = json.JSONEncoder(allow_nan=False).encode
_KIND_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__


def describe_names(names: Mapping[Any, Any], skip: Mapping[str, Any]) -> list[str]:
    """Return one line for each variable, function and class, and one for all modules.

    Args:
        names: the global names of the code.
        skip: names with the values that the code did not define.
    """
    modules, lines = [], []
    for name, value in _defined(names, skip):
        if issubclass(type(value), ModuleType):
            modules.append(name)
        else:
            lines.append(_line(name, value)[:MAX_LINE])
    if len(lines) >= MAX_LINES:
        more = len(lines) - MAX_LINES + 2
        lines[:more] = [f"({more} earlier names omitted)"]
    if modules:
        lines.append(f"import {', '.join(modules)}"[:MAX_LINE])
    return lines


def plain_values(names: Mapping[Any, Any], skip: Mapping[str, Any]) -> str:
    """Return the variables that are plain data as a JSON object, in the order of definition.

    Sets and tuples become lists. Variables that would exceed `MAX_VALUES` are left out.

    Args:
        names, skip: as for `describe_names`.
    """
    pairs: list[str] = []
    size = 2
    for name, value in _defined(names, skip):
        try:
            pair = f"{_ENCODE(name)}:{_ENCODE(_plain(value, [_MAX_PARTS], 0))}"
        except (ValueError, RecursionError):
            continue
        if size + len(pair) < MAX_VALUES:
            pairs.append(pair)
            size += len(pair) + 1
    return "{" + ",".join(pairs) + "}"


def _plain(value: Any, left: list[int], depth: int) -> Any:
    """Return a value as plain JSON data.

    Args:
        left: the number of parts that the value may still have.
        depth: how many containers the value is in.

    Raises:
        ValueError: it has other types, or is too large.
    """
    kind = type(value)
    left[0] -= 1
    if left[0] < 0 or depth > _MAX_DEPTH:
        raise ValueError("too large")
    if value is None or kind in (bool, float) or (kind is int and _is_short(value)):
        return value
    if kind is str and len(value) <= MAX_VALUES:
        value.encode("utf-8")  # half of a surrogate pair raises a ValueError
        return value
    if kind is dict and all(type(key) is str for key in list(value)):
        return {key: _plain(one, left, depth + 1) for key, one in list(value.items())}
    if kind in (list, tuple, set, frozenset):
        return [_plain(one, left, depth + 1) for one in list(value)]
    raise ValueError("not plain data")


def _defined(names: Mapping[Any, Any], skip: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names that the code has defined, with their values."""
    for name, value in list(names.items()):
        if type(name) is str and name[:1] != "_" and value is not skip.get(name, names):
            yield name, value


def _line(name: str, value: Any) -> str:
    kind = type(value)
    if kind is FunctionType:
        return f"def {name}({', '.join(_parameters(value))})"
    if issubclass(kind, type):
        return f"class {name}"
    return f"{name}: {_description(value, kind)}"


def _parameters(function: FunctionType) -> list[str]:
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    named = list(code.co_varnames[:count])
    if code.co_flags & 4:
        named.append(f"*{code.co_varnames[count]}")
    if code.co_flags & 8:
        named.append(f"**{code.co_varnames[count + bool(code.co_flags & 4)]}")
    return named


def _description(value: Any, kind: type) -> str:
    """Return the type of a value, with its contents if they are short."""
    if value is None or kind in (bool, float) or (kind is int and _is_short(value)):
        return repr(value)
    if kind is str:
        short = len(value) <= _SHORT_TEXT
        return repr(value) if short else f"str of {len(value)} characters"
    if kind in _SIZED:
        return f"{_KIND_NAME(kind)} of {len(value)}{_items(value, kind)}"
    return _KIND_NAME(kind)


def _is_short(number: int) -> bool:
    return int.bit_length(number) <= _SHORT_BITS


def _items(value: Any, kind: type) -> str:
    """Return the type of a container's items if it is the same for all that are compared."""
    if kind is dict:
        return _keys(value)
    first = [item for item, _ in zip(value, range(_COMPARED))]  # noqa: B905
    kinds = {type(item) for item in first}
    if len(kinds) != 1:
        return ""
    (one,) = kinds
    return f" {_KIND_NAME(one)}{_keys(first[0]) if one is dict else ''}"


def _keys(value: dict[Any, Any]) -> str:
    keys = [key for key, _ in zip(value, range(_MAX_KEYS + 1))]  # noqa: B905
    if not keys or not all(type(key) is str and len(key) <= _SHORT_TEXT for key in keys):
        return ""
    shown = ", ".join(keys[:_MAX_KEYS])
    return f" ({shown}{', ...' if len(keys) > _MAX_KEYS else ''})"
