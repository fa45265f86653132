"""Error messages name the field, its value and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from server_client import Client

from web_server import contract
from web_server.api.parsing import parse, unknown_fields
from web_server.errors import BadRequest

ODD: dict[str, Any] = {"a": [1]}
LONG = ["k"] * 1001


def _message(model: type[contract.Wire], body: Any) -> str:
    with pytest.raises(BadRequest) as error:
        parse(model, json.dumps(body).encode())
    assert "\n" not in error.value.message and len(error.value.message) < 300
    return error.value.message


@pytest.mark.parametrize("model", [contract.PerformAction, contract.OpenPage, contract.GotoUrl])
def test_an_error_names_a_field_of_a_wrong_type_and_its_value(model: type[contract.Wire]) -> None:
    for name in model.model_fields:
        if name in ("targetElementType", "targetElementName", "files", "headers"):
            continue  # hints that are never read; and what an object is right for
        message = _message(model, {name: ODD})
        assert message.startswith(name)
        assert '{"a": [1]}' in message and (" must be " in message or " is missing" in message)


@pytest.mark.parametrize(
    ("model", "body", "said"),
    [
        (contract.PerformAction, {"x": "abc"}, 'x must be a number, not "abc"'),
        (contract.PerformAction, {"x": float("nan")}, "x must be a number, not NaN"),
        (contract.PerformAction, {"since": 1.5}, "since must be a whole number, not 1.5"),
        (contract.PerformAction, {"timeout": -1}, "timeout must be 0 or more, not -1"),
        (contract.PerformAction, {"needEnter": "x"}, 'needEnter must be true or false, not "x"'),
        (contract.PerformAction, {"targetId": ["7"]}, 'targetId must be a text, not ["7"]'),
        (contract.PerformAction, {"keys": [["a"]]}, 'keys.0 must be a text, not ["a"]'),
        (contract.PerformAction, {"keys": LONG}, "keys is too long: 1,000 items at most"),
        (
            contract.PerformAction,
            {"text": "x" * 1_000_001},
            "text is too long: 1,000,000 characters at most",
        ),
        (contract.PerformAction, {"path": [{"x": 1}]}, 'path.0.y is missing: path.0 is {"x": 1}'),
        (contract.PerformAction, {"path": 3}, "path.0 must be a JSON object, not 3"),
        (contract.PerformAction, {"files": 3}, "files.0 must be a JSON object, not 3"),
        (contract.PerformAction, {"files": [{"name": []}]}, "files.0.name must be a text, not []"),
        (
            contract.PerformAction,
            {"button": "up"},
            "button must be 'left', 'right' or 'middle', not \"up\"",
        ),
        (contract.GetBrowser, {"viewport": {"width": 1}}, "viewport.width must be 100 or more"),
        (contract.GetBrowser, {"viewport": "big"}, "viewport: must be a JSON object"),
        (contract.GetBrowser, {"leaseSeconds": 0}, "leaseSeconds must be more than 0, not 0"),
        (
            contract.GetBrowser,
            {"geoLocation": {"latitude": 9}},
            'geoLocation.longitude is missing: geoLocation is {"latitude": 9}',
        ),
        (contract.GetBrowser, {"storageState": [1]}, "storageState must be a JSON object, not [1]"),
        (contract.GetBrowser, [1], "the body must be a JSON object, not [1]"),
    ],
)
def test_the_message_for_each_kind_of_wrong_field(
    model: type[contract.Wire], body: Any, said: str
) -> None:
    assert _message(model, body).startswith(said)


def test_an_unknown_field_is_named_with_the_nearest_known_one() -> None:
    def hint(**body: Any) -> str:
        raw = json.dumps(body).encode()
        parse(contract.PerformAction, raw)
        return unknown_fields(contract.PerformAction, raw)

    assert hint(actionName="click", targetId=3) == ""
    assert hint(targetID=3) == "the field 'targetID' is unknown and was ignored: use targetId"
    assert hint(target_id=3).endswith("use targetId")
    assert hint(zzz=1, yyy=2) == "unknown fields were ignored: 'zzz', 'yyy'"


ACTIONS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "actionName is missing: use one of "),
    ({"actionName": "clik"}, 400, "unknown actionName 'clik'; known: "),
    ({"actionName": "click"}, 400, "targetId is missing: give the number"),
    (
        {"actionName": "click", "targetID": 3},
        400,
        "the field 'targetID' is unknown and was ignored: use targetId",
    ),
    (
        {"actionName": "click", "targetId": "OK"},
        400,
        "targetId must be the number before",
    ),
    ({"actionName": "click", "targetId": 4711}, 404, "Element [4711] is not on the page now"),
    ({"actionName": "click", "targetId": "9" * 99}, 404, "targetId: there is no element [9999"),
    ({"actionName": "click", "targetId": 3, "keys": "q"}, 400, "keys: 'q' is not a modifier: use"),
    ({"actionName": "drag", "targetId": 3}, 400, "drag needs toId, or x and y, or deltaX"),
    ({"actionName": "drag", "targetId": 3, "toId": "x"}, 400, "toId must be the number"),
    ({"actionName": "drag", "targetId": 3, "toId": 4711}, 404, "Element [4711] is not on"),
    ({"actionName": "click_at", "x": 5}, 400, "click_at needs x and y"),
    ({"actionName": "click_at", "x": 5, "y": 9999}, 400, "(5, 9999) is outside the viewport"),
    ({"actionName": "press", "keys": "Ctrl+Foo"}, 400, "keys: unknown key 'Ctrl+Foo': use"),
    ({"actionName": "press"}, 400, "press needs `keys`, for example"),
    ({"actionName": "scroll", "actionValue": "back"}, 400, "actionValue of scroll must be one of"),
    ({"actionName": "scroll_to"}, 400, "scroll_to needs targetId or text"),
    ({"actionName": "read", "actionValue": "x"}, 400, "actionValue of read must be the number"),
    ({"actionName": "read", "actionValue": "7"}, 400, "the number of a part, 1 to 1, not 7"),
    ({"actionName": "answer_dialog", "actionValue": "no"}, 400, "not 'no'"),
    ({"actionName": "upload", "targetId": 3, "files": "/etc/x"}, 404, "files: '/etc/x' is not in"),
    ({"actionName": "wait", "pageId": 7}, 404, "pageId: no page '7' in this browser (open pages"),
    ({"actionName": "wait", "browserId": ""}, 400, "browserId is missing: call /getBrowser"),
    ({"actionName": "wait", "browserId": "gone"}, 404, "browserId: no such browser as 'gone"),
]


@pytest.mark.browser
def test_the_message_for_each_action_that_fails(client: Client) -> None:
    client.open("/form")
    for body, status, said in ACTIONS:
        where = {"browserId": client.browser, "pageId": client.page}
        reply = client.post("performAction", **{**where, **body})
        message = reply.json()["error"]
        assert reply.status_code == status and said in message, (body, message)
        assert "\n" not in message
    assert client.post("openPage", browserId=client.browser).json()["error"].startswith("url is")
