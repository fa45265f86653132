"""One declaration per web action: `@action` on a handler is all that the server needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_client import Client

from web_server.actions import registry
from web_server.actions.action_context import ActionContext
from web_server.actions.registry import action, action_names, find_action
from web_server.contract import PerformAction
from web_server.errors import BadRequest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def nod() -> Iterator[None]:
    """An action declared in this file, and nowhere else."""

    @action("nod", "nod_twice", settles=False, acts=False)
    async def nod(context: ActionContext) -> str:
        return f"nodded at {context.tab.url()}"

    yield
    for name in ("nod", "nod_twice"):
        registry._ACTIONS.pop(name)


@pytest.mark.browser
def test_an_action_declared_in_one_file_works_on_the_wire(client: Client, nod: None) -> None:
    client.open("/two")
    client.act("Nod")
    assert client.message == f"nodded at {client.site}/two"
    client.act("nod-twice")
    assert client.message.startswith("nodded at ")
    client.act("shake", status=400)
    assert "unknown actionName 'shake'" in client.message and "nod_twice" in client.message


def test_an_action_is_found_in_any_case_and_spelling() -> None:
    found = find_action(PerformAction(actionName=" Double-Click_At "))
    assert found.name == "double_click_at" and found.expects_change
    assert find_action(PerformAction(actionName="select_option")).name == "select"


def test_a_missing_action_name_lists_the_known_ones() -> None:
    with pytest.raises(BadRequest, match=r"actionName is missing: use one of .*goforward"):
        find_action(PerformAction())


def test_the_documentation_lists_every_action_and_no_other() -> None:
    text = (ROOT / "docs" / "web_server.md").read_text(encoding="utf-8")
    table = text.split("| actionName |", 1)[1].split("\n\n", 1)[0]
    cells = re.findall(r"^\| ([a-z_, ]+) \|", table, re.MULTILINE)
    listed = [name for cell in cells for name in cell.split(", ")]
    assert sorted(listed) == sorted(action_names())
