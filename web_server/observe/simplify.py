"""Shorten the trees of an observation without losing an element that a user can act on."""

from __future__ import annotations

from collections import defaultdict

from web_server.observe.render import IN_VIEW, INTERACTIVE, Node, flatten

CONTROLS = frozenset(
    {
        "Date", "DateTime", "InputTime", "ColorWell", "LabelText", "button", "checkbox",
        "combobox", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
        "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem",
    }
)  # fmt: skip
_TOGGLES = frozenset({"checkbox", "radio", "switch"})
_COVERED = "covered by: "
_LISTENERS = ("clickable: true", "focusable: true", "hoverable: true")
_MOST_SPACE = 3.0  # how much larger a wrapper may be than its control
_FEW = 3


def drop_wrappers(nodes: list[Node], parent: Node | None = None) -> list[Node]:
    """Remove generic elements that only repeat the controls inside or around them.

    A click on the control reaches the listeners of its wrappers, and a click on a control reaches
    those of its icon. Wrappers with another name, a state or more space stay.

    Args:
        nodes: trees; changed in place.
        parent: the node around them.

    Returns:
        the trees that remain.
    """
    kept: list[Node] = []
    for node in nodes:
        node.children = drop_wrappers(node.children, node)
        if _is_icon(node, parent) or _is_wrapper(node):
            kept.extend(node.children)
        else:
            kept.append(node)
    return kept


def _only_listens(node: Node) -> bool:
    """Whether a node is a cell or a generic element of which only listeners are known."""
    return node.role in ("generic", "cell") and all(
        state in _LISTENERS or state == "disabled: true" or state.startswith(_COVERED)
        for state in node.states
    )


def _is_icon(node: Node, parent: Node | None) -> bool:
    """Whether a node is a part of a named control that says nothing more."""
    return (
        parent is not None
        and parent.role in CONTROLS
        and bool(parent.name)
        and not node.children
        and node.name in ("", parent.name)
        and _only_listens(node)
        and "focusable: true" not in node.states
    )


def _is_wrapper(node: Node) -> bool:
    """Whether a node is around controls, fills little more space, and has no other name.

    A cell may be larger than its check box.
    """
    leaves = [inner for inner in flatten(node.children) if not inner.children]
    if not leaves or not _only_listens(node) or not all(map(_takes_clicks, leaves)):
        return False
    if node.name and (len(node.children) > 1 or node.name != node.children[0].name):
        return False
    if node.role == "cell" and all(leaf.role in _TOGGLES for leaf in leaves):
        return True
    boxes = [inner.box for inner in leaves if inner.box]
    if not node.box or not boxes:
        return not node.states
    width = max(x + w for x, _, w, _ in boxes) - min(x for x, _, _, _ in boxes)
    height = max(y + h for _, y, _, h in boxes) - min(y for _, y, _, _ in boxes)
    return node.box[2] * node.box[3] <= _MOST_SPACE * width * height


def _takes_clicks(node: Node) -> bool:
    return node.role in CONTROLS or "clickable: true" in node.states


def fold_covers(roots: list[Node]) -> str:
    """Replace equal `covered by` notes of many elements by one.

    Under a dialog, all other elements are covered: one state of the document says so. An element
    that covers its own content, such as a panel that is loading, says so in its line.

    Args:
        roots: trees; changed in place.

    Returns:
        the state of the document; empty if not everything outside one element is covered.
    """
    covers: defaultdict[str, list[Node]] = defaultdict(list)
    for node in flatten(roots):
        if note := _cover_of(node):
            covers[note].append(node)
    every = [node for node in flatten(roots) if _can_be_covered(node)]
    for note, covered in covers.items():
        if len(covered) < _FEW:
            continue
        free = [node for node in every if _cover_of(node) != note]
        found = next((n for n in flatten(roots) if f"(id {n.id})" in note), None)
        if found is not None and _contains(found, covered) and not _any_inside(found, free):
            found.states = [*found.states, "covered: everything inside"]
            _hide_notes(covered)
            continue
        above = found or _smallest_around(roots, free)
        if above is not None and _contains(above, free) and not _any_inside(above, covered):
            _hide_notes(covered)
            name = f"{above.role} {above.name[:40]}".strip()
            return f"covered: everything outside {name} (id {above.id})"
    return ""


def _cover_of(node: Node) -> str:
    return next((state for state in node.states if state.startswith(_COVERED)), "")


def _can_be_covered(node: Node) -> bool:
    return bool(node.flags & IN_VIEW and node.flags & INTERACTIVE and node.role != "option")


def _hide_notes(nodes: list[Node]) -> None:
    for node in nodes:
        node.states = ["@" + s if s.startswith(_COVERED) else s for s in node.states]


def _contains(outer: Node, nodes: list[Node]) -> bool:
    inside = {node.id for node in flatten([outer])}
    return all(node.id in inside for node in nodes)


def _any_inside(outer: Node, nodes: list[Node]) -> bool:
    inside = {node.id for node in flatten(outer.children)}
    return any(node.id in inside for node in nodes)


def _smallest_around(roots: list[Node], nodes: list[Node]) -> Node | None:
    """The innermost dialog, menu or list that contains all these nodes."""
    found: Node | None = None
    for node in flatten(roots) if nodes else ():
        if node.role in ("dialog", "alertdialog", "menu", "listbox") and _contains(node, nodes):
            found = node
    return found
