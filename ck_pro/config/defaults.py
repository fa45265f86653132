"""Copy default values, so that objects do not share them."""

from __future__ import annotations

import copy
import types
from typing import Any

_ATOMIC = frozenset({str, int, float, bool, bytes, type(None), types.FunctionType})


def copy_default(value: Any, by_parts: type, made: dict[int, Any] | None = None) -> Any:
    """Copy a default value deeply.

    Parts that cannot be copied, such as a lock or a connection, stay shared: back ends, approvers.
    For plain data and configurable objects this is several times as fast as `copy.deepcopy`,
    which matters because an agent's class makes many objects.

    Args:
        value: the default.
        by_parts: copy objects of this class attribute by attribute, unless they define
            `__deepcopy__`.
        made: copies so far, by id of the original.
    """
    kind = type(value)
    if kind in _ATOMIC:
        return value
    made = {} if made is None else made
    if id(value) in made:
        return made[id(value)]
    out: Any
    if kind is list:
        out = made[id(value)] = []
        out.extend(copy_default(v, by_parts, made) for v in value)
    elif kind is dict:
        out = made[id(value)] = {}
        out.update((k, copy_default(v, by_parts, made)) for k, v in value.items())
    elif isinstance(value, by_parts) and not hasattr(kind, "__deepcopy__"):
        out = made[id(value)] = object.__new__(kind)
        vars(out).update((n, copy_default(v, by_parts, made)) for n, v in vars(value).items())
    else:
        return _copied(value, by_parts, made)
    return out


def _copied(value: Any, by_parts: type, made: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value)
    except (TypeError, copy.Error):
        if type(value) is tuple:
            return tuple(copy_default(v, by_parts, made) for v in value)
        return value
