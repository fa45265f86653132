"""Functions, their errors and objects, as plain data for a worker."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.executor.worker.values import ancestors, encode

Function = Callable[..., Any]
_MAX_TEXT = 100_000


def describe_error(error: BaseException) -> dict[str, Any]:
    """Describe an exception, so that the worker can recreate it."""
    name = type(error).__name__
    bases = ["Exception"] if type(error) is Exception else list(ancestors(error))
    if not isinstance(error, Exception):  # a SystemExit of a function must not end the code
        bases = []
    try:
        text = _text_of(error)
    except Exception:  # noqa: BLE001 - any `__str__` may raise
        text = name
    args = _plain_args(error) if len(text) <= _MAX_TEXT else None
    return {"type": name, "bases": bases, "args": args, "text": text[:_MAX_TEXT]}


def _text_of(error: BaseException) -> str:
    """Return the `str()` of an error; for an exception group, with its errors (Python 3.11)."""
    inner = getattr(error, "exceptions", None)
    if not hasattr(error, "split") or not isinstance(inner, tuple):
        return str(error)
    parts = "; ".join(f"{type(one).__name__}: {_text_of(one)}" for one in inner)
    return f"{error}: {parts}"


def _plain_args(error: BaseException) -> list[Any] | None:
    args = list(error.args)
    if isinstance(error, OSError) and error.filename is not None:
        args = [error.errno, error.strerror, error.filename]
    if not all(arg is None or type(arg) in (str, int, float, bool) for arg in args):
        return None
    if sum(len(arg) for arg in args if type(arg) is str) > _MAX_TEXT:
        return None
    return [encode(arg, lambda _: None) for arg in args]


def with_declared_names(function: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by their declared names, if the function has `synonyms` for some.

    Two names of one parameter stay, so that the call fails.
    """
    synonyms: Mapping[str, str] = getattr(function, "synonyms", {})
    renamed = {synonyms.get(name, name): value for name, value in kwargs.items()}
    return renamed if len(renamed) == len(kwargs) else dict(kwargs)


def describe_functions(functions: Mapping[str, Function]) -> dict[str, dict[str, Any]]:
    """Describe functions by name: `doc`, `params` and `returns` as text."""
    return {name: _described(function) for name, function in functions.items()}


def _described(function: Function) -> dict[str, Any]:
    described: dict[str, Any] = {"doc": inspect.getdoc(function), "params": None, "returns": None}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return described
    empty = inspect.Parameter.empty
    described["params"] = [
        [
            one.name,
            int(one.kind),
            None if one.default is empty else repr(one.default),
            None if one.annotation is empty else _annotation(one.annotation),
        ]
        for one in signature.parameters.values()
    ]
    if signature.return_annotation is not empty:
        described["returns"] = _annotation(signature.return_annotation)
    return described


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


class Handles:
    """Objects with a method `to_worker`, by the handles that a worker has."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self._numbers = itertools.count(1)

    def tag(self, value: Any) -> dict[str, Any] | None:
        """Register an object and return its `result` tag; None if it lacks `to_worker`."""
        if not callable(getattr(type(value), "to_worker", None)):
            return None
        content = encode(dict(value.to_worker()), self.tag)
        handle = f"r{next(self._numbers)}"  # `next` is atomic, since any thread may be here
        self.objects[handle] = value
        return {"$": "result", "h": handle, "d": content, "s": str(value)}

    def restore(self, tagged: dict[str, Any]) -> Any:
        """Return the object of a `result` tag from the worker.

        Raises:
            KeyError: the handle does not exist.
        """
        return self.objects[tagged["h"]]
