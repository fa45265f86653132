"""Find cookie banners in the text of a page, by roles and names. Pure.

A banner is a dialog, a region or frame named after cookies, or a run of lines among others. It
mentions cookies and consent, and has buttons to answer. It asks for no other input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ck_web.page.page_text import Line, lines_of

_OVERLAYS = frozenset({"dialog", "alertdialog"})
_NAMED = frozenset({"region", "complementary", "group", "banner", "contentinfo", "form", "Iframe"})
_BUTTONS = frozenset({"button", "link"})
_BOXES = frozenset({"checkbox", "switch"})
_INPUTS = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "listbox"})
_MAX_LINES = 80
_LINES_ABOVE = 8  # lines of text above the buttons of a banner without a frame

_COOKIES = re.compile(r"\bcookies?\b", re.IGNORECASE)
_ABOUT = re.compile(r"\bcookies?\b|\bconsent\b|\bgdpr\b|\bprivacy\b|einwilligung", re.IGNORECASE)
_CONSENT = re.compile(
    r"\b(?:us(?:e|es|ing)\b|stor(?:e|es|ing)\b|(?:to|may) set (?:\w+ )?cookies|privacy|consent"
    r"|polic(?:y|ies)"
    r"|personali[sz]|advert|partners?|analy[st]|experience|traffic|verwende|nutze|setzen|einsatz"
    r"|utilis|usamos|utiliza|utilizz|usiamo|gebruik)",
    re.IGNORECASE,
)
_ALL = r"(?: all| optional| non-?essential| unnecessary| additional| cookies| tracking)*"
_REJECT = re.compile(
    rf"(?:i )?(?:reject|decline|refuse|deny|disagree|disallow){_ALL}(?: and close)?"
    rf"|(?:use |allow |accept )?(?:only )?(?:strictly )?(?:necessary|essential|required)"
    rf"(?: cookies)?(?: only)?"
    r"|(?:use|allow|accept) (?:strictly )?(?:necessary|essential|required)(?: cookies)?(?: only)?"
    r"|continue without (?:accepting|agreeing|consent(?:ing)?)|no,? thanks?(?: you)?"
    r"|i (?:do not|don.t) (?:accept|agree|consent)"
    r"|(?:alle )?(?:cookies )?ablehnen|nur (?:notwendige|erforderliche|essenzielle)(?: cookies)?"
    r"(?: akzeptieren| erlauben)?"
    r"|(?:tout )?refuser(?: tout)?|continuer sans accepter"
    r"|rechazar(?: tod[oa]s?)?(?: las cookies)?|rifiuta(?: tutt[oi])?"
    r"|(?:alles |alle cookies )?(?:weigeren|afwijzen)|rejeitar(?: tudo| tod[oa]s)?",
    re.IGNORECASE,
)
_ACCEPT = re.compile(
    rf"(?:i |yes,? i )?(?:accept|allow|agree|consent){_ALL}(?: and (?:close|continue))?"
    r"|i understand|ok(?:ay)?|got it|(?:alle )?(?:cookies )?(?:akzeptieren|zustimmen|erlauben)"
    r"|einverstanden|(?:tout )?accepter(?: tout)?|j.accepte"
    r"|aceptar(?: tod[oa]s?)?(?: las cookies)?|accetta(?: tutt[oi])?"
    r"|(?:alles |alle cookies )?(?:accepteren|toestaan)|akkoord|aceitar(?: tudo| tod[oa]s)?",
    re.IGNORECASE,
)
_SAVE = re.compile(
    r"(?:save|confirm|submit)(?: my| current| these)? (?:choices?|preferences|selection|settings)"
    r"(?: and (?:close|continue))?|auswahl (?:speichern|best\u00e4tigen)"
    r"|enregistrer(?: mes choix)?|guardar(?: selecci\u00f3n| preferencias)?",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    r"(?:close|dismiss|hide)(?: (?:this|the)? ?(?:banner|message|notice|dialog))?"
    r"|[x\u00d7\u2715]|schlie(?:ss|\u00df)en|fermer|cerrar|chiudi|sluiten|fechar",
    re.IGNORECASE,
)
_CHOICES = re.compile(
    r"settings|preferences|options|manage|customi[sz]e|choices|purposes|einstellungen|personnaliser"
    r"|param.tr|configurar|gestionar|personaliz|instellingen|op..es",
    re.IGNORECASE,
)

_COVERS = re.compile(r" covered: everything outside .*\(id (\d+)\)")


@dataclass(frozen=True)
class Banner:
    """A cookie banner.

    Attributes:
        answer: the button with the least consent; None if the banner offers choices, but no
            button except accept is known.
        buttons: all its buttons.
    """

    answer: Line | None
    buttons: tuple[Line, ...]


def find_banner(tree: str) -> Banner | None:
    """Return the cookie banner of a page, if there is one.

    Args:
        tree: the text of the page.
    """
    if not _ABOUT.search(tree):
        return None
    lines = _uncovered(lines_of(tree))
    for part in _framed(lines):
        if banner := _banner(part):
            return banner
    return _unframed(lines)


def _uncovered(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines that the pointer reaches when a dialog covers the rest of the page."""
    covers = _COVERS.search(lines[0].states) if lines else None
    if covers is None:
        return lines
    top = next((i for i, line in enumerate(lines) if line.id == covers[1]), len(lines))
    end = top + 1
    while end < len(lines) and lines[end].depth > lines[top].depth:
        end += 1
    return lines[top:end]


def _framed(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield parts of the page that may be a banner by role and name, the innermost first."""
    for i in range(len(lines) - 1, -1, -1):
        line = lines[i]
        if line.role in _OVERLAYS or (line.role in _NAMED and _ABOUT.search(line.name)):
            end = i + 1
            while end < len(lines) and lines[end].depth > line.depth:
                end += 1
            yield lines[i:end]


def _banner(part: Sequence[Line]) -> Banner | None:
    """Return a part of the page as a banner, if it is one."""
    text = " ".join(line.name for line in part)
    # a dialog may ask for consent to other things; the name of a region was already checked
    named = part[0].role in _NAMED
    mentions = named or (_COOKIES.search(text) and _CONSENT.search(text))
    has_input = any(line.role in _INPUTS for line in part)
    if not mentions or has_input or len(part) > _MAX_LINES:
        return None
    buttons = tuple(line for line in part if line.role in _BUTTONS and _usable(line))
    rejecting, accepting = (_matching(buttons, p) for p in (_REJECT, _ACCEPT))
    if not rejecting and not accepting:
        return None
    if rejecting:
        return Banner(rejecting[0], buttons)
    # saving the choices gives no consent only if no box is ticked
    harmless = [] if _ticked(part) else _matching(buttons, _SAVE)
    harmless = harmless or _matching(buttons, _CLOSE)
    if not harmless and not any(_CHOICES.search(b.name) for b in buttons):
        harmless = accepting  # a notice without a choice
    return Banner(harmless[0] if harmless else None, buttons)


def _unframed(lines: Sequence[Line]) -> Banner | None:
    """Return a banner that is a run of lines among others: its text, then both answers.

    On a page about cookies such lines are content, so this returns None.
    """
    titles = [line for line in lines if line.id == "1" or "level: 1" in line.states]
    if any(_ABOUT.search(line.name) for line in titles):
        return None
    for i, line in enumerate(lines):
        if line.role not in _BUTTONS or not _REJECT.fullmatch(line.name.strip()):
            continue
        start = max(0, i - _LINES_ABOVE)
        run = [x for x in lines[start : i + 4] if x.depth == line.depth]
        text = " ".join(x.name for x in run if x.role not in _BUTTONS)
        if not _COOKIES.search(text) or not _CONSENT.search(text):
            continue
        buttons = tuple(x for x in run if x.role == "button" and _usable(x))
        if _matching(buttons, _ACCEPT) and not any(x.role in _INPUTS for x in run):
            return Banner(line, buttons)
    return None


def _matching(buttons: Sequence[Line], pattern: re.Pattern[str]) -> list[Line]:
    return [b for b in buttons if pattern.fullmatch(" ".join(b.name.split()).rstrip("!. "))]


def _ticked(part: Sequence[Line]) -> bool:
    """Whether a box is ticked, or no box can be changed."""
    boxes = [line for line in part if line.role in _BOXES and _usable(line)]
    return not boxes or any(" checked: true" in box.states for box in boxes)


def _usable(line: Line) -> bool:
    return " disabled: true" not in line.states and " covered by: " not in line.states
