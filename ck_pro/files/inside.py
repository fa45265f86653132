"""Lists the files inside a file, in all levels, with their kinds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from .document import Document, Reading
from .kinds import kind_of, size_text
from .limits import INSIDE_BYTES, INSIDE_SECONDS, MAX_INSIDE, MAX_NESTING
from .opening import open_file
from .problem import ToolError
from .unpacking import at_most

_OPENED = ("archive", "mail", "msg")
"""Formats whose members are listed too."""


def lines_inside(document: Document, sizes: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each file inside: its name as a `part`, its size and its kind.

    Args:
        document: the outer file.
        sizes: size of each member of the outer file, as text, or why it cannot be read.
    """
    members = [part.name for part in document.parts() if part.is_file]
    end = time.monotonic() + INSIDE_SECONDS
    with at_most(INSIDE_BYTES):
        shown = 0
        for name in members:
            more = shown < MAX_INSIDE and time.monotonic() < end
            opened = _listed(document, name, name, 1) if more else []
            first, *inner = opened or [("", "")]
            shown += 1 + len(inner)
            yield "\t".join(filter(None, (_shown(name), sizes[name], first[1]))) + "\n"
            yield from (f"{_shown(where)}\t{what}\n" for where, what in inner)


def _shown(name: str) -> str:
    """Return a name on one line; with quotation marks if characters are escaped."""
    return name if name.isprintable() else repr(name)


def _listed(document: Document, name: str, where: str, level: int) -> list[tuple[str, str]]:
    """Return a member and the files inside it: the whole name, and the size and kind."""
    try:
        path = document.member(name)
        if path is None:
            return []
        kind = kind_of(path)
        size = f"{size_text(path.stat().st_size)}\t" if level > 1 else ""
        found = [(where, f"{size}{kind.name}")]
        if kind.format not in _OPENED or level >= MAX_NESTING:
            return found
        inner = open_file(path, kind, Reading())
        for part in inner.parts():
            if part.is_file and len(found) < MAX_INSIDE:
                found += _listed(inner, part.name, f"{where}/{part.name}", level + 1)
        return found
    except (ToolError, OSError) as error:
        return [(where, f"not opened: {error}")]
    except Exception as error:  # noqa: BLE001 - libraries raise anything on damaged files
        return [(where, f"not opened: it is damaged ({type(error).__name__})")]
