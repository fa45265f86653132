"""Obstacles on a page: error page, captcha, login; and whether it is mostly pictures. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ck_web.page.page_text import INTERACTIVE, Line, lines_of

_HUMAN_TEST = re.compile(
    r"i.?(?:.?m| am) not a robot"
    r"|(?:verify|confirm|prove)(?:ing)?(?: that)? you(?:.re| are) (?:a )?human"
    r"|are you (?:a )?(?:human|robot)|checking your browser|unusual traffic|security challenge"
    r"|complete the security check|press (?:and|&) hold|robot check",
    re.IGNORECASE,
)
_CAPTCHA = re.compile(r"captcha|characters (?:in|from) the (?:image|picture)", re.IGNORECASE)
_TEST_ROLES = frozenset({"checkbox", "textbox", "button", "image"})
_MESSAGE_ROLES = frozenset({"RootWebArea", "heading", "dialog", "alert", "alertdialog", "Iframe"})
_LOGIN = re.compile(
    r"\b(?:log|sign)[ -]?in\b|\blogin\b|\banmelden\b|\bconnexion\b|iniciar sesi|\baccedi\b"
    r"|\binloggen\b|\bentrar\b",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"passw(?:or[dt]|oord)|mot de passe|contrase|\bsenha\b", re.IGNORECASE)
_MUST_LOGIN = re.compile(
    r"(?:please|you (?:must|need to|have to)) (?:log|sign)[ -]?in"
    r"|(?:log|sign)[ -]?in to (?:continue|view|see|read|access)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"(?:error )?(?:400|401|403|404|408|410|429|50[0-4])\b|(?:page )?not found\b|access denied"
    r"|forbidden|internal server error|bad gateway|service unavailable|too many requests"
    r"|this site can.t be reached",
    re.IGNORECASE,
)
_SHORT_PAGE = 40
_VISUAL = frozenset({"Canvas", "image", "img", "Video", "video", "figure", "graphicsdocument"})
_LARGE_SHARE = 0.4
_FEW_ELEMENTS = 4
_LITTLE_TEXT = 300


def page_notices(tree: str) -> list[str]:
    """Return one line for each obstacle on a page.

    Args:
        tree: the text of the page.
    """
    lines = lines_of(tree)
    notices = []
    if _is_captcha(lines):
        notices.append(
            "the page shows a captcha or a similar test: do not solve it; try another way, ask for "
            "help, or stop and give the reason"
        )
    if asks_for_login(lines):
        notices.append(
            "the page asks for a login: use the task's credentials; if it has none, try another "
            "way, ask for help, or stop and give the reason"
        )
    if title := _error_title(lines):
        notices.append(f"this looks like an error page ({title!r}): go back, or try another way")
    return notices


def _is_captcha(lines: Sequence[Line]) -> bool:
    return any(
        (line.role in _MESSAGE_ROLES | _TEST_ROLES and _HUMAN_TEST.search(line.name))
        or (line.role in _TEST_ROLES and _CAPTCHA.search(line.name))
        for line in lines
    )


def asks_for_login(lines: Sequence[Line]) -> bool:
    """Whether title, main heading or dialog mention a login, and there is a password field.

    On a short page, a sentence such as "please log in" suffices.

    Args:
        lines: the elements of the page.
    """
    has_password = any(x.role == "textbox" and _PASSWORD.search(x.name) for x in lines)
    titled = any(
        _LOGIN.search(line.name)
        for line in lines
        if line.role in ("RootWebArea", "dialog") or re.search(r" level: [12]\b", line.states)
    )
    required = len(lines) <= _SHORT_PAGE and any(
        _MUST_LOGIN.search(line.name) for line in lines if len(line.name) < 120
    )
    return (has_password and titled) or required


def _error_title(lines: Sequence[Line]) -> str:
    """Return the title or main heading of a short page if it mentions an error."""
    if len(lines) > _SHORT_PAGE or any(line.id == "0" for line in lines):
        return ""  # the server's own line reports the error
    titles = (x for x in lines if x.role == "RootWebArea" or " level: 1" in x.states)
    return next((x.name for x in titles if _ERROR.match(x.name.strip())), "")


def mostly_visual(tree: str, elements: dict[str, Any], viewport: dict[str, Any]) -> bool:
    """Whether a page consists mostly of pictures, which its text cannot replace.

    Args:
        tree: the text of the page.
        elements: id -> `{role, box: [x, y, width, height], ...}`, from an observation.
        viewport: `{width, height}` in CSS pixels.
    """
    size = float(viewport.get("width") or 1280) * float(viewport.get("height") or 720)
    area = 0.0
    for element in elements.values():
        if element.get("role") in _VISUAL:
            area += _area(element.get("box"), viewport)
    if not area:
        return False
    lines = lines_of(tree)
    text = sum(len(line.name) for line in lines if line.role not in _VISUAL)
    few = sum(line.role in INTERACTIVE for line in lines) <= _FEW_ELEMENTS
    canvas = any(line.role == "Canvas" for line in lines)
    return area >= _LARGE_SHARE * size and (canvas or few or text < _LITTLE_TEXT)


def _area(box: Any, viewport: dict[str, Any]) -> float:
    """Return the area of a box inside the viewport, in square pixels."""
    if isinstance(box, str):
        box = box.split(",")
    try:
        x, y, width, height = (float(v) for v in box or ())
    except ValueError:
        return 0.0
    right = min(x + width, float(viewport.get("width") or 1280))
    bottom = min(y + height, float(viewport.get("height") or 720))
    return max(0.0, right - max(0.0, x)) * max(0.0, bottom - max(0.0, y))
