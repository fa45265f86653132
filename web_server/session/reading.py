"""Read a page as Markdown, in parts, and find a text in it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from web_server.errors import BadRequest, ServerError
from web_server.quoting import paragraphs
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

PART = 8000
"""Length of one part of a page as Markdown, in characters."""


@dataclass(frozen=True)
class Line:
    """A line of the tree, without its indent, and the element's id."""

    element_id: str
    text: str


async def read_page(page_handle: PageHandle, part: str) -> str:
    """Return one part of the page as Markdown.

    Args:
        page_handle: the page.
        part: number of the part, from 1; empty for the first.

    Raises:
        BadRequest: the page has no such part.
    """
    number = part.strip() or "1"
    if not number.isdecimal() or len(number) > 9:
        raise BadRequest(
            f"actionValue of read must be the number of a part, not '{one_line(part)[:40]}'"
        )
    html = await page_handle.observer.readable()
    parts = split_parts(await asyncio.to_thread(to_markdown, html))
    if not 1 <= int(number) <= len(parts):
        raise BadRequest(
            f"actionValue of read must be the number of a part, 1 to {len(parts)}, not {number}"
        )
    return f"Part {number} of {len(parts)}\n\n{paragraphs(parts[int(number) - 1])}"


def to_markdown(html: str) -> str:
    """Convert HTML to Markdown."""
    try:
        from markdownify import markdownify
    except ImportError:
        raise ServerError(
            'reading pages needs the package markdownify: pip install "ck-pro[web]"'
        ) from None
    text = markdownify(html, heading_style="ATX", strip=["img"])
    text = re.sub(r"[ \t]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def split_parts(text: str, size: int = PART) -> list[str]:
    """Split a text into parts of at most `size` characters, between lines where possible."""
    parts: list[str] = []
    rest = text
    while len(rest) > size:
        cut = rest.rfind("\n", size // 2, size) + 1 or size
        parts.append(rest[:cut].rstrip("\n"))
        rest = rest[cut:].lstrip("\n")
    return [*parts, rest] if rest or not parts else parts


async def find_lines(page_handle: PageHandle, text: str, most: int) -> list[Line]:
    """Return lines of the whole page's tree that contain a text, case and white space aside."""
    observed = await page_handle.observer.observe(scope="page", all_options=True)
    sought = one_line(text).lower()
    found: list[Line] = []
    for line in observed.yaml_body.split("\n"):
        match = re.match(r"\s*\[(\d+)\] ", line)
        if match and int(match[1]) > 2 and sought in one_line(line).lower():
            found.append(Line(match[1], line.strip()))
            if len(found) == most:
                break
    return found
