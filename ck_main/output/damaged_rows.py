"""Damaged lines of an output: find whole rows in them, and the ids of torn ones. Pure."""

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
"""What `parse_row` raises."""


def parse_row(line: bytes) -> Outcome:
    """Read the outcome of a row's line. Raises one of `NOT_A_ROW`."""
    return Outcome.of_row(json.loads(line), earlier=True)


@dataclass(frozen=True)
class Damage:
    """What a damaged line holds.

    Args:
        size: bytes at its start that belong to no whole row.
        outcome: of the whole row after them; None if there is none.
        torn: ids of the rows that are torn in it.
    """

    size: int
    outcome: Outcome | None
    torn: tuple[str, ...] = ()


def examine(line: bytes) -> Damage | None:
    """Look for rows in a line that is not a row.

    A file that was truncated in place while programs append to it has lines that begin with a torn
    row, or with null bytes, and may end with a whole row.

    Args:
        line: with or without its newline.

    Returns:
        None if the line is something other than a damaged row.
    """
    text = line.lstrip(b"\0")
    nulls = len(line) - len(text)
    if not text.strip():
        return Damage(len(line), None) if nulls else None
    if not text.startswith(_START) and not (nulls and _START in text):
        return None
    if not nulls and _is_json(text):
        return None  # whole, but a row of another program
    for found in islice(_ROW_START.finditer(line), _MAX_STARTS):
        at = found.start()
        try:
            outcome = parse_row(line[at:])
        except NOT_A_ROW:
            continue
        return Damage(at, outcome, torn_ids(line[:at]))
    return Damage(len(line), None, torn_ids(line))


def outcome_in(line: bytes) -> Outcome | None:
    """The outcome of the row that a line holds, whole or at its end; None if there is none."""
    try:
        return parse_row(line)
    except NOT_A_ROW:
        damage = examine(line)
    return damage.outcome if damage is not None else None


def torn_ids(piece: bytes) -> tuple[str, ...]:
    """The id of the torn row that a piece of a line begins with, if it can be read."""
    found = _ID.match(piece.lstrip(b"\0"))
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
