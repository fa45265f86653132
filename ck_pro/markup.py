"""Inert HTML for notebooks: every text is escaped, and nothing is loaded or run.

Long texts are folded, so that a session of a thousand steps stays readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

FOLDED_CHARS = 400
"""A longer text is folded."""
MAX_CHARS = 20_000
"""The rest of a longer text is omitted."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PRE = (
    "margin:2px 0;padding:6px 8px;white-space:pre-wrap;overflow-wrap:break-word;word-break:normal;"
    "text-align:left;font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "background:rgba(128,128,128,.09);border-radius:4px;font-size:12px;line-height:1.45"
)
_BOX = (
    "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;margin:4px 0;"
    "max-width:1000px;text-align:left;line-height:1.5"
)
_COLOURS = {"good": "#2f9e6b", "bad": "#d64a3f", "": "rgba(128,128,128,.9)"}


def text(value: object) -> str:
    """Escape a text; characters that control a terminal or reorder text are replaced."""
    plain = str(value).encode("utf-8", "replace").decode()
    return escape(_CONTROLS.sub("\ufffd", plain))


def block(value: object, title: str = "") -> str:
    """Show a text as it is written; fold it under `title` if it is long."""
    whole = str(value)
    if not whole.strip():
        return ""
    shown = whole if len(whole) <= MAX_CHARS else whole[:MAX_CHARS]
    more = f"\n... ({len(whole):,} characters)" if len(whole) > MAX_CHARS else ""
    pre = f'<pre style="{_PRE}">{text(shown + more)}</pre>'
    if len(whole) <= FOLDED_CHARS and whole.count("\n") < 12:
        return f"{label(title)}{pre}" if title else pre
    return folded(f"{title or 'text'} ({len(whole):,} characters)", pre)


def label(title: str) -> str:
    """Return a small heading."""
    return f'<div style="font-size:11px;opacity:.7;margin-top:6px">{text(title)}</div>'


def folded(title: str, body: str, *, opened: bool = False, mark: str = "") -> str:
    """Return a part that can be opened.

    Args:
        title: text of its head.
        body: its content, as HTML.
        opened: whether it is open at first.
        mark: HTML at the end of its head.
    """
    state = " open" if opened else ""
    head = f'<summary style="cursor:pointer">{text(title)} {mark}</summary>'
    inner = f'<div style="margin:2px 0 8px 16px">{body}</div>'
    return f'<details{state} style="margin:2px 0">{head}{inner}</details>'


def badge(value: object, kind: str = "") -> str:
    """Return a short text in a coloured frame; `kind` is "good", "bad" or ""."""
    style = (
        "display:inline-block;padding:0 7px;margin-right:5px;border-radius:9px;font-size:11px;"
        f"border:1px solid {_COLOURS[kind]};color:{_COLOURS[kind] if kind else 'inherit'}"
    )
    return f'<span style="{style}">{text(value)}</span>'


def box(title: str, badges: Iterable[str], body: str) -> str:
    """Return a frame with a head."""
    head = f'<b style="font-size:14px">{text(title)}</b>&nbsp; {"".join(badges)}'
    return f'<div style="{_BOX}"><div>{head}</div>{body}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts."""
    cell = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
    top = "".join(f'<th style="{cell};opacity:.7">{text(h)}</th>' for h in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{cell}">{text(c)}</td>' for c in row) + "</tr>"
        for row in rows
    )
    head = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    return f'<table style="border-collapse:collapse">{head}<tbody>{body}</tbody></table>'
