"""The pieces that action strings are made of: elements, texts, paths, points. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.write import ENTER_MARK

Reader = Callable[[str], BrowserAction]
"""Reads what follows the name of an action; raises `ParseError`."""

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
"""Pattern of a number as people write it."""
_POINT = re.compile(rf"[\[(]?\s*({NUMBER})\s*[, ]\s*({NUMBER})\s*[\])]?(?![0-9.])(.*)", re.DOTALL)
_WITHIN = re.compile(r"\s*\[\s*([0-9]+)\s*\]\s*(.*)", re.DOTALL)
_TARGET = re.compile(r"\s*(?:\[\s*([0-9]+)\s*\]|([0-9]+)(?![0-9A-Za-z]))(?:\s?)(.*)", re.DOTALL)


def point_of(name: str, rest: str) -> tuple[float, float, str]:
    """x and y in pixels, and what follows them."""
    found = _POINT.fullmatch(rest.strip())
    if found is None:
        raise ParseError(f"{name} needs a point in pixels: {name} 100 200; got {shown(rest)}")
    return float(found[1]), float(found[2]), found[3]


def within_of(rest: str) -> tuple[str, str]:
    """The element's id in brackets that a point may begin with, else "", and the rest.

    One number alone: two are a point in brackets.
    """
    found = _WITHIN.fullmatch(rest)
    return (plain_id(found[1]), found[2]) if found else ("", rest)


def target_of(name: str, rest: str) -> tuple[str, str]:
    """The element's id, and what follows it after one separating space."""
    found = _TARGET.fullmatch(rest)
    if found is None:
        raise ParseError(f"{name} needs the number of an element: {name} [3]; got {shown(rest)}")
    return plain_id(found[1] or found[2]), found[3]


def plain_id(digits: str) -> str:
    """A number without leading zeros."""
    return digits.lstrip("0") or "0"


def typed(content: str, *, default: bool) -> tuple[str, bool]:
    """The text without its mark, and whether Enter follows."""
    # a mark that a person wrote may have spaces or a newline after it
    mark = ENTER_MARK.search(content.rstrip())
    if mark is None:
        return content, default
    return content[: mark.start()], mark[1] is None


def path_of(rest: str) -> tuple[str, str]:
    """One path, quoted as a JSON string or up to the next space, and the rest."""
    rest = rest.lstrip()
    if rest.startswith('"'):
        try:
            path, end = json.JSONDecoder().raw_decode(rest)
            return str(path), rest[end:]
        except ValueError:
            raise ParseError(f"a quote is not closed in {shown(rest)}") from None
    path, *others = re.split(r"\s", rest, maxsplit=1)
    return unbracketed(path), others[0] if others else ""


def text_of(name: str, rest: str) -> str:
    """A text to the end of the action, which may not be empty."""
    text = free(rest.strip())
    if not text.strip():
        raise ParseError(f"{name} needs a text: {name} some words")
    return text


def free(text: str) -> str:
    """A text as it stands, or out of its JSON string."""
    given = json_of(text) if text.startswith('"') else None
    return given if isinstance(given, str) else text


def address(rest: str) -> str:
    """A URL, without the line breaks that models put into them."""
    return re.sub(r"[\r\n\t]", "", unbracketed(rest))


def json_list(text: str) -> list[str] | None:
    """The texts of a JSON list; None if it is none."""
    given = json_of(text) if text.startswith("[") else None
    return [str(item) for item in given] if isinstance(given, list) else None


def json_of(text: str) -> Any:
    """What a JSON text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def unbracketed(text: str) -> str:
    """The text without white space and one pair of brackets around it."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1].strip()
    return text


def shown(text: str) -> str:
    """A text as an error quotes it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
