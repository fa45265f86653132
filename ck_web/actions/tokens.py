"""The parts of action strings: elements, texts, paths, points, numbers; read and written. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.exceptions import ParseError

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
"""Pattern of a decimal number."""
_POINT = re.compile(rf"[\[(]?\s*({NUMBER})\s*[, ]\s*({NUMBER})\s*[\])]?(?![0-9.])(.*)", re.DOTALL)
_BRACKETED_ID = re.compile(r"\s*\[\s*([0-9]+)\s*\]\s*(.*)", re.DOTALL)
_BRACKETED_NAME = re.compile(
    r"""\s*\[\s*(?:([A-Za-z]+)\s+)?(?:'(.*?)'|("(?:[^"\\]|\\.)*"))\s*\](?:\s?)(.*)""", re.DOTALL
)
_TARGET = re.compile(r"\s*(?:\[\s*([0-9]+)\s*\]|([0-9]+)(?![0-9A-Za-z]))(?:\s?)(.*)", re.DOTALL)
_ENTER_MARK = re.compile(r"\[(no)?enter\]\Z", re.IGNORECASE)


# --- reading -----------------------------------------------------------------------------------


def target_of(name: str, rest: str) -> tuple[str, str]:
    """Return the element, and the text after it and one separating space.

    An element is its id, or role and name: `7`, `button 'Save'`, `'Save'`.
    """
    if named := _name_of(rest):
        return named
    found = _TARGET.fullmatch(rest)
    if found is None:
        raise ParseError(
            f"{name} needs an element: {name} [3] or {name} [button 'Save']; got {quote(rest)}"
        )
    return plain_id(found[1] or found[2]), found[3]


def optional_target_of(rest: str) -> tuple[str, str]:
    """Return the element in brackets (see `target_of`), or "", and the rest.

    Two numbers in brackets are a point, not an id.
    """
    if named := _name_of(rest):
        return named[0], named[1].lstrip()
    found = _BRACKETED_ID.fullmatch(rest)
    return (plain_id(found[1]), found[2]) if found else ("", rest)


def _name_of(rest: str) -> tuple[str, str] | None:
    """Return role and name in brackets as one text, and the rest; None for other texts."""
    found = _BRACKETED_NAME.fullmatch(rest)
    if found is None:
        return None
    name = found[2] if found[3] is None else json_of(found[3])
    return _named(found[1] or "", str(name)), found[4]


def _named(role: str, name: str) -> str:
    return f"{role} '{name}'".lstrip()


def plain_id(digits: str) -> str:
    """Return a number without leading zeros."""
    return digits.lstrip("0") or "0"


def point_of(name: str, rest: str) -> tuple[float, float, str]:
    """Return x and y in pixels, and the rest."""
    found = _POINT.fullmatch(rest.strip())
    if found is None:
        raise ParseError(f"{name} needs a point in pixels: {name} 100 200; got {quote(rest)}")
    return float(found[1]), float(found[2]), found[3]


def typed_text_of(content: str, *, default: bool) -> tuple[str, bool]:
    """Return a text to type without its mark, and whether Enter follows."""
    # white space may follow a mark that a person wrote
    mark = _ENTER_MARK.search(content.rstrip())
    if mark is None:
        return content, default
    return content[: mark.start()], mark[1] is None


def path_of(rest: str) -> tuple[str, str]:
    """Return one path, a JSON string or up to the next space, and the rest."""
    rest = rest.lstrip()
    if rest.startswith('"'):
        try:
            path, end = json.JSONDecoder().raw_decode(rest)
            return str(path), rest[end:]
        except ValueError:
            raise ParseError(f"missing closing quote in {quote(rest)}") from None
    path, *others = re.split(r"\s", rest, maxsplit=1)
    return unbracketed(path), others[0] if others else ""


def text_of(name: str, rest: str) -> str:
    """Return the text up to the end of the string; it may not be empty."""
    text = free_text_of(rest.strip())
    if not text.strip():
        raise ParseError(f"{name} needs a text: {name} some words")
    return text


def free_text_of(text: str) -> str:
    """Return a text, decoded if it is a JSON string."""
    given = json_of(text) if text.startswith('"') else None
    return given if isinstance(given, str) else text


def url_of(rest: str) -> str:
    """Return a URL, without the line breaks that models insert."""
    return re.sub(r"[\r\n\t]", "", unbracketed(rest))


def json_list_of(text: str) -> list[str] | None:
    """Return the texts of a JSON list; None for any other text."""
    given = json_of(text) if text.startswith("[") else None
    return [str(item) for item in given] if isinstance(given, list) else None


def json_of(text: str) -> Any:
    """Return the value of a JSON text; None if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def unbracketed(text: str) -> str:
    """Return the text without surrounding white space and one pair of brackets."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1].strip()
    return text


def quote(text: str) -> str:
    """Return a text in quotes for an error message, at most 60 characters of it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


# --- writing -----------------------------------------------------------------------------------


def write_path(path: str) -> str:
    """Return a path as one word: unchanged, or as a JSON string."""
    plain = path and not re.search(r'[\s"\[\]]', path)
    return path if plain else json_text(path)


def write_free_text(text: str) -> str:
    """Return a text that ends an action string: unchanged, or as a JSON string."""
    text = str(text)
    plain = text == text.strip() and not text.startswith(('"', "["))
    return text if plain else json_text(text)


def write_typed_text(content: str, enter: bool, *, default: bool) -> str:
    """Return a text to type, with a mark for Enter if the default is wrong or ambiguous."""
    content = str(content)
    if enter == default and not _ENTER_MARK.search(content.rstrip()):
        return content
    return f"{content}{'[ENTER]' if enter else '[NOENTER]'}"


def write_target(id: int | str, role: str = "") -> str:
    """Return an element in brackets: its id, or role and name.

    Args:
        id: the id or the name. Digits without a role are an id.
        role: of the named element; empty for any.

    Raises:
        ParseError: it is neither an id nor a name.
    """
    if not isinstance(id, int | str) or isinstance(id, bool) or not str(id).strip():
        raise ParseError(f"an element is its id or its name, not {quote(repr(id))}")
    digits = re.fullmatch(r"\[?([0-9]+)\]?", str(id).strip())
    if digits and (isinstance(id, int) or not role):
        return f"[{digits[1]}]"
    return write_name(str(id), role)


def write_name(name: str, role: str) -> str:
    """Return the name of an element in brackets, after its role if there is one.

    Raises:
        ParseError: the role is not a word.
    """
    if role and not re.fullmatch("[A-Za-z]+", role):
        raise ParseError(f"a role is one word, such as button; not {quote(role)}")
    quoted = json_text(name) if re.search(r"'\s*\]|[\r\n]", name) else f"'{name}'"
    return f"[{role} {quoted}]" if role else f"[{quoted}]"


def write_optional_target(id: int | str | None) -> str:
    """Return an element in brackets and a space; "" for None."""
    return "" if id is None else f"{write_target(id)} "


def write_point(point: Sequence[float | None]) -> str:
    """Return a point as `x,y`.

    Raises:
        ParseError: it is not a pair of numbers.
    """
    if len(point) != 2 or None in point:
        raise ParseError("a point needs both numbers, x and y")
    return ",".join(map(write_number, point))


def write_number(value: Any) -> str:
    """Return a number with at most three decimals and no exponent.

    Raises:
        ParseError: the value is not a number.
    """
    try:
        return f"{float(value):.3f}".rstrip("0").rstrip(".")
    except (TypeError, ValueError):
        raise ParseError(f"{quote(str(value))} is not a number") from None


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


_LONGEST_HOLD = 60.0


def seconds_of(name: str, text: str) -> float:
    """Return the seconds of `hold 1.5`, at most a minute.

    Raises:
        ParseError: the text is not a number of seconds.
    """
    number = re.fullmatch(rf"({NUMBER})s?", text)
    if number is None or float(number[1]) < 0:
        raise ParseError(f"{name}: hold takes a number of seconds, not {quote(text)}")
    return min(float(number[1]), _LONGEST_HOLD)


def hold_field(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a request for how long to hold a button or a key."""
    return {"hold": given["hold"] * 1000} if given.get("hold") else {}


def hold_word(given: Mapping[str, Any]) -> str:
    """Return how long a button or a key is held, for a report; empty for a click."""
    return f"hold {given['hold']:g}" if given.get("hold") else ""
