"""Actions that return data to the code: table, value, find_ids, fetch, evaluate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_wire import FakeWire
from web_scripts import web_env

from ck_pro.approval import Decision, describe, require_approval
from ck_pro.events import Action
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
    with pytest.raises(ToolError, match="fetch returned no data: done"):
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


TABLE = {
    "rows": [["Name", "Age"], ["Ada", "36"], ["Bob", "7"]],
    "columns": ["Name", "Age"],
    "header": 1,
    "start": 0,
    "total": 3,
}


@pytest.mark.parametrize(
    ("arguments", "string", "sent"),
    [
        ({}, "table 1", {"actionValue": "1"}),
        ({"id": 2}, "table 2", {"actionValue": "2"}),
        ({"n": 3, "start": 0}, "table 3 from 0", {"actionValue": "3", "start": 0}),
        ({"id": 7, "dicts": True}, "table [7] dicts", {"targetId": "7"}),
        ({"id": "Orders"}, "table ['Orders']", {"targetId": "'Orders'"}),
    ],
)
def test_a_table_is_a_number_or_an_element(
    arguments: dict[str, object], string: str, sent: dict[str, object]
) -> None:
    assert WRITE["table"](**arguments) == string
    fields = ACTIONS["table"].request_fields(parse_action(string))
    assert fields == {"actionName": "table", **sent}


def test_an_edit_has_both_texts() -> None:
    string = WRITE["edit"](4, 'a "b"\n', "c")
    assert string == r'edit [4] ["a \"b\"\n", "c"]'
    fields = ACTIONS["edit"].request_fields(parse_action(string))
    assert (fields["actionValue"], fields["text"], fields["targetId"]) == ('a "b"\n', "c", "4")
    for wrong in ("edit [4]", "edit [4] new text", 'edit [4] ["", "x"]'):
        with pytest.raises(ParseError, match="edit needs the old text and the new one"):
            parse_action(wrong)


def test_both_texts_of_an_edit_are_hidden_from_an_approver_in_a_secret_field() -> None:
    seen: list[str] = []

    class Shown:
        def review(self, action: Action) -> Decision:
            seen.append(str(action))
            return Decision("approve")

    edit = parse_action('edit [4] ["4111", "4222"]').model_copy(update={"secret": True})
    require_approval(Shown(), edit)
    assert "4111" not in seen[0] and "4222" not in seen[0] and "'***'" in seen[0]


@pytest.mark.integration
def test_tables_values_and_ids_go_to_the_code(wire: FakeWire, tmp_path: Path) -> None:
    wire.data = {
        "table": TABLE,
        "value": {"value": "one\n\ntwo" + "x" * 90},
        "find_ids": {"ids": [3, 4]},
    }
    env = web_env(wire, tmp_path)
    run = SimpleNamespace(act=env.execute)
    functions = {n: WebTool(name=n).bind(run) for n in wire.data}  # type: ignore[arg-type]
    assert functions["table"]() == TABLE["rows"]
    assert functions["table"](dicts=True) == [
        {"Name": "Ada", "Age": "36"},
        {"Name": "Bob", "Age": "7"},
    ]
    assert functions["find_ids"]("a", role="link") == [3, 4]
    with CodeExecutor(functions) as executor:
        done = executor.run("len(table() + [value(4)])")
    first, second, last = code_observation(done).split("\n")
    assert first == "table 1: 3 rows, the first: ['Name', 'Age']"
    assert second.startswith("value [4] textbox ") and second.endswith("...' (98 characters)")
    assert last == "Last value: 4"
    wire.data["table"] = {**TABLE, "columns": [], "header": 0}
    with pytest.raises(ToolError, match="has no header: read it without dicts"):
        functions["table"](dicts=True)
    env.close()


@pytest.mark.integration
def test_a_failed_post_is_an_error_and_a_failed_get_is_marked(
    wire: FakeWire, tmp_path: Path
) -> None:
    wire.data = {"fetch": {**REPLY, "status": 422, "text": "<head>x</head><p>name is\nmissing"}}
    env = web_env(wire, tmp_path)
    fetch = WebTool(name="fetch").bind(SimpleNamespace(act=env.execute))  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="HTTP 422, the request did not succeed: name is missing"):
        fetch(URL, method="POST", data="a=1")
    assert next(iter(fetch(URL).items())) == ("status", 422)
    with CodeExecutor({"fetch": fetch}) as executor:
        done = executor.run(f"fetch({URL!r})['status']")
    line = f"fetch {URL}: HTTP 422 (an error), 32 characters"
    assert code_observation(done) == f"{line}\nLast value: 422"
    env.close()


@pytest.mark.integration
def test_results_begin_with_the_message_of_an_edit_and_of_a_wait(
    wire: FakeWire, tmp_path: Path
) -> None:
    wire.replies["wait_for"].append("'Done' did not appear within 2 s; the page changed")
    env = web_env(wire, tmp_path)
    wire.pages[next(iter(wire.browsers.values()))["history"][-1]][1].append("\t[9] button 'New'")
    said = env.step_state("wait_for 2s Done")
    assert ": 'Done' did not appear within 2 s; new on the page: [9] button 'New'" in said
    env.close()
