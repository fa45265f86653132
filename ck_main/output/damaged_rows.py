"""Damaged lines of an output: find the complete rows in them, and the ids of torn rows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice

from ck_main.output.row import Outcome

_START = b'{"id": '
_ROW_START = re.compile(rb'\{"id": "(?:[^"\\]|\\.)*", "task": ')
_ID = re.compile(rb'\{"id": ("(?:[^"\\]|\\.)*")')
_MAX_STARTS = 20
NOT_A_ROW = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors that `parse_row` raises."""


def parse_row(line: bytes) -> Outcome:
    """Parse a line of an output; raise one of `NOT_A_ROW` if it is not a row."""
    return Outcome.of_row(json.loads(line), earlier=True)


@dataclass(frozen=True)
class Damage:
    """The content of a damaged line.

    Args:
        size: number of damaged bytes at its start.
        outcome: outcome of the complete row after them, if there is one.
        torn: ids of the torn rows.
    """

    size: int
    outcome: Outcome | None
    torn: tuple[str, ...] = ()


def examine(line: bytes) -> Damage | None:
    """Look for rows in a line that is not a row.

    If a program truncates a file while others append to it, a line may begin with a torn row or
    with null bytes, and may end with a complete row.

    Args:
        line: the line, with or without its newline.

    Returns:
        None if the line is not a damaged row.
    """
    text = line.lstrip(b"\0")
    nulls = len(line) - len(text)
    if not text.strip():
        return Damage(len(line), None) if nulls else None
    if not text.startswith(_START) and not (nulls and _START in text):
        return None
    if not nulls and _is_json(text):
        return None  # a complete object, but not a row
    for found in islice(_ROW_START.finditer(line), _MAX_STARTS):
        at = found.start()
        try:
            outcome = parse_row(line[at:])
        except NOT_A_ROW:
            continue
        return Damage(at, outcome, torn_ids(line[:at]))
    return Damage(len(line), None, torn_ids(line))


def outcome_in(line: bytes) -> Outcome | None:
    """Return the outcome of the row in a line, or at its end; None without one."""
    try:
        return parse_row(line)
    except NOT_A_ROW:
        damage = examine(line)
    return damage.outcome if damage is not None else None


def torn_ids(part: bytes) -> tuple[str, ...]:
    """Return the id of the torn row at the start of a part of a line, if it is readable."""
    found = _ID.match(part.lstrip(b"\0"))
    try:
        return (str(json.loads(found[1])),) if found else ()
    except ValueError:
        return ()


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
