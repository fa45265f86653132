"""Find the elements of a whole page that show a text."""

from __future__ import annotations

from dataclasses import dataclass

from web_server.actions.named_elements import plain, short_name, with_parents
from web_server.observe.render import Node
from web_server.session.page_handle import PageHandle

FOUND_LINES = 30
"""Default number of lines that `find` returns."""
MAX_LINES = 1000
_PARENTS = 3
_NOTES = frozenset({"covered by", "pointer"})
"""States that describe other elements, not the text of their own."""


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


def _own_texts(node: Node) -> list[str]:
    states = (state.partition(": ") for state in node.states)
    return [node.name, *(text for key, _, text in states if key.lstrip("@") not in _NOTES)]


def _line(node: Node, around: tuple[Node, ...]) -> str:
    named = [short_name(each) for each in reversed(around) if each.name][:_PARENTS]
    return f"{node.line()} (in {', '.join(named)})" if named else node.line()
