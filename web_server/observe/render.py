"""Render the records of a walk as the lines of an observation.

A record describes one element: depth, id, role, flags, box, name and states. js/tree/walk.js writes
it (\\x1f separates fields, \\x1d states, \\x1e records). A line has the form
`[id] role 'name' key: value ...`, indented by one tab per level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from web_server.quoting import unquoted, value

IN_VIEW = 1
INTERACTIVE = 2
REMOTE_FRAME = 4
MESSAGE = "@message"
"""State of a text in an element that reports something to the user, by its role or class."""

# Containers that get a line only with several children, a name or states.
_LOOSE = frozenset(
    {
        "DescriptionList", "LabelText", "article", "banner", "complementary",
        "contentinfo", "feed", "form", "group", "list", "listitem", "log", "main", "navigation",
        "region", "row", "search", "status", "tabpanel", "timer", "toolbar", "tooltip",
    }
)  # fmt: skip
# Containers that get no line for their children alone.
_BARE = frozenset({"form", "group", "tabpanel", "status", "log", "timer", "main"})


@dataclass(slots=True)
class Node:
    """A line with the lines nested below it.

    Attributes:
        id: of the element.
        role: its role.
        name: its name.
        flags: IN_VIEW, INTERACTIVE and REMOTE_FRAME, combined.
        box: x, y, width, height in CSS pixels of the main frame's viewport; empty if unknown.
        states: `key: value` pairs; those with `@` are for the renderer.
        children: the nested nodes.
    """

    id: int
    role: str
    name: str
    flags: int
    box: tuple[int, ...]
    states: list[str]
    children: list[Node] = field(default_factory=list)

    @property
    def in_view(self) -> bool:
        """Whether a part of the element is inside the viewport."""
        return bool(self.flags & IN_VIEW)

    def line(self) -> str:
        """The element as text, without its indentation."""
        line = f"[{self.id}] {self.role} '{unquoted(self.name)}'"
        for state in self.states:
            if not state.startswith("@"):
                key, _, text = state.partition(": ")
                line += f" {key}: {value(text)}"
        return line

    def to_dict(self) -> dict[str, Any]:
        """Role, name, box and states as an object."""
        facts: dict[str, Any] = {"role": self.role, "name": self.name, "box": list(self.box)}
        for state in self.states:
            key, _, text = state.removeprefix("@covered").partition(": ")
            key = "covered by" if key == " by" else key
            if not key.startswith("@"):
                facts.setdefault(key, {"true": True, "false": False}.get(text, text))
        return facts


def parse_records(
    text: str, *, ids: dict[int, int] | None = None, offset: tuple[float, float] = (0.0, 0.0)
) -> list[Node]:
    """Parse the records of a walk into trees of nodes.

    Args:
        text: the `records` of a walk.
        ids: page-wide ids by the ids in the records; None if they are page-wide.
        offset: position (x, y) of the frame's content in the main frame, in CSS pixels.
    """
    roots: list[Node] = []
    stack: list[tuple[int, Node]] = []
    for record in text.split("\x1e") if text else ():
        depth_text, id_text, role, flags, box_text, name, states = record.split("\x1f")
        depth, number = int(depth_text), int(id_text)
        box: tuple[int, ...] = ()
        if box_text:
            x, y, width, height = map(int, box_text.split(","))
            box = (round(x + offset[0]), round(y + offset[1]), width, height)
        node = Node(
            id=number if ids is None else ids[number],
            role=role,
            name=name,
            flags=int(flags),
            box=box,
            states=states.split("\x1d") if states else [],
        )
        while stack and stack[-1][0] >= depth:
            stack.pop()
        (stack[-1][1].children if stack else roots).append(node)
        stack.append((depth, node))
    return roots


def flatten(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield all nodes in the order of their lines."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def nest_popups(roots: list[Node]) -> None:
    """Move the items of open pop-ups below the elements that opened them."""
    openers = [n for n in flatten(roots) if any(s.startswith("@items ") for s in n.states)]
    if openers:
        parents: dict[int, tuple[list[Node], Node]] = {}
        for siblings in [roots, *(n.children for n in flatten(roots))]:
            for node in siblings:
                parents[node.id] = (siblings, node)
        for opener in openers:
            popup_id = next(int(s[7:]) for s in opener.states if s.startswith("@items "))
            siblings, popup = parents.get(popup_id, ([], opener))
            if all(n is not opener for n in flatten([popup])):
                siblings.remove(popup)
                opener.children.append(popup)
                parents[popup_id] = (opener.children, popup)


def cut(nodes: list[Node], *, viewport_only: bool) -> list[Node]:
    """Return a copy of the trees without empty nodes and, if requested, those out of view."""
    kept: list[Node] = []
    for node in nodes:
        children = cut(node.children, viewport_only=viewport_only) if node.children else []
        shown = node.in_view or not viewport_only
        if not children and (not shown or _is_empty(node)):
            continue
        if _is_transparent(node, children):
            kept.extend(children)
            continue
        kept.append(
            Node(
                node.id,
                node.role,
                node.name,
                node.flags,
                node.box,
                _states(node, children),
                children,
            )
        )
    return kept


def _states(node: Node, children: list[Node]) -> list[str]:
    """The states of a node. `expanded: true` beside `hasPopup` promises nested lines to clients,
    so it becomes `open: true` if none follow."""
    if children or "expanded: true" not in node.states:
        return node.states
    if not any(state.startswith("hasPopup") for state in node.states):
        return node.states
    return _open(node.states)


def _open(states: list[str]) -> list[str]:
    return ["open: true" if state == "expanded: true" else state for state in states]


def agree(whole: list[Node], shown: list[Node]) -> None:
    """Make states agree: a node that is `open` in one tree is `open` in the other.

    Args:
        whole: trees of the whole page; changed in place.
        shown: all nodes of the trees that are limited to the viewport.
    """
    opened = {node.id for node in shown if "open: true" in node.states}
    if opened:
        for node in flatten(whole):
            if node.id in opened:
                node.states = _open(node.states)


def _is_empty(node: Node) -> bool:
    """Whether a node is a container without content, or a text without characters."""
    if node.flags & INTERACTIVE or node.name or node.states:
        return False
    return node.role in _LOOSE or node.role == "StaticText"


def _is_transparent(node: Node, children: list[Node]) -> bool:
    """Whether the children of a container replace it."""
    if node.role not in _LOOSE or node.flags & INTERACTIVE or node.states:
        return False
    if node.name and not (len(children) == 1 and children[0].name == node.name):
        return False
    return node.role in _BARE or len(children) <= 1


def to_lines(nodes: list[Node], depth: int = 1) -> Iterator[str]:
    """Yield the lines of trees, indented by one tab per level."""
    indent = "\t" * depth
    for node in nodes:
        yield indent + node.line()
        if node.children:
            yield from to_lines(node.children, depth + 1)


def scroll_line(above: int, below: int, left: int = 0, right: int = 0) -> str:
    """Line [2]: how much of the page lies beyond each side of the viewport, in pixels."""
    parts = []
    if above > 0 or below > 0:
        parts.append(f"{above} px above, {below} px below")
    if left > 0 or right > 0:
        parts.append(f"{left} px left, {right} px right")
    return f"[2] scrollbar '{', '.join(parts) or 'the whole page is in view'}'"


def render_body(title: str, scroll: dict[str, int], nodes: list[Node], state: str = "") -> str:
    """Render an observation without the lines of the tabs.

    Args:
        title: of the page.
        state: a state of the whole document, or empty.
        scroll: `above`, `below`, `left` and `right` in pixels.
        nodes: the trees, after `cut`.
    """
    root = Node(1, "RootWebArea", title, IN_VIEW, (), [state] if state else [])
    lines = [
        root.line(),
        "\t" + scroll_line(*(scroll.get(side, 0) for side in ("above", "below", "left", "right"))),
    ]
    lines.extend(to_lines(nodes))
    return "\n".join(lines)


def to_snapshot(title: str, nodes: list[Node]) -> dict[str, Any]:
    """Return the page as nested objects {role, name, children}."""

    def convert(node: Node) -> dict[str, Any]:
        return {
            "role": node.role,
            "name": node.name,
            "children": [convert(child) for child in node.children],
        }

    return {"role": "RootWebArea", "name": title, "children": [convert(node) for node in nodes]}
