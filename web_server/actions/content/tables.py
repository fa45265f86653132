"""Read the rows of a table, whether they are in view or not."""

from __future__ import annotations

from typing import Any

from web_server.actions import pointer
from web_server.actions.preconditions import check_usage
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe import render
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

MAX_ROWS = 10_000
"""Most rows of one reply."""
MAX_TEXT = 1_000_000
"""Limit for the rows of one reply, in characters of JSON."""
_NAMELESS = ("", "[ ]", "[x]", "[-]")  # headers without a name: a box that selects all rows
TABLE_ROLES = frozenset({"table", "grid", "treegrid"})


async def read_table(
    page_handle: PageHandle, element_id: str, number: str, start: int | None
) -> dict[str, Any]:
    """Return the rows of a table that are not hidden.

    Args:
        page_handle: the page.
        element_id: of the table, or of an element in it or around it; empty for the number.
        number: the position of the table on the page, from 1; empty for 1.
        start: the first row, from 0. None for all rows.

    Returns:
        `id`, `rows` (lists of texts), `start`, `total` (rows in the document), `header` (how many
        of them are headers) and `columns` (their texts by column; empty without a header).

    Raises:
        BadRequest: the number is not a number.
        NotFound: there is no such table.
        Conflict: the element has no table or several; or `start` is None and one reply cannot have
            all rows.
    """
    if not element_id.strip():
        element_id = str(await _numbered(page_handle, number.strip() or "1"))
    use = await check_usage(page_handle, element_id, "table")
    target = await pointer.find(page_handle, use["id"])
    first = max(start or 0, 0)
    found = await target.call("tableRows", first, MAX_ROWS, MAX_TEXT)
    if start is None:
        _check_complete(pointer.label(target), found)
    columns = _column_names(found["titles"], found["width"]) if found["header"] else []
    return {
        "id": target.id,
        "label": pointer.label(target),
        "start": first,
        "columns": columns,
        **{key: found[key] for key in ("rows", "total", "header")},
    }


async def _numbered(page_handle: PageHandle, number: str) -> int:
    """Return the id of a table by its position; tables for layout count if there are no others."""
    if not number.isdecimal() or len(number) > 6 or int(number) < 1:
        raise BadRequest(
            f"table takes the number of a table, from 1, not '{one_line(number)[:40]}'"
        )
    nodes = render.flatten(await page_handle.observer.read_tree())
    ids = [node.id for node in nodes if node.role in TABLE_ROLES]
    ids = ids or await page_handle.observer.layout_tables()
    if int(number) <= len(ids):
        return ids[int(number) - 1]
    count = f"{len(ids)} table{'s' if len(ids) > 1 else ''}" if ids else "no table"
    raise NotFound(f"the page has {count}; there is no table number {number}")


def _check_complete(label: str, found: dict[str, Any]) -> None:
    """Raise Conflict if rows are missing: code would take the others for all rows."""
    rows, total, count = len(found["rows"]), found["total"], found["count"]
    if count > total:
        raise Conflict(
            f"{label} has {count:,} rows, and the document only {total:,} of them: the page loads "
            "others when you scroll in the table or page on; start=0 returns those that it has"
        )
    if found["later"]:
        raise Conflict(
            f"{label} has {total:,} rows in the document now, and space for more: the page loads "
            "others when you scroll in the table; start=0 returns those that it has"
        )
    if rows < total:
        raise Conflict(
            f"{label} has {total:,} rows, and one call returns {rows:,} of them: call it with "
            f"start=0, then start={rows} and so on"
        )


def _column_names(titles: list[list[str]], width: int) -> list[str]:
    """Return a name for each column, from all header rows; each name is unique."""
    names: list[str] = []
    for column in range(width):
        shown = (row[column] for row in titles)
        parts = list(dict.fromkeys(text for text in shown if text not in _NAMELESS))
        name = base = " / ".join(parts) or f"column {column + 1}"
        count = 1
        while name in names:
            count += 1
            name = f"{base} ({count})"
        names.append(name)
    return names
