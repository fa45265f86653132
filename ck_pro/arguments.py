"""The arguments of functions that models call: their JSON schema, and checked values."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ck_pro.config.initializable import type_adapter
from ck_pro.exceptions import ConfigError, ToolError

_PLAIN_TYPES = (str, int, float, bool)
_SHOWN = 80
"""Characters of a wrong value in a message."""

_T = TypeVar("_T")


def _once_per_function(
    compute: Callable[[Callable[..., Any]], _T],
) -> Callable[[Callable[..., Any]], _T]:
    """Cache the result for each Python function as long as it exists: every prompt shows it.

    All bound methods of one function share a result. Exceptions are not cached.
    """
    results: WeakKeyDictionary[FunctionType, dict[bool, _T]] = WeakKeyDictionary()

    @functools.wraps(compute)
    def cached(function: Callable[..., Any]) -> _T:
        bound = isinstance(function, MethodType)
        plain = getattr(function, "__func__", None) if bound else function
        if not isinstance(plain, FunctionType):
            return compute(function)
        found = results.setdefault(plain, {})
        if bound not in found:
            found[bound] = compute(function)
        return found[bound]

    return cached


def parameters_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema (an object) of a function's arguments, from signature and type hints.

    `Annotated[int, Field(ge=1, description="...")]`, literals, enums and pydantic models count.

    Raises:
        ConfigError: the function is a built-in without a known signature.
    """
    hints = type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for name, p in _signature(function).parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        properties[name] = dict(_schema(hints.get(name)))
        definitions.update(properties[name].pop("$defs", {}))
        if p.default is p.empty:
            required.append(name)
        elif p.default is None or isinstance(p.default, _PLAIN_TYPES):
            properties[name]["default"] = p.default
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "$defs": definitions} if definitions else schema


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints; none if any cannot be resolved at run time."""
    try:
        return dict(_resolved_hints(function))
    except (NameError, AttributeError, TypeError):  # a name for type checkers; not a function
        return {}


@_once_per_function
def _resolved_hints(function: Callable[..., Any]) -> dict[str, Any]:
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    return typing.get_type_hints(function, include_extras=True)


def signature_text(function: Callable[..., Any], *, returns: bool = True) -> str:
    """Return a function's signature as source text: annotations without quotes.

    Args:
        function: any callable.
        returns: whether to include the return annotation.
    """
    try:
        texts = _resolved_texts(function)
    except (NameError, AttributeError):  # only type checkers can resolve it
        texts = _signature_texts(inspect.signature(function))
    return texts[returns]


@_once_per_function
def call_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature."""
    return inspect.signature(function)


@_once_per_function
def resolved_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature with its annotations as types."""
    return inspect.signature(function, eval_str=True)


@_once_per_function
def _resolved_texts(function: Callable[..., Any]) -> tuple[str, str]:
    return _signature_texts(resolved_signature(function))


def _signature_texts(signature: inspect.Signature) -> tuple[str, str]:
    """Return a signature as text, without and with the return annotation."""
    parameters = signature.parameters.values()
    shown = [p.replace(annotation=bare_annotation(p.annotation)) for p in parameters]
    result = bare_annotation(signature.return_annotation)
    bare = signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)
    names = {
        f"{one.__module__}.{one.__qualname__}": one.__name__
        for p in parameters
        for one in _classes_in(p.annotation)
    }
    texts = str(bare), str(bare.replace(return_annotation=result))
    for qualified, name in names.items():
        texts = texts[0].replace(qualified, name), texts[1].replace(qualified, name)
    return texts


def bare_annotation(annotation: Any) -> Any:
    """Return an annotation without the metadata of `Annotated`, for prompts."""
    if typing.get_origin(annotation) is typing.Annotated:
        return bare_annotation(typing.get_args(annotation)[0])
    return annotation


def shown_function(function: Callable[..., Any], *, returns: bool, short: bool) -> tuple[str, str]:
    """Return a function's signature as source text, and more about its parameters if not `short`.

    Args:
        function: any callable.
        returns: whether to include the return annotation.
        short: whether the second text is empty.
    """
    notes = "" if short else _described_parameters(function)
    return signature_text(function, returns=returns), notes


def _described_parameters(function: Callable[..., Any]) -> str:
    """Return one line for each parameter that has a description, limits or a model as its type.

    A signature in a prompt does not show these.
    """
    lines = []
    for name, annotation in type_hints(function).items():
        if name == "return":
            continue
        annotated = typing.get_origin(annotation) is typing.Annotated
        if not (annotated or _classes_in(annotation)):
            continue
        schema = dict(_schema(annotation))
        text = schema.pop("description", "") if annotated else ""
        facts = {k: v for k, v in schema.items() if k not in ("title", "default", "type")}
        if "properties" in facts or "$defs" in facts or "items" in facts:
            facts = {"type": schema.get("type"), **facts}
        limits = json.dumps(facts, ensure_ascii=False) if facts else ""
        lines.append(f"    {name}: {' '.join(t for t in (text, limits) if t)}")
    return "\n".join(["Args:", *lines]) if lines else ""


class ArgumentCheck:
    """Checks and converts the arguments of calls by the type hints of a function.

    Args:
        name: name of the function, for messages.
        function: the function.
    """

    def __init__(self, name: str, function: Callable[..., Any]):
        self._name, self._function = name, function

    @functools.cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        """The checks of the parameters, made for the first call: most functions are not called."""
        variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters = _signature(self._function).parameters.values()
        known = {p.name for p in parameters if p.kind not in variable}
        hints = {n: h for n, h in type_hints(self._function).items() if n in known}
        return {n: type_adapter(h) for n, h in hints.items() if _schema(h)}

    def __call__(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, converted to the types of the hints: a dict becomes a model.

        Raises:
            ToolError: a value does not match; the message names each argument and the signature.
        """
        checked, problems = dict(given), []
        for name, value in given.items():
            adapter = self._adapters.get(name)
            if adapter is None:
                continue
            try:
                converted = adapter.validate_python(value)
            except ValidationError as e:
                problems += [_problem(name, error) for error in e.errors(include_url=False)]
                continue
            if not (type(value) is int and type(converted) is float):  # an int is a float
                checked[name] = converted
        if problems:
            shown = f"{self._name}{signature_text(self._function, returns=False)}"
            raise ToolError(f"{'; '.join(problems)}. The signature is {shown}")
        return checked


def _problem(name: str, error: Any) -> str:
    """Return one line about one wrong value."""
    path = "".join(f"[{p!r}]" for p in error["loc"])
    value = repr(error["input"])
    value = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
    return f"argument '{name}'{path}: {error['msg']} (got {value})"


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return call_signature(function)
    except ValueError:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(
            f"tool '{name}' has no known signature: wrap it in a Python function"
        ) from None


def _schema(annotation: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; empty (anything) if JSON has no such type."""
    if annotation is None:
        return {}
    try:
        return copy.deepcopy(_cached_schema(annotation))
    except TypeError:  # an annotation that cannot be hashed
        return _new_schema(annotation)


def _new_schema(annotation: Any) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = _without_titles(TypeAdapter(annotation).json_schema())
        return schema
    except PydanticUserError:  # such as a data frame
        return {}


_cached_schema = functools.lru_cache(maxsize=1024)(_new_schema)


def _without_titles(schema: Any) -> Any:
    """Return a schema without its titles, which repeat the names of fields and types."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    titled = isinstance(schema.get("title"), str)  # else it is a field with this name
    return {k: _without_titles(v) for k, v in schema.items() if not (titled and k == "title")}


def _classes_in(annotation: Any) -> list[type]:
    """Return the classes in a type that are not Python's own: of `list[Order]`, `Order`."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        own = annotation.__module__.partition(".")[0] in sys.stdlib_module_names
        return [] if own and annotation.__module__ != "__main__" else [annotation]
    return [one for inner in typing.get_args(annotation) for one in _classes_in(inner)]
