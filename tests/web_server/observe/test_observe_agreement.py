"""Roles and names of observations agree with Chromium's accessibility tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observe_lab import Lab
from paths import SUPPORT

from web_server.observe import render

pytestmark = pytest.mark.browser

PAGES = sorted((SUPPORT / "web" / "observe_pages").glob("*.html"))

# What has to be there whenever Chromium's tree has it. Structure and pictures may be left out.
WANTED = re.compile(
    "button|checkbox|combobox|heading|link|listbox|menuitem.*|meter|option|progressbar|radio|row|"
    "searchbox|slider|switch|tab|table|textbox|treeitem|Date|InputTime|DateTime|ColorWell"
)
# Roles without a name in Chromium's tree to which observations give their text.
NAMED_BY_US = {
    "row", "generic", "group", "listitem", "LabelText", "separator", "paragraph", "strong", "code",
}  # fmt: skip
# Parts that Chromium builds into date fields, and headings and rows inside something named by them.
BUILT_IN = re.compile(r"Show .* picker.*|Card title|In a row")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def squash(text: str) -> str:
    return " ".join(re.sub("[\ue000-\uf8ff]", " ", text).split())


async def chromium_tree(lab: Lab) -> dict[int, dict[str, Any]]:
    """By DOM node: the nodes of the accessibility tree that are not ignored."""
    session = lab.observer._walker.main.session
    answer = await session.send("Accessibility.getFullAXTree")
    found: dict[int, dict[str, Any]] = {}
    for node in answer["nodes"]:
        if not node.get("ignored") and "backendDOMNodeId" in node:
            found.setdefault(node["backendDOMNodeId"], node)
    return found


async def dom_node(lab: Lab, element_id: int) -> int:
    """Return the backend id of the DOM node of an element id."""
    world = lab.observer._walker.main
    answer = await world.session.send(
        "Runtime.callFunctionOn",
        {
            "functionDeclaration": "(id) => ckObserver.elementOf(id)",
            "executionContextId": world._context,
            "arguments": [{"value": element_id}],
        },
    )
    described = await world.session.send(
        "DOM.describeNode", {"objectId": answer["result"]["objectId"]}
    )
    return int(described["node"]["backendNodeId"])


def _plain(name: str) -> str:
    """Return a name without the marks of cells, superscripts and struck text."""
    return re.sub(r"\^|~~", "", name.replace(" | ", " "))


async def compare(lab: Lab) -> tuple[int, list[str]]:
    """How many elements were compared, and what differs."""
    tree = await chromium_tree(lab)
    await lab.observer.observe(scope="page", all_options=True)
    compared, differences = 0, []
    missing = dict(tree)
    for node in lab.observer._last:
        number = await dom_node(lab, node.id)
        missing.pop(number, None)
        expected = tree.get(number)
        if node.role == "StaticText" or expected is None:
            continue
        compared += 1
        role = expected["role"]["value"].replace("-", "")
        name = squash(expected.get("name", {}).get("value", ""))
        if role != node.role:
            differences.append(f"Chromium says {role} {name!r}, we: {node.line()}")
        elif squash(_plain(node.name)) != name and (name or role not in NAMED_BY_US):
            differences.append(f"Chromium says {name!r}, we: {node.line()}")
    for expected in missing.values():
        name = squash(expected.get("name", {}).get("value", ""))
        if WANTED.fullmatch(expected["role"]["value"]) and not BUILT_IN.fullmatch(name):
            differences.append(f"the observation has no {expected['role']['value']} {name!r}")
    return compared, differences


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_roles_and_names_agree(lab: Lab, page: Path) -> None:
    lab.show(page.read_text(encoding="utf-8"))
    compared, differences = lab.run(compare(lab))
    assert not differences, "\n".join(differences)
    assert compared > 40


def test_the_pages_contain_many_roles(lab: Lab) -> None:
    roles: set[str] = set()
    for page in PAGES:
        lab.show(page.read_text(encoding="utf-8"))
        lab.observe(scope="page", all_options=True)
        roles |= {node.role for node in render.flatten(lab.observer._last)}
    assert len(roles) >= 45, sorted(roles)
