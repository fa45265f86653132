"""A request's body as a wire type; what is wrong with it is told by field, value and remedy."""

from __future__ import annotations

import difflib
import json
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from web_server.contract import Wire
from web_server.errors import BadRequest
from web_server.view import one_line

_SHOWN = 60
_WANTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "dict_type": "a JSON object",
    "model_type": "a JSON object",
    "literal_error": "{expected}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "{le:g} or less",
}
"""What is wanted, by pydantic's type of error, in whose context the places in braces are."""

W = TypeVar("W", bound=Wire)


def parse(model: type[W], raw: bytes) -> W:
    """A request's body as a wire type.

    Args:
        model: the wire type.
        raw: the body; an empty one is an empty object.

    Raises:
        BadRequest: it is not JSON, not an object, or a field has the wrong type.
    """
    body = _body(raw)
    try:
        return model.model_validate(body)
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadRequest(_told(first)) from None


def _body(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON: send an object, {...}") from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise BadRequest(f"the body must be a JSON object, not {shown(body)}")
    return body


def ignored(model: type[Wire], raw: bytes) -> str:
    """Of a body with fields that its type does not know: that they were ignored; else empty.

    Args:
        model: the wire type.
        raw: a body that is a JSON object.
    """
    unknown = [name for name in _body(raw) if name not in model.model_fields]
    if not unknown:
        return ""
    names = {name.lower(): name for name in model.model_fields}
    for name in unknown:
        near = difflib.get_close_matches(name.lower(), names, 1, 0.75)
        if near:
            return f"the field '{_cut(name)}' is unknown and was ignored: use {names[near[0]]}"
    listed = ", ".join(f"'{_cut(name)}'" for name in unknown[:3])
    return f"unknown fields were ignored: {listed}"


def _told(error: ErrorDetails) -> str:
    """One line: which field, what it must be, what it is."""
    # A field that takes one of several types names the type as well, which is no part of the wire.
    parts = [str(part) for part in error["loc"] if part not in ("UploadFile", "str")]
    where = ".".join(parts) or "the body"
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return f"{where} is missing: {'.'.join(parts[:-1])} is {shown(error['input'])}"
    if kind in ("too_long", "string_too_long"):
        counted = "items" if isinstance(error["input"], list) else "characters"
        return f"{where} is too long: {context['max_length']:,} {counted} at most"
    if kind == "value_error":
        return f"{where}: {context['error']}, not {shown(error['input'])}"
    wanted = _WANTED.get(kind)
    if wanted is None:
        return f"{where}: {error['msg']}, not {shown(error['input'])}"
    return f"{where} must be {wanted.format(**context)}, not {shown(error['input'])}"


def shown(value: object) -> str:
    """A value of a request as JSON, cut to what fits into a message."""
    if isinstance(value, str):
        return json.dumps(_cut(value), ensure_ascii=False)
    if isinstance(value, list | dict) and len(str(value)) > _SHOWN:
        return "a list" if isinstance(value, list) else "an object"
    return one_line(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    plain = one_line(text[: 2 * _SHOWN])
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 3] + "..."
