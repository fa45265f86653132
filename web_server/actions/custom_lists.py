"""Choose from lists that pages build from elements other than `select`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from web_server.actions import fields, pointer
from web_server.actions.preconditions import check_usage
from web_server.errors import Conflict
from web_server.observe.target import Target
from web_server.quoting import quoted
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

_MENU_ITEMS = frozenset({"menuitem", "menuitemradio", "menuitemcheckbox"})
_ITEMS = _MENU_ITEMS | {"option", "treeitem", "listitem"}
_SHOWN_NAMES = 10

Elements = Mapping[str, Mapping[str, Any]]


async def choose(page_handle: PageHandle, use: Mapping[str, Any], label: str) -> str:
    """Click an item of a list, or one that appears when the list is opened.

    If the item does not appear and the list has a field, its name is typed to filter the list. If
    that does not help either, the field gets its former content back.

    Args:
        page_handle: the page.
        use: the list, as `check_usage` returned it.
        label: name of the item, white space and case aside.

    Raises:
        Conflict: the element is not a list, or has no such item.
    """
    target = await pointer.find(page_handle, use["id"])
    name = pointer.describe(target)
    before = (await page_handle.observer.observe(scope="page", elements=True)).elements
    item = _item(before, label, page_handle.observer.ids_inside(target.id))
    if item is None and use["how"] == "opens" and not use["closed"]:
        # The list may be open, with its items anywhere on the page.
        roles = {"option", "treeitem", *(_MENU_ITEMS if use["menu"] else ())}
        item = _item(before, label, roles=roles)
    if item is None and use["how"] != "opens":
        advice = "give the id of a list, menu or combo box"
        if use["pressed"]:
            advice += "; if a click opens one, click it and choose from what appears"
        raise Conflict(
            f"{pointer.label(target)} is not a list with the item '{one_line(label)}': {advice}"
        )
    if item is None:
        item = await _open(page_handle, target, label, before)
    await pointer.click(page_handle, await pointer.reach(page_handle, item))
    return f"selected '{one_line(label)}' in {name}"


async def _open(page_handle: PageHandle, target: Target, label: str, before: Elements) -> str:
    """Open a list, and return the id of its item with that name."""
    target = await pointer.reach(page_handle, str(target.id))
    await pointer.click(page_handle, target)
    item, names = await _appeared(page_handle, target, label, before)
    if item is None and target.editable and target.role == "combobox":
        field = await check_usage(page_handle, str(target.id), "text")
        held = await fields.content(target)
        await fields.fill(
            page_handle, await pointer.reach(page_handle, field["id"]), field["how"], label
        )
        item, names = await _appeared(page_handle, target, label, before)
        if item is None:
            target = await pointer.reach(page_handle, field["id"])
            await fields.fill(page_handle, target, field["how"], held)
    if item is not None:
        return item
    shows = ", ".join(quoted(each) for each in names[:_SHOWN_NAMES])
    raise Conflict(
        f"{pointer.label(target)} shows no item '{one_line(label)}': "
        + (f"it shows {shows}" if shows else "click it and choose from what appears")
    )


async def _appeared(
    page_handle: PageHandle, target: Target, label: str, before: Elements
) -> tuple[str | None, list[str]]:
    """Return the id of a new item with that name, and the names of all new items."""
    await page_handle.settler.settle()
    now = (await page_handle.observer.observe(scope="page", elements=True)).elements
    parts = {str(each) for each in page_handle.observer.ids_inside(target.id)}
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
    """Return the id of the first element with a name, or None.

    Args:
        elements: `elements` of an observation.
        label: the name, white space and case aside.
        among: ids to consider; None for all.
        roles: roles to consider; None for all.
    """
    name = one_line(label).lower()
    for key, element in elements.items():
        same_name = one_line(element.get("name", "")).lower() == name
        considered = among is None or int(key) in among
        if same_name and considered and (roles is None or element.get("role") in roles):
            return key
    return None
