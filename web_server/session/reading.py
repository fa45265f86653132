"""Read a page as Markdown, in parts, with code and fields verbatim."""

from __future__ import annotations

import asyncio
import re
import secrets
from functools import cache
from typing import Any

from web_server.errors import BadRequest, ServerError
from web_server.quoting import begins_like_line, paragraphs, verbatim
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

PART = 8000
"""Length of one part of a page as Markdown, in characters."""
MAX_PARTS = 25
"""Number of parts that one request returns."""
_BLOCKS = frozenset({"div", "p", "li", "tr", "ol", "ul", "table", "tbody"})


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


def to_markdown(html: str, *, links: bool = True) -> str:
    """Return HTML as Markdown.

    Args:
        html: of `readableHtml` in js/readable_html.js.
        links: whether to include the addresses of links.

    Raises:
        ServerError: markdownify is not installed.
    """
    converter = _converter_class()(strip=["img"] if links else ["img", "a"])
    text = converter.convert(html)
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = paragraphs(re.sub(r"\n{3,}", "\n\n", text).strip())
    mark = re.compile(rf"{converter.mark}x([0-9]+)x")
    return mark.sub(lambda found: str(converter.kept[int(found[1])]), text)


@cache
def _converter_class() -> Any:
    """Return the converter, whose package is needed only for reading."""
    try:
        from markdownify import MarkdownConverter
    except ImportError:
        raise ServerError(
            'reading pages needs the package markdownify: pip install "ck-pro[web]"'
        ) from None

    class Converter(MarkdownConverter):  # type: ignore[misc, unused-ignore]
        """Keeps code and fields in `kept`, and marks their places in the text."""

        def __init__(self, **options: Any) -> None:
            super().__init__(
                heading_style="ATX",
                escape_asterisks=False,
                escape_underscores=False,
                escape_misc=False,
                **options,
            )
            self.kept: list[str] = []
            self.mark = secrets.token_hex(8)  # a page cannot guess it

        def _keep(self, text: str) -> str:
            self.kept.append(text)
            return f"{self.mark}x{len(self.kept) - 1}x"

        def convert_pre(self, element: Any, text: str, *_: Any, **__: Any) -> str:
            return f"\n\n{self._keep(_fenced(_code_of(element)))}\n\n"

        def convert_code(self, element: Any, text: str, *_: Any, **__: Any) -> str:
            if element.find_parent("pre"):
                return text
            ticks = _ticks_beyond(element.get_text(), 1)
            return self._keep(f"{ticks}{verbatim(element.get_text())}{ticks}")

        convert_kbd = convert_samp = convert_code

        def convert_field(self, element: Any, text: str, *_: Any, **__: Any) -> str:
            value, kind = element.get_text(), element.get("type")
            required = " (required)" if element.has_attr("required") else ""
            if kind in ("checkbox", "radio"):
                shown = {"checkbox": "[{}]", "radio": "({})"}[kind].format(value or " ")
                return f"{self._keep(shown + required)} "
            if kind == "textarea" and "\n" in value:
                return f"\n\n{self._keep(_fenced(value) + required)}\n\n"
            return f" {self._keep(f'[{kind}: {verbatim(value)}]' + required)} "

    return Converter


def _code_of(element: Any) -> str:
    """Return the text of code, whose lines may be elements."""
    pieces: list[str] = []
    for node in element.descendants:
        if node.name is None:
            pieces.append(str(node))
        elif node.name == "br" or (
            node.name in _BLOCKS and pieces and not pieces[-1].endswith("\n")
        ):
            pieces.append("\n")
    return "".join(pieces)


def _fenced(code: str) -> str:
    fence = _ticks_beyond(code, 3)
    return f"{fence}\n{verbatim(code.removesuffix(chr(10)))}\n{fence}"


def _ticks_beyond(code: str, least: int) -> str:
    """Return more backticks than any run of them in the code."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    return "`" * max(least, longest + 1)
