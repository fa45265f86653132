"""Actions that return data to the code: fetch, evaluate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_wire import FakeWire
from web_scripts import web_env

from ck_pro.approval import describe
from ck_pro.exceptions import ParseError, ToolError
from ck_pro.executor import CodeExecutor
from ck_pro.run.results import code_observation
from ck_web import WebAgent
from ck_web.actions import ACTIONS, parse_action
from ck_web.actions import PREDEFINED_WEB_ACTIONS as WRITE
from ck_web.tools import WebTool

URL = "http://shop.test/api"
REPLY = {"status": 200, "url": URL, "type": "text/html", "text": "hello"}


def test_fetch_writes_a_url_or_a_request() -> None:
    assert WRITE["fetch"](URL) == f"fetch {URL}"
    assert ACTIONS["fetch"].wire(parse_action("fetch /a?b"))["actionValue"] == "/a?b"
    string = WRITE["fetch"](URL, method="post", data={"a": 1, "b": ["x", "y z"]})
    fields = ACTIONS["fetch"].request_fields(parse_action(string))
    assert (fields["actionValue"], fields["method"], fields["text"]) == (
        URL,
        "POST",
        "a=1&b=x&b=y+z",
    )
    assert fields["headers"] == {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("data", "headers", "body", "kind"),
    [
        ({"a": 1}, {"content-type": "application/json"}, '{"a": 1}', "application/json"),
        ([1, 2], {}, "[1, 2]", "application/json"),
        ("a=1", {}, "a=1", "application/x-www-form-urlencoded"),
        ("<a/>", {"Content-Type": "text/xml"}, "<a/>", "text/xml"),
    ],
)
def test_fetch_encodes_its_data(
    data: object, headers: dict[str, str], body: str, kind: str
) -> None:
    action = parse_action(WRITE["fetch"](URL, "PUT", data, headers))
    sent = ACTIONS["fetch"].wire(action)
    assert sent["text"] == body
    assert [text for name, text in sent["headers"].items() if name.lower() == "content-type"] == [
        kind
    ]


@pytest.mark.parametrize("text", ["fetch", "fetch {}", 'fetch {"url": "x", "verb": "GET"}'])
def test_a_request_without_a_url_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="fetch needs a URL"):
        parse_action(text)


def test_an_approver_sees_requests_and_scripts() -> None:
    actions = [WRITE["fetch"](URL, "POST", "sum=5"), "evaluate buy()"]
    shown = [
        describe(a.model_copy(update={"value_name": ACTIONS[a.name].value_name}))
        for a in map(parse_action, actions)
    ]
    assert shown[0].startswith(f"fetch(url='{URL}', method='POST', data='sum=5'")
    assert shown[1] == "evaluate(script='buy()')"


@pytest.mark.integration
def test_data_goes_to_the_code_and_a_line_to_the_log(wire: FakeWire, tmp_path: Path) -> None:
    wire.data = {"fetch": REPLY, "evaluate": {"value": [1, None]}}
    env = web_env(wire, tmp_path)
    run = SimpleNamespace(act=env.execute)
    functions = {n: WebTool(name=n).bind(run) for n in ("fetch", "evaluate")}  # type: ignore[arg-type]
    with CodeExecutor(functions) as executor:
        done = executor.run(f"print(fetch({URL!r})['text'])\nevaluate('f()') == [1, None]")
    assert code_observation(done) == "\n".join(
        [
            f"fetch {URL}: HTTP 200, 5 characters",
            REPLY["text"],
            "evaluate 'f()': 9 characters of JSON",
            "Last value: True",
        ]
    )
    wire.data = {}
    with pytest.raises(ToolError, match="too old for fetch"):
        functions["fetch"](URL)
    env.close()


@pytest.mark.integration
def test_a_setting_switches_scripts_off(wire: FakeWire, tmp_path: Path) -> None:
    env = web_env(wire, tmp_path, evaluate=False)
    assert "the setting evaluate" in env.step_state("evaluate 1 + 1")
    assert wire.acted == []
    env.close()
    names = [f.name for f in WebAgent(web_env={"evaluate": False}).functions()]
    assert "evaluate" not in names and "fetch" in names
    assert "evaluate" in [f.name for f in WebAgent().functions()]
