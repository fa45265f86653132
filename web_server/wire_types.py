"""Tolerant field types of the wire: null means the default, a number may be a string, and so on."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

MAX_TEXT = 1_000_000
"""Limit for the text of a request field, in characters."""


def _text(value: Any) -> Any:
    """Convert numbers and booleans to strings, and null to the empty string."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str) and not value.isascii():
        # A lone surrogate is valid JSON, but cannot be encoded.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _flag(value: Any) -> Any:
    """Convert null and the empty string to false."""
    return False if value is None or value == "" else value


def _flag_on(value: Any) -> Any:
    """Convert null and the empty string to the default, true."""
    return True if value is None or value == "" else value


def mapping(value: Any) -> Any:
    """Parse a string as a JSON object; null and the empty string become None."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"must be a JSON object ({error})") from error
        except RecursionError:
            raise ValueError("must be a JSON object with less nesting") from None
    return value or None


def _lower(default: str) -> Any:
    def convert(value: Any) -> Any:
        if value is None or value == "":
            return default
        return value.lower() if isinstance(value, str) else value

    return BeforeValidator(convert)


def items(value: Any) -> Any:
    """Convert a single item to a list, and null to the empty list."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list | tuple) else [value]


Text = Annotated[str, BeforeValidator(_text), Field(max_length=MAX_TEXT)]
FileContent = Annotated[str, BeforeValidator(_text), Field(max_length=100_000_000)]
Flag = Annotated[bool, BeforeValidator(_flag)]
FlagOn = Annotated[bool, BeforeValidator(_flag_on)]
Mapping = Annotated[dict[str, Any] | None, BeforeValidator(mapping)]
_NO_NUMBER = BeforeValidator(lambda v: None if v == "" else v)
Number = Annotated[float | None, _NO_NUMBER]
LeaseSeconds = Annotated[Annotated[float, Field(gt=0, le=7 * 86400)] | None, _NO_NUMBER]
HoldTime = Annotated[Annotated[float, Field(ge=0, le=60_000)] | None, _NO_NUMBER]
ImageSide = Annotated[Annotated[int, Field(ge=64, le=4096)] | None, _NO_NUMBER]
Milliseconds = Annotated[Annotated[float, Field(ge=0, le=300_000)] | None, _NO_NUMBER]
ObservationNumber = Annotated[Annotated[int, Field(ge=0)] | None, _NO_NUMBER]
TextList = Annotated[list[Text], BeforeValidator(items), Field(max_length=1000)]
Screenshot = Annotated[Literal["none", "plain", "boxed", "both"], _lower("both")]
ImageFormat = Annotated[Literal["png", "jpeg"], _lower("png")]
Scope = Annotated[Literal["viewport", "page"], _lower("viewport")]
Button = Annotated[Literal["left", "right", "middle"], _lower("left")]
