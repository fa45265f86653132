"""Stubs for the parent's functions, their results and their errors."""

from __future__ import annotations

import builtins
import copy
import inspect
from collections.abc import Callable
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them


class Result(dict[str, Any]):
    """A sub-agent's result: a mapping here; in a call, the parent gets its original object."""

    _handle: str
    _text: str
    _original: dict[str, Any]

    @classmethod
    def make(cls, tagged: dict[str, Any]) -> Result:
        """Create a result from its `result` tag.

        Raises:
            ValueError: the tag is malformed.
        """
        content, handle, text = tagged.get("d"), tagged.get("h"), tagged.get("s")
        if not (isinstance(content, dict) and isinstance(handle, str) and isinstance(text, str)):
            raise ValueError("a malformed result")
        made = cls(content)
        made._handle, made._text, made._original = handle, text, dict(content)
        return made

    def __str__(self) -> str:
        return self._text if self._unchanged() else dict.__repr__(self)

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self:
            return self[name]
        known = ", ".join(map(str, self)) or "no attributes"
        raise AttributeError(f"the result has no {name!r}; it has {known}")

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __copy__(self) -> Result:
        made = type(self)(self)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        made = self.__copy__()
        made.update(copy.deepcopy(dict(self), memo))
        return made

    def _unchanged(self) -> bool:
        return dict(self) == self._original


def handle_of(value: Any) -> str | None:
    """Return the handle of an unchanged `Result`, else None."""
    if type(value) is Result and value._unchanged():
        return value._handle
    return None


def tag_result(value: Any) -> dict[str, Any] | None:
    """Return the tagged form of an unchanged `Result`, else None."""
    handle = handle_of(value)
    return None if handle is None else {"$": "result", "h": handle}


class _Printed:
    """A default or annotation of the parent's function, of which only the `repr` is known."""

    def __init__(self, text: str):
        self._text = text

    def __repr__(self) -> str:
        return self._text


def make_stub(
    name: str, described: dict[str, Any], call: Callable[[str, Any, Any], Any]
) -> Callable[..., Any]:
    """Create the function that calls a function in the parent.

    Args:
        name: its name in the code.
        described: from `describe_function` in the parent: `doc`, and `params` or None.
        call: makes the call; takes name, args and kwargs.

    A function with the name of a built-in class leaves calls with one value to it if it needs more
    than one itself: `type(x)`.
    """
    shadowed: Any = getattr(builtins, name, None)
    required = [p for p in described["params"] or () if p[2] is None]
    if not isinstance(shadowed, type) or len(required) < 2:
        shadowed = None

    def stub(*args: Any, **kwargs: Any) -> Any:
        if shadowed is not None and len(args) == 1 and not kwargs:
            return shadowed(*args)
        return call(name, args, kwargs)

    stub.__name__ = stub.__qualname__ = name
    stub.__module__ = "__main__"
    stub.__doc__ = described["doc"]
    if described["params"] is not None:
        params = [_parameter(*one) for one in described["params"]]
        signature = inspect.Signature(
            params, return_annotation=_printed(described["returns"], inspect.Signature.empty)
        )
        stub.__signature__ = signature  # type: ignore[attr-defined]
    return stub


def _parameter(
    name: str, kind: int, default: str | None, annotation: str | None
) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    return inspect.Parameter(
        name,
        _KINDS[kind],
        default=_printed(default, empty),
        annotation=_printed(annotation, empty),
    )


_KINDS = tuple(inspect._ParameterKind)


def _printed(text: str | None, empty: Any) -> Any:
    return empty if text is None else _Printed(text)


class _SameText:
    """Gives an error the same `str()` as in the parent."""

    _text: str

    def __str__(self) -> str:
        return self._text


def make_error(described: dict[str, Any]) -> Exception:
    """Recreate the exception that a function raised in the parent.

    Args:
        described: `type` (its name), `bases` (names of its built-in base classes, the nearest
            first, including itself if it is built in), `args` (or None), `text` (its `str()`).
    """
    name, text = str(described["type"]), str(described["text"])
    bases = [base for base in map(_builtin_error, described["bases"]) if base is not None]
    if bases and bases[0].__name__ == name:
        return _of_type(bases[0], described["args"], text)
    for chosen in ((_SameText, RuntimeError, *bases[:1]), (_SameText, RuntimeError)):
        try:
            made: Any = type(name, chosen, {"__module__": "__main__"})
            error = made(text)
        except TypeError:  # the bases have different layouts, or require other arguments
            continue
        error._text = text
        if described["args"] is not None:
            error.args = tuple(described["args"])
        return error  # type: ignore[no-any-return]
    return RuntimeError(f"{name}: {text}")


def _builtin_error(name: str) -> type[Exception] | None:
    found = getattr(builtins, name, None)
    if name == "ExceptionGroup":  # requires the exceptions of the group
        return None
    if isinstance(found, type) and issubclass(found, Exception):
        return found
    return None


def _of_type(kind: type[Exception], args: Any, text: str) -> Exception:
    for given in (args, (text,)):
        if isinstance(given, (list, tuple)):
            try:
                error = kind(*given)
            except TypeError:
                continue
            if str(error) == text:
                return error
    made: Any = type(kind.__name__, (_SameText, kind), {"__module__": "builtins"})
    error = made.__new__(made, text)
    error._text = text
    return error  # type: ignore[no-any-return]
