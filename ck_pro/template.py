"""`TemplatedString`: prompt templates as functions or f-string-like text, in one registry.

Text templates allow names, attribute and item access, format specs and conversions, as f-strings
do. They allow no calls, no operators and no private attributes, and evaluate nothing:

>>> TemplatedString("Hello {user.name!r:>8} {items[0]} {table['a']:.2f} {{literal}}")
TemplatedString('text')
"""

from __future__ import annotations

import ast
import inspect
import string
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.exceptions import TemplateError

_REGISTRY: dict[str, TemplatedString] = {}


class TemplatedString:
    """A prompt template.

    Args:
        template: a function that returns the prompt (text, or a list of chat messages) and
            receives the values named in its signature; or a text in the form of an f-string.
        name: used in errors; defaults to the function's name.

    Raises:
        TemplateError: the text is malformed, or uses more than names, attributes and items.
    """

    def __init__(self, template: str | Callable[..., Any] | TemplatedString, name: str = ""):
        body: Any = template.template if isinstance(template, TemplatedString) else template
        self.template: str | Callable[..., Any] = body
        self.name: str = name or getattr(template, "name", "") or getattr(body, "__name__", "text")
        if isinstance(body, str):
            self._check(body)
        elif not callable(body):
            raise TemplateError(f"template '{self.name}': neither text nor a function")

    def format(self, **kwargs: Any) -> Any:
        """Return the prompt for these values.

        Raises:
            TemplateError: a value that the template uses is missing, or cannot be formatted.
        """
        if isinstance(self.template, str):
            return _Formatter(self.name).vformat(self.template, (), kwargs)
        signature = inspect.signature(self.template)
        if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            kwargs = {k: v for k, v in kwargs.items() if k in signature.parameters}
        try:
            bound = signature.bind(**kwargs)
        except TypeError as e:
            raise TemplateError(f"template '{self.name}': {e}") from None
        return self.template(*bound.args, **bound.kwargs)

    def __repr__(self) -> str:
        return f"TemplatedString({self.name!r})"

    def _check(self, text: str) -> None:
        formatter = _Formatter(self.name)
        try:
            for _, field, spec, conversion in formatter.parse(text):
                if conversion and conversion not in "rsa":
                    raise TemplateError(f"template '{self.name}': no conversion '!{conversion}'")
                if field is not None:
                    formatter.tree(field)
                    self._check(spec or "")
        except ValueError as e:
            raise TemplateError(f"template '{self.name}': {e}") from None


class _Formatter(string.Formatter):
    """`str.format` with the access rules of f-strings, without calls and private names."""

    def __init__(self, name: str):
        self.name = name

    def tree(self, field: str) -> ast.expr:
        try:
            tree = ast.parse(field.strip(), mode="eval").body
        except SyntaxError:
            raise self._error(f"'{{{field}}}' is not a name, attribute or item") from None
        self._permitted(tree, field)
        return tree

    def _permitted(self, node: ast.expr, field: str) -> None:
        match node:
            case ast.Name():
                return
            case ast.Attribute(value=inner, attr=attr) if not attr.startswith("_"):
                self._permitted(inner, field)
            case ast.Subscript(value=inner, slice=index):
                self._permitted(inner, field)
                if not _is_index(index):
                    self._permitted(index, field)
            case _:
                raise self._error(
                    f"'{{{field}}}' uses more than names, public attributes and items"
                )

    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        try:
            return self._value(self.tree(field_name), kwargs), field_name
        except (AttributeError, LookupError, TypeError) as e:
            raise self._error(f"cannot fill '{{{field_name}}}': {e}") from None

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.Name(id=name):
                if name not in values:
                    raise self._error(f"the value '{name}' is missing")
                return values[name]
            case ast.Attribute(value=inner, attr=attr):
                return getattr(self._value(inner, values), attr)
            case ast.Subscript(value=inner, slice=index):
                key = ast.literal_eval(index) if _is_index(index) else self._value(index, values)
                return self._value(inner, values)[key]
        raise self._error("malformed")  # unreachable after `_permitted`

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return format(value, format_spec)
        except (TypeError, ValueError) as e:
            raise self._error(f"cannot format {type(value).__name__}: {e}") from None

    def _error(self, message: str) -> TemplateError:
        return TemplateError(f"template '{self.name}': {message}")


def _is_index(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def register_template(
    name: str | Mapping[str, Any], template: str | Callable[..., Any] | None = None
) -> None:
    """Register a template, or a mapping of several, under its name.

    A later registration under the same name replaces it, so users can replace built-in prompts.
    """
    items = name if isinstance(name, Mapping) else {name: template}
    for key, value in items.items():
        if value is None:
            raise TemplateError(f"template '{key}': nothing to register")
        _REGISTRY[key] = TemplatedString(value, name=key)


class TemplateName(str):
    """Name of a registered template in an agent's `templates`: a text with a `format` method."""

    __slots__ = ()

    def format(self, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the prompt for these values; see `TemplatedString.format`."""
        return get_template(str(self)).format(**kwargs)


def template_names() -> list[str]:
    """Return the names of all registered templates, sorted."""
    return sorted(_REGISTRY)


def get_template(name: str | Callable[..., Any] | TemplatedString) -> TemplatedString:
    """Return the template with this name; a function or `TemplatedString` is used directly.

    Raises:
        TemplateError: no template with this name is registered.

    """
    if not isinstance(name, str):
        return TemplatedString(name)
    if name not in _REGISTRY:
        raise TemplateError(
            f"template '{name}' is not registered; known are: {', '.join(sorted(_REGISTRY))}"
        )
    return _REGISTRY[name]
