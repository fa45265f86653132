"""Choose from lists that pages make of other elements than `select`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from web_server import fields, hands, usage
from web_server.errors import Conflict
from web_server.observe import Target
from web_server.surface import Surface
from web_server.view import one_line

_MENU_ITEMS = frozenset({"menuitem", "menuitemradio", "menuitemcheckbox"})
_ITEMS = _MENU_ITEMS | {"option", "treeitem", "listitem"}
_SHOWN_NAMES = 10

Elements = Mapping[str, Mapping[str, Any]]


async def choose(surface: Surface, use: Mapping[str, Any], label: str) -> str:
    """Click the item of that name: an item of the list, or one that appears when it is opened.

    Where one may type into the list, the name is typed last; it is taken back without an item.

    Args:
        surface: the page.
        use: of the list, as `usage.check` returns it.
        label: name of the item, white space and case aside.

    Raises:
        Conflict: the element is not a list, or has no such item.
    """
    target = await hands.find(surface, use["id"])
    name = hands.describe(target)
    before = (await surface.observer.observe(scope="page", elements=True)).elements
    item = _item(before, label, surface.observer.parts_of(target.id))
    if item is None and use["how"] == "opens" and not use["closed"]:
        # It may be open already, and its items anywhere on the page.
        roles = {"option", "treeitem", *(_MENU_ITEMS if use["menu"] else ())}
        item = _item(before, label, roles=roles)
    if item is None and use["how"] != "opens":
        raise Conflict(
            f"[{target.id}] {name} is not a list with the item '{one_line(label)}': click it and "
            "choose from what appears"
        )
    if item is None:
        item = await _open(surface, target, label, before)
    await hands.click(surface, await hands.reach(surface, item))
    return f"selected '{one_line(label)}' in {name}"


async def _open(surface: Surface, target: Target, label: str, before: Elements) -> str:
    """Open a list, and return the id of its item of that name."""
    target = await hands.reach(surface, str(target.id))
    await hands.click(surface, target)
    item, names = await _appeared(surface, target, label, before)
    if item is None and target.editable and target.role == "combobox":
        field = await usage.check(surface, str(target.id), "text")
        held = await fields.content(target)
        await fields.fill(surface, await hands.reach(surface, field["id"]), field["how"], label)
        item, names = await _appeared(surface, target, label, before)
        if item is None:
            target = await hands.reach(surface, field["id"])
            await fields.fill(surface, target, field["how"], held)
    if item is not None:
        return item
    shows = ", ".join(f"'{each}'" for each in names[:_SHOWN_NAMES])
    raise Conflict(
        f"[{target.id}] {hands.describe(target)} shows no item '{one_line(label)}': "
        + (f"it shows {shows}" if shows else "click it and choose from what appears")
    )


async def _appeared(
    surface: Surface, target: Target, label: str, before: Elements
) -> tuple[str | None, list[str]]:
    """The item of that name among what is new on the page, and the names of all new items."""
    await surface.settler.settle()
    now = (await surface.observer.observe(scope="page", elements=True)).elements
    parts = {str(each) for each in surface.observer.parts_of(target.id)}
    new = {key: each for key, each in now.items() if key not in before or key in parts}
    item = _item(new, label) or _item(new, label, roles=None) or _item(now, label, roles={"option"})
    names = [one_line(each["name"]) for each in new.values() if each["role"] in _ITEMS]
    return item, [name for name in names if name]


def _item(
    elements: Elements,
    label: str,
    among: Collection[int] | None = None,
    *,
    roles: Collection[str] | None = _ITEMS,
) -> str | None:
    """Return the id of the first element of that name, or None.

    Args:
        elements: of an observation, by id.
        label: the name, white space and case aside.
        among: ids to look at; None for all.
        roles: roles to look at; None for all.
    """
    wanted = one_line(label).lower()
    for key, element in elements.items():
        named = one_line(element.get("name", "")).lower() == wanted
        meant = among is None or int(key) in among
        if named and meant and (roles is None or element.get("role") in roles):
            return key
    return None
