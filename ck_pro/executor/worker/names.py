"""Describe the names that the code has defined, without running any of the code.

Only values of exact built-in types are read, because a method of the code's own class could run
code, block or raise.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

MAX_LINES, MAX_LINE = 60, 120
"""Maximum number and length of the lines of `describe_names`."""

_SHORT_TEXT = 40
_SHORT_BITS = 64
_COMPARED = 20  # items whose types are compared
_MAX_KEYS = 6
_SIZED = (list, tuple, set, frozenset, dict)
_KIND_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__


def describe_names(names: Mapping[Any, Any], skip: Mapping[str, Any]) -> list[str]:
    """Return one line for each variable, function and class, and one for all modules.

    Args:
        names: the global names of the code.
        skip: names with the values that the code did not define.
    """
    modules, lines = [], []
    for name, value in list(names.items()):
        if type(name) is not str or name[:1] == "_" or value is skip.get(name, names):
            continue
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
