"""/takePicture: small pictures of a page with boxes of elements, for viewers of a run."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from PIL import Image
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/step-picture"] = """<!doctype html><title>Step</title><style>body { margin: 0 }
    button, input { position: absolute; box-sizing: border-box; width: 100px; height: 40px }
    #far { top: 2000px }
    #go { left: 200px; top: 100px; background: #000 } #name { left: 400px; top: 300px }</style>
    <button id="go">Go</button><input id="name" aria-label="Name"><button id="far">Far</button>
    <script>onresize = () => { document.title = 'resized' };
    onscroll = () => { document.title = 'scrolled' };</script>"""


def image_of(reply: dict[str, Any]) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(reply["image"])))
    assert image.format == "WEBP"
    return image


def picture(client: Client, **fields: Any) -> dict[str, Any]:
    body = {"browserId": client.browser, "pageId": client.page, **fields}
    return client.ok("takePicture", **body)


def test_a_step_picture_is_small_and_has_the_boxes_of_the_elements_in_view(client: Client) -> None:
    client.open("/step-picture")
    go = client.id_of("button 'Go'")
    reply = picture(client)
    assert image_of(reply).size == (720, 405) and len(reply["image"]) < 4000
    assert (reply["width"], reply["height"]) == (1280, 720)
    assert reply["url"].endswith("/step-picture") and reply["targets"] == []
    assert reply["elements"][go] == [200, 100, 100, 40]
    assert all(0 <= box[1] < 720 for box in reply["elements"].values())


def test_an_unchanged_page_gives_the_same_bytes(client: Client) -> None:
    client.open("/step-picture")
    assert picture(client)["image"] == picture(client)["image"]


def test_the_target_of_an_action_is_found_by_id_name_point_and_focus(client: Client) -> None:
    client.open("/step-picture")
    go, name = client.id_of("button 'Go'"), client.id_of("textbox 'Name'")
    box, field = [200, 100, 100, 40], [400, 300, 100, 40]
    assert picture(client, actionName="click", targetId=go)["targets"] == [box]
    assert picture(client, actionName="click", targetId="button 'Go'")["targets"] == [box]
    assert picture(client, actionName="drag", targetId=go, toId=name)["targets"] == [box, field]
    at = picture(client, actionName="click_at", x=30, y=40)
    assert at["targets"] == [[30, 40, 0, 0]]
    inside = picture(client, actionName="click_at", targetId=go, x=5, y=6)
    assert inside["targets"] == [box, [205, 106, 0, 0]]
    path = [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]
    drawn = picture(client, actionName="drag_path", path=path)
    assert drawn["targets"] == [[1, 2, 0, 0], [5, 6, 0, 0]]
    client.act("click", targetId=name, observe=False)
    assert picture(client, actionName="press", keys=["Enter"])["targets"] == [field]


def test_a_target_out_of_view_has_a_box_below_the_picture_and_the_page_does_not_notice(
    client: Client,
) -> None:
    client.open("/step-picture")
    client.act("find", text="Far")
    number = client.message.partition("[")[2].partition("]")[0]
    reply = picture(client, actionName="click", targetId=number)
    assert reply["targets"] == [[0, 2000, 100, 40]] and number not in reply["elements"]
    assert client.tree(screenshot="none")["title"] == "Step"


def test_a_missing_target_gives_a_picture_without_targets(client: Client) -> None:
    client.open("/step-picture")
    assert picture(client, actionName="click", targetId="999")["targets"] == []
    assert picture(client, actionName="click", targetId="button 'None'")["targets"] == []


def test_a_step_picture_leaves_the_pending_events_to_the_next_observation(client: Client) -> None:
    client.open("/step-picture")
    client.act("evaluate", observe=False, text="alert('hello')")
    assert picture(client)["image"]
    assert any("hello" in line for line in client.tree(screenshot="none")["dialogs"])


def test_a_scrolled_page_is_pictured_where_it_is(client: Client) -> None:
    client.open("/step-picture")
    before = image_of(picture(client)).convert("L").getextrema()
    assert before[0] < 50  # the black button
    client.act("scroll", actionValue="down")
    assert image_of(picture(client)).convert("L").getextrema()[0] > 100
