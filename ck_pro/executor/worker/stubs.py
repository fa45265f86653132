"""The parent's functions as the code sees them, and what they give back."""

from __future__ import annotations

import builtins
import copy
import inspect
from collections.abc import Callable
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them


class Result(dict[str, Any]):
    """What a sub-agent gave back: a mapping here, the very object again when it goes back."""

    _handle: str
    _text: str
    _as_sent: dict[str, Any]

    @classmethod
    def make(cls, tagged: dict[str, Any]) -> Result:
        """Build it from its `result` tag.

        Raises:
            ValueError: the tag is not one.
        """
        content, handle, text = tagged.get("d"), tagged.get("h"), tagged.get("s")
        if not (isinstance(content, dict) and isinstance(handle, str) and isinstance(text, str)):
            raise ValueError("a result that is none")
        made = cls(content)
        made._handle, made._text, made._as_sent = handle, text, dict(content)
        return made

    def __str__(self) -> str:
        return self._text if self._unchanged() else dict.__repr__(self)

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self:
            return self[name]
        raise AttributeError(f"no {name!r} here; it has {', '.join(map(str, self)) or 'nothing'}")

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
        return dict(self) == self._as_sent


def handle_of(value: Any) -> str | None:
    """Give the handle of a `Result` that is as it came, else None."""
    if type(value) is Result and value._unchanged():
        return value._handle
    return None


def tag_result(value: Any) -> dict[str, Any] | None:
    """Tag a `Result` on its way back to the parent."""
    handle = handle_of(value)
    return None if handle is None else {"$": "result", "h": handle}


class _Shown:
    """Something of the parent's that is only shown here: a default, an annotation."""

    def __init__(self, text: str):
        self._text = text

    def __repr__(self) -> str:
        return self._text


def make_stub(
    name: str, described: dict[str, Any], call: Callable[[str, Any, Any], Any]
) -> Callable[..., Any]:
    """Make the function that stands for one of the parent's.

    Args:
        name: its name in the code.
        described: from `describe_function` in the parent: `doc`, and `params` or None.
        call: does the call: name, args, kwargs.
    """

    def stub(*args: Any, **kwargs: Any) -> Any:
        return call(name, args, kwargs)

    stub.__name__ = stub.__qualname__ = name
    stub.__module__ = "__main__"
    stub.__doc__ = described["doc"]
    if described["params"] is not None:
        params = [_parameter(*one) for one in described["params"]]
        signature = inspect.Signature(
            params, return_annotation=_shown(described["returns"], inspect.Signature.empty)
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
        default=_shown(default, empty),
        annotation=_shown(annotation, empty),
    )


_KINDS = tuple(inspect._ParameterKind)


def _shown(text: str | None, empty: Any) -> Any:
    return empty if text is None else _Shown(text)


class _AsSaid:
    """Makes `str(error)` what it was in the parent."""

    _said: str

    def __str__(self) -> str:
        return self._said


def make_error(described: dict[str, Any]) -> Exception:
    """Make the exception that a function raised in the parent.

    Args:
        described: `type` (its name), `bases` (the built-in classes it derives from, the nearest
            first; its own name first if it is built in), `args` (or None), `text` (its `str()`).
    """
    name, text = str(described["type"]), str(described["text"])
    bases = [base for base in map(_builtin_error, described["bases"]) if base is not None]
    if bases and bases[0].__name__ == name:
        return _of_type(bases[0], described["args"], text)
    for chosen in ((_AsSaid, RuntimeError, *bases[:1]), (_AsSaid, RuntimeError)):
        try:
            made: Any = type(name, chosen, {"__module__": "__main__"})
            error = made(text)
        except TypeError:  # the layouts of the two bases differ, or it wants other arguments
            continue
        error._said = text
        if described["args"] is not None:
            error.args = tuple(described["args"])
        return error  # type: ignore[no-any-return]
    return RuntimeError(f"{name}: {text}")


def _builtin_error(name: str) -> type[Exception] | None:
    found = getattr(builtins, name, None)
    if name == "ExceptionGroup":  # cannot be made without the exceptions that were in it
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
    said: Any = type(kind.__name__, (_AsSaid, kind), {"__module__": "builtins"})
    error = said.__new__(said, text)
    error._said = text
    return error  # type: ignore[no-any-return]
