"""Find elements by role and name, such as `button 'Save'`, and by a text that they show."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from web_server.actions.registry import find_action
from web_server.contract import PerformAction
from web_server.errors import Conflict, NotFound
from web_server.observe import render
from web_server.observe.render import Node
from web_server.observe.target import ElementGone
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

_NAMED = re.compile(r"\[?(?:([A-Za-z]+) )?'(.*)'\]?", re.DOTALL)
_TEXTS = frozenset({"StaticText", "LabelText"})
_LISTED = 8
_NEAR = 5
FOUND_LINES = 30
"""Default number of lines that `find` returns."""
MAX_LINES = 1000
_PARENTS = 3
_UNSEEN = re.compile(r"\(invisible: ([^()]*)\)")
LINE_BREAK = "\u21b5"
"""The mark of a line break in a value."""
_TEXT = "text: "
_NEAR_TEXT = "near: "
_NOTES = frozenset({"covered by", "pointer"})
"""States that describe other elements, not the element's own text."""


@dataclass(frozen=True)
class ElementName:
    """An element as a request names it.

    Attributes:
        role: its role in lower case; empty for any.
        name: its name, or a part of it.
    """

    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role or 'element'} '{one_line(self.name)[:80]}'"


def parse_name(target_id: str) -> ElementName | None:
    """Return the name in a `targetId` such as `button 'Save'` or `'Save'`; None for a number."""
    found = _NAMED.fullmatch(target_id.strip())
    return ElementName((found[1] or "").lower(), found[2]) if found else None


async def with_ids(
    page_handle: PageHandle, request: PerformAction
) -> tuple[PerformAction, dict[str, str]]:
    """Return the request with ids instead of names.

    Args:
        page_handle: the page, which is searched as a whole.
        request: the action; `targetId` and `toId` may be names.

    Returns:
        the request, and the line of each element that was named, by the text that names it.

    Raises:
        NotFound: no element has the name; the message lists similar ones.
        Conflict: several elements have it; the message lists them.
    """
    fields = {"targetId": request.targetId, "toId": request.toId}
    names = {field: name for field, text in fields.items() if (name := parse_name(text))}
    if not names:
        return request, {}
    roots = await page_handle.observer.read_tree()
    purpose, roles = find_action(request).purpose, find_action(request).roles
    if not all(candidates(roots, name, roles) for name in names.values()):
        roots = await page_handle.observer.read_tree(all_options=True)
    ids, lines = {}, {}
    for field, name in names.items():
        matches = candidates(roots, name, roles)
        if field == "targetId" and purpose and len(matches) > 1:
            matches = await _usable(page_handle, matches, purpose)
        if len(matches) != 1:
            raise _not_unique(roots, name, matches)
        ids[field] = str(matches[0].id)
        lines[fields[field]] = line_of(matches[0])
    return request.model_copy(update=ids), lines


def candidates(
    roots: list[Node], wanted: ElementName, roles: frozenset[str] = frozenset()
) -> list[Node]:
    """Return the elements that a name means.

    Elements with `roles` come first. Exact names come before parts of names, elements to act on
    before other elements. A name may also be the text that an element shows instead of its name.
    """
    name = plain(wanted.name)
    nodes = [n for n in render.flatten(roots) if n.id > 2 and _names(n)]
    if wanted.role:
        nodes = [n for n in nodes if n.role.lower() == wanted.role]
    exact = [n for n in nodes if name in map(plain, _names(n))]
    part = [n for n in nodes if name and any(name in plain(each) for each in _names(n))]
    first = [[n for n in nodes if n.role in roles] for nodes in (exact, part)]
    for matches in (*first, exact, part):
        if matches:
            active = [n for n in matches if n.flags & render.INTERACTIVE and n.role not in _TEXTS]
            return _innermost(active or matches)
    return []


def _names(node: Node) -> list[str]:
    """Return the name of an element, and the text that it shows if that differs.

    For a field without a name, this is the text beside it.
    """
    prefix = _TEXT if node.name else _NEAR_TEXT
    texts = [state.removeprefix(prefix) for state in node.states if state.startswith(prefix)]
    return [node.name, *texts] if node.name else texts


def _innermost(nodes: list[Node]) -> list[Node]:
    """Return the nodes without those that contain another one of the same name."""
    names: dict[int, set[str]] = {}
    for node in nodes:
        names.setdefault(node.id, set()).add(plain(node.name))
    return [
        node
        for node in nodes
        if not any(
            plain(node.name) in names.get(inner.id, ()) for inner in render.flatten(node.children)
        )
    ]


async def _usable(page_handle: PageHandle, matches: list[Node], purpose: str) -> list[Node]:
    """Return one element for each that the action would use, if it can use any.

    A field and its label are one.
    """
    used: dict[int, Node] = {}
    for node in matches[:_LISTED]:
        try:
            use = await page_handle.observer.usage(node.id, purpose)
        except ElementGone:
            continue
        if use["how"] != "none":
            used.setdefault(use["id"], node)
    return list(used.values()) or matches


def _not_unique(roots: list[Node], wanted: ElementName, matches: list[Node]) -> Conflict | NotFound:
    if not matches:
        near = similar(roots, wanted)
        known = f"; similar: {_listed(near, roots)}" if near else ""
        return NotFound(f"the page has no {wanted}{known}")
    more = f" and {len(matches) - _LISTED} more" if len(matches) > _LISTED else ""
    return Conflict(
        f"{len(matches)} elements match {wanted}: {_listed(matches[:_LISTED], roots)}{more}; "
        "give the id of one"
    )


def similar(roots: list[Node], wanted: ElementName) -> list[Node]:
    """Return up to 5 elements whose names resemble a name, those of that name first."""
    of_name = candidates(roots, ElementName("", wanted.name)) if wanted.role else []
    nodes = [n for n in render.flatten(roots) if n.name and n.flags & render.INTERACTIVE]
    by_name = {plain(n.name): n for n in reversed(nodes)}
    close = difflib.get_close_matches(plain(wanted.name), by_name, _NEAR, 0.5)
    words = set(plain(wanted.name).split())
    shared = [n for n in nodes if words & set(plain(n.name).split())]
    of_role = [n for n in nodes if n.role.lower() == wanted.role]
    found = [*of_name, *(by_name[name] for name in close), *shared, *of_role]
    return list({n.id: n for n in found}.values())[:_NEAR]


def _listed(nodes: list[Node], roots: list[Node]) -> str:
    named = {n.id: around for n, around in with_parents(roots)}
    texts = []
    for node in nodes:
        parent = next((p for p in reversed(named.get(node.id, ())) if p.name), None)
        texts.append(line_of(node) + (f" in {short_name(parent)}" if parent else ""))
    return ", ".join(texts)


def with_parents(
    nodes: Iterable[Node], around: tuple[Node, ...] = ()
) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield each node with the nodes around it, the outermost first."""
    for node in nodes:
        yield node, around
        yield from with_parents(node.children, (*around, node))


def line_of(node: Node) -> str:
    """Return an element as `[7] button 'Save'`."""
    return f"[{node.id}] {short_name(node)}"


def short_name(node: Node) -> str:
    """Return role and name of an element, at most 60 characters of the name."""
    name = one_line(node.name)
    shown = name if len(name) <= 60 else name[:60] + "\N{HORIZONTAL ELLIPSIS}"
    return f"{node.role} '{shown}'" if name else node.role


def plain(text: str) -> str:
    """Return a text for comparisons: case, white space and forms of apostrophes do not matter."""
    line = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return line.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


@dataclass(frozen=True)
class Found:
    """An element that shows a text.

    Attributes:
        element_id: its id.
        line: its line, with the nearest named elements around it.
    """

    element_id: str
    line: str


async def find_elements(page_handle: PageHandle, text: str, role: str = "") -> list[Found]:
    """Return every element of the page whose name or value contains a text, in order.

    Args:
        page_handle: the page.
        text: the text; case and white space do not matter.
        role: of the elements; empty for any.
    """
    roots = await page_handle.observer.read_tree(all_options=True)
    wanted, role = plain(text), role.strip().lower()
    return [
        Found(str(node.id), _line(node, around))
        for node, around in with_parents(roots)
        if node.id > 2
        and (not role or node.role.lower() == role)
        and any(wanted in plain(own) for own in _own_texts(node))
    ]


async def shows_text(page_handle: PageHandle, text: str) -> bool:
    """Whether a person sees a text on the page, also as the value of a field or across elements."""
    nodes = render.flatten(await page_handle.observer.read_tree())
    shown = " ".join(own for node in nodes if node.id > 2 for own in _own_texts(node, " "))
    return plain(text) in plain(shown.replace(" | ", " "))


def _own_texts(node: Node, unseen: str = r"\1") -> list[str]:
    """Return the name and the states of a node without marks; `unseen` replaces invisible text."""
    states = (state.partition(": ") for state in node.states)
    texts = [node.name, *(text for key, _, text in states if key.lstrip("@") not in _NOTES)]
    return [_UNSEEN.sub(unseen, text.replace(LINE_BREAK, " ")) for text in texts]


def _line(node: Node, around: tuple[Node, ...]) -> str:
    named = [short_name(each) for each in reversed(around) if each.name][:_PARENTS]
    return f"{node.line()} (in {', '.join(named)})" if named else node.line()
