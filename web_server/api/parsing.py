"""Parse request bodies into wire types. Errors name the field, its value and the valid form."""

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
_EXPECTED = {
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
"""The valid form by pydantic's type of error; its context provides the values in braces."""

W = TypeVar("W", bound=Wire)


def parse(model: type[W], raw: bytes) -> W:
    """Parse the body of a request.

    Args:
        model: the wire type.
        raw: the body; an empty body is an empty object.

    Raises:
        BadRequest: the body is not a JSON object, or a field has a wrong type.
    """
    body = _body(raw)
    try:
        return model.model_validate(body)
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadRequest(_message(first)) from None


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


def unknown_fields(model: type[Wire], raw: bytes) -> str:
    """Return a message about unknown fields, which were ignored; empty without any.

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


def _message(error: ErrorDetails) -> str:
    """Return one line: the field, its valid form, its value."""
    # The location of a union type contains the name of the type, which is not part of the wire.
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
    expected = _EXPECTED.get(kind)
    if expected is None:
        return f"{where}: {error['msg']}, not {shown(error['input'])}"
    return f"{where} must be {expected.format(**context)}, not {shown(error['input'])}"


def shown(value: object) -> str:
    """Return a value of a request as short JSON for a message."""
    if isinstance(value, str):
        return json.dumps(_cut(value), ensure_ascii=False)
    if isinstance(value, list | dict) and len(str(value)) > _SHOWN:
        return "a list" if isinstance(value, list) else "an object"
    return one_line(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    plain = one_line(text[: 2 * _SHOWN])
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 3] + "..."
