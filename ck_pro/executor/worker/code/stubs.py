"""Stubs for the parent's functions, their results and their errors."""

from __future__ import annotations

import builtins
import copy
import inspect
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

TOOLS = "tools"


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
        described: from `describe_functions` in the parent: `doc`, and `params` or None.
        call: makes the call; takes name, args and kwargs.
    """

    def stub(*args: Any, **kwargs: Any) -> Any:
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
    shadowed = getattr(builtins, name, None)
    if isinstance(shadowed, type):
        required = [p for p in described["params"] or () if p[2] is None]
        return ClassFunction(stub, shadowed, takes_one=len(required) < 2)
    return stub


class ClassFunction:
    """A function with the name of a built-in class; it also works as that class.

    It does in `isinstance(x, type)`, `class Meta(type)`, annotations, attributes, comparisons, and
    in a call with one value, `type(x)`, unless the function itself takes one.

    Args:
        function: the function.
        shadowed: the class.
        takes_one: whether the function can be called with one value.
    """

    def __init__(self, function: Any, shadowed: type, takes_one: bool):
        self.__dict__.update(vars(function))
        self.__name__ = self.__qualname__ = function.__name__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self._function, self._shadowed, self._takes_one = function, shadowed, takes_one

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self._shadowed is type and len(args) == 3 and isinstance(args[1], tuple)
        if made or (len(args) == 1 and not kwargs and not self._takes_one):
            return self._shadowed(*args, **kwargs)
        return self._function(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._shadowed)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._shadowed)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._shadowed,)

    def __getattr__(self, name: str) -> Any:
        if name == "_shadowed":  # a copy without attributes
            raise AttributeError(name)
        return getattr(self._shadowed, name)

    def __reduce__(self) -> str:
        return str(self.__name__)

    def __getitem__(self, item: Any) -> Any:
        return self._shadowed[item]  # type: ignore[index]

    def __or__(self, other: Any) -> Any:
        return self._shadowed | other

    def __ror__(self, other: Any) -> Any:
        return other | self._shadowed

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._shadowed

    def __hash__(self) -> int:
        return hash(self._shadowed)

    def __repr__(self) -> str:
        return f"<function {self.__name__}, and {self._shadowed!r}>"


class ToolsModule(ModuleType):
    """The module `tools`, for code that imports the functions: `from tools import click`.

    Args:
        stubs: the functions by name.
    """

    def __init__(self, stubs: Mapping[str, Any]):
        super().__init__(TOOLS, "The functions that this code can call.")
        self._stubs = stubs

    @property
    def __all__(self) -> list[str]:
        return list(self._stubs)

    def __getattr__(self, name: str) -> Any:
        if name in self._stubs:
            return self._stubs[name]
        raise AttributeError(f"there is no function {name!r}; known are: {', '.join(self._stubs)}")


class ToolsFinder:
    """Finds the module `tools` if there is no other of that name; the last of `sys.meta_path`.

    Args:
        stubs: the functions by name.
    """

    def __init__(self, stubs: Mapping[str, Any]):
        self._stubs = stubs

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        return ModuleSpec(name, self) if name == TOOLS else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """See `importlib.abc.Loader`."""
        return ToolsModule(self._stubs)

    def exec_module(self, module: ModuleType) -> None:
        """See `importlib.abc.Loader`."""


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
