"""Read a page as Markdown, in parts."""

from __future__ import annotations

import asyncio

from web_server.errors import BadRequest
from web_server.quoting import begins_like_line
from web_server.session.markdown import to_markdown
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

PART = 8000
"""Length of one part of a page as Markdown, in characters."""
MAX_PARTS = 25
"""Number of parts that one request returns."""


async def read_page(page_handle: PageHandle, part: str, *, links: bool = True) -> str:
    """Return the page as Markdown, below a line such as `Part 1 of 3`.

    Args:
        page_handle: the page.
        part: number of the part, from 1; "all" for the first 25; empty for the first.
        links: whether to include the addresses of links.

    Raises:
        BadRequest: the page has no such part.
    """
    number = part.strip() or "1"
    if number != "all" and (not number.isdecimal() or len(number) > 9):
        raise BadRequest(
            f"actionValue of read must be the number of a part, or all; not '{one_line(part)[:40]}'"
        )
    html = await page_handle.observer.readable()
    parts = split_parts(await asyncio.to_thread(to_markdown, html, links=links))
    total = len(parts)
    if number == "all":
        last = min(total, MAX_PARTS)
        more = f" (for more: part {last + 1} and so on)" if last < total else ""
        head = f"Parts 1 to {last} of {total}{more}" if total > 1 else "Part 1 of 1"
        return f"{head}\n\n{''.join(parts[:last])}"
    if not 1 <= int(number) <= total:
        raise BadRequest(
            f"actionValue of read must be the number of a part, 1 to {total}, not {number}"
        )
    return f"Part {number} of {total}\n\n{parts[int(number) - 1]}"


def split_parts(text: str, size: int = PART) -> list[str]:
    """Split a text into parts of at most `size` characters, after line ends where possible.

    Joined, the parts are the text. None begins like a line of an observation.
    """
    parts: list[str] = []
    rest = text
    while len(rest) > size:
        cut = rest.rfind("\n", size // 2, size) + 1 or size
        while cut > 1 and begins_like_line(rest[cut : cut + 200]):
            cut -= 1
        parts.append(rest[:cut])
        rest = rest[cut:]
    return [*parts, rest]
