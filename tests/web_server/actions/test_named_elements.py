"""Actions on elements by name, resolved by the server in the same request."""

from __future__ import annotations

import pytest
from server_client import LEAN, Client
from server_site import PAGES

from web_server.actions.named_elements import ElementName, candidates, parse_name, similar
from web_server.observe.render import INTERACTIVE, Node

NAMED = """<title>Named</title>
<form onsubmit="event.preventDefault(); out.textContent = 'saved ' + qty.value + ' ' + prio.value">
<label>Quantity <input id=qty></label>
<label>Priority <select id=prio><option>low<option>high</select></label>
<label><input type=checkbox onchange="out.textContent = 'agreed'"> I agree</label>
<h2>Save</h2><button>Save</button><button type=button>Save as draft</button>
<button type=button>Don't save</button></form><p id=out>nothing</p>
<section aria-label=One><a href="#a">Edit</a></section>
<section aria-label=Two><a href="#b">Edit</a></section>
<div style="height: 3000px"></div><button onclick="document.title = 'deep'">Deep button</button>
<iframe srcdoc="<button onclick='top.document.title = `framed`'>Framed</button>"></iframe>"""


@pytest.fixture
def named(client: Client) -> Client:
    PAGES["/act-by-name"] = NAMED
    client.open("/act-by-name")
    return client


@pytest.mark.browser
def test_fields_and_buttons_are_found_by_name_in_one_request(named: Client) -> None:
    named.act("type", targetId="'Quantity'", actionValue="3")
    named.act("select", targetId="'Priority'", actionValue="high")
    page = named.act("click", targetId="button 'Save'")
    assert "'saved 3 high'" in page
    assert "'agreed'" in named.act("check", targetId="'agree'")


@pytest.mark.browser
def test_elements_out_of_view_and_in_frames_are_found_by_a_part_of_their_name(
    named: Client,
) -> None:
    assert "Deep button" not in named.view["yaml"]
    assert "Tab 0 (current): deep" in named.act("click", targetId="'deep B'")
    assert "Tab 0 (current): framed" in named.act("click", targetId="button 'Framed'")


@pytest.mark.browser
def test_a_field_without_a_name_is_found_by_the_text_beside_it(client: Client) -> None:
    PAGES["/named-beside"] = "<title>Beside</title><p>Owner: <input></p><p>Cc: <input></p>"
    client.open("/named-beside")
    assert "value: ada focused: true near: Owner" in client.act(
        "type", targetId="'owner'", actionValue="ada"
    )


@pytest.mark.browser
def test_the_reply_says_which_element_was_named(named: Client) -> None:
    body = {**LEAN, "browserId": named.browser, "pageId": named.page, "targetId": "'Save'"}
    reply = named.ok("performAction", actionName="click", **body)
    number = named.id_of("button 'Save'")
    assert reply["named"] == {"'Save'": f"[{number}] button 'Save'"}
    described = named.ok("describeAction", actionName="click", **body)
    assert described["target"] == "button 'Save'" and described["named"] == reply["named"]
    assert "named" not in named.ok(
        "performAction", actionName="click", **{**body, "targetId": number}
    )


@pytest.mark.browser
def test_several_matches_are_an_error_that_lists_them(named: Client) -> None:
    named.act("click", targetId="link 'Edit'", status=409)
    assert named.message.startswith("2 elements match link 'Edit': [")
    assert "] link 'Edit' in region 'One', [" in named.message
    assert named.message.endswith("] link 'Edit' in region 'Two'; give the id of one")
    assert named.view["title"] == "Named"


@pytest.mark.browser
def test_an_unknown_name_is_an_error_that_lists_similar_ones(named: Client) -> None:
    named.act("click", targetId="button 'Safe'", status=404)
    assert named.message.startswith("the page has no button 'Safe'; similar: [")
    assert "] button 'Save'" in named.message
    named.act("click", targetId="link 'Save'", status=404)
    assert "similar: [" in named.message and "] button 'Save'" in named.message


@pytest.mark.browser
def test_a_named_element_must_be_the_approved_one(named: Client) -> None:
    approved = {"expectedTarget": "button 'Save'", "expectedUrl": f"{named.site}/act-by-name"}
    named.act("click", targetId="'Save as'", status=409, **approved)
    assert "approved for button 'Save', and would now reach button 'Save as draft'" in named.message
    assert "'nothing'" in named.view["yaml"]


def test_a_target_in_quotes_is_a_name() -> None:
    assert parse_name("button 'Save'") == ElementName("button", "Save")
    assert parse_name("['it's']") == ElementName("", "it's")
    assert parse_name("7") is parse_name("[7]") is parse_name("Save") is None


def _node(id: int, role: str, name: str, *children: Node, flags: int = INTERACTIVE) -> Node:
    return Node(id, role, name, flags, (), [], list(children))


def test_exact_names_come_before_parts_and_controls_before_texts() -> None:
    roots = [
        _node(3, "heading", "Save", flags=0),
        _node(4, "button", "Save all"),
        _node(5, "generic", "Save", _node(6, "button", "SAVE")),
        _node(7, "StaticText", "Saved text", flags=0),
    ]
    assert [n.id for n in candidates(roots, ElementName("", "save"))] == [6]
    assert [n.id for n in candidates(roots, ElementName("heading", "save"))] == [3]
    assert [n.id for n in candidates(roots, ElementName("", "sav"))] == [4, 6]
    assert [n.id for n in candidates(roots, ElementName("", "saved"))] == [7]
    assert candidates(roots, ElementName("", " ")) == []
    assert similar(roots, ElementName("link", "Save all"))[0].id == 4
