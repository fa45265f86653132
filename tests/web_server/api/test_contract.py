"""The wire types and the parts of the server without a browser."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from web_server import contract
from web_server.chromium.chromium import ChromiumNotFound, find_chromium
from web_server.contract import TabInfo

REQUESTS = [
    contract.GetBrowser,
    contract.OpenPage,
    contract.GotoUrl,
    contract.GetAccessibilityTree,
    contract.PerformAction,
    contract.RoundRequest,
    contract.RenewBrowser,
    contract.GetFile,
]


@pytest.mark.parametrize("model", REQUESTS)
def test_any_field_may_be_null_or_missing(model: type[contract.Wire]) -> None:
    nulls = model.model_validate(dict.fromkeys(model.model_fields))
    assert nulls == model.model_validate({})
    assert nulls == model.model_validate({"unknown": 1})


def test_numbers_and_strings_are_interchangeable() -> None:
    action = contract.PerformAction.model_validate(
        {"targetId": 7, "pageId": 0, "needEnter": "true", "x": "3.5", "keys": "Enter"}
    )
    assert (action.targetId, action.pageId, action.needEnter) == ("7", "0", True)
    assert (action.x, action.keys) == (3.5, ["Enter"])
    lease = contract.GetBrowser.model_validate({"storageState": '{"cookies": []}', "tabs": ""})
    assert lease.storageState == {"cookies": []} and lease.tabs is False


def test_a_lone_surrogate_becomes_sendable() -> None:
    action = contract.PerformAction.model_validate(json.loads(r'{"actionValue": "a\ud800b"}'))
    action.actionValue.encode("utf-8")


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
_VALUES = _LEAVES | st.lists(_LEAVES, max_size=2) | st.dictionaries(st.text(max_size=5), _LEAVES)


@given(st.sampled_from(REQUESTS), st.randoms(use_true_random=False), _VALUES, _VALUES)
def test_any_json_is_parsed_or_refused(
    model: type[contract.Wire], choice: random.Random, one: object, other: object
) -> None:
    names = list(model.model_fields)
    body = {choice.choice(names): one, choice.choice(names): other}
    try:
        parsed = model.model_validate(body)
    except ValidationError:
        return
    json.dumps(parsed.model_dump())


@pytest.mark.integration
def test_the_contract_requires_only_pydantic() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['flask','playwright','waitress','click']));"
        "import web_server.contract"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_observation_is_never_null() -> None:
    assert all(value is not None for value in contract.Observation().model_dump().values())


def test_a_configured_chromium_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChromiumNotFound, match=r"^chromium: '.*none' is not"):
        find_chromium(str(tmp_path / "none"))
    monkeypatch.setenv("CK_CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(ChromiumNotFound, match="CK_CHROMIUM: "):
        find_chromium()
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    assert find_chromium(str(mine)) == str(mine)


def test_a_missing_chromium_gives_one_line_with_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CK_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ChromiumNotFound, match=r"web_server.install_chromium") as error:
        find_chromium()
    assert "\n" not in str(error.value)


def test_playwrights_own_chromium_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CK_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    binary = tmp_path / "chromium-1200" / "chrome-linux64" / "chrome"
    binary.parent.mkdir(parents=True)
    binary.write_text("")
    binary.chmod(0o755)
    assert find_chromium() == str(binary)


def test_the_tree_has_tabs_first_and_notices_after_the_scroll_line() -> None:
    from web_server.view import tree_text

    tabs = [
        TabInfo(pageId="0", title="A\nB", url="u", current=True),
        TabInfo(pageId="1", title="C", url="v", current=False),
    ]
    body = "[1] RootWebArea 'A'\n\t[2] scrollbar 'all'\n\t[3] link 'x'"
    assert tree_text(tabs, ["it\nfailed"], body).split("\n") == [
        "Tab 0 (current): A B",
        "Tab 1: C",
        "[1] RootWebArea 'A'",
        "\t[2] scrollbar 'all'",
        "\t[0] alert 'it failed'",
        "\t[3] link 'x'",
    ]


@given(st.text(max_size=300))
def test_download_names_are_a_single_safe_component(text: str) -> None:
    from web_server.session.downloads import safe_name

    name = safe_name(text)
    assert name and name not in (".", "..")
    assert "/" not in name and "\\" not in name and "\0" not in name
    assert len(name.encode()) <= 120 and not name.startswith(".")


@given(st.text(alphabet="ab\n", max_size=400), st.integers(5, 50))
def test_the_parts_of_a_text_contain_all_of_it(text: str, size: int) -> None:
    from web_server.session.reading import split_parts

    parts = split_parts(text, size)
    assert all(len(part) <= size for part in parts)
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("enter", "Enter"),
        ("ctrl+a", "Control+a"),
        ("Control+Shift+ArrowLeft", "Control+Shift+ArrowLeft"),
        ("cmd++", "Meta+Shift++"),
        ("+", "Shift++"),
        ("Control+A", "Control+a"),
        ("CTRL+SHIFT+Z", "Control+Shift+Z"),
        ("shift+1", "Shift+!"),
        ("?", "Shift+?"),
        ("Z", "Shift+Z"),
        ("capslock", "CapsLock"),
        ("Shift+Digit1", "Shift+Digit1"),
        ("f5", "F5"),
        ("f", "f"),
        (" ", "Space"),
    ],
)
def test_chords_are_named_as_the_browser_library_does(text: str, keys: str) -> None:
    from web_server.actions.keys import chord

    assert chord(text) == keys


def test_a_log_line_is_one_json_object() -> None:
    import logging

    from web_server.api.logs import FIELDS, JsonLines

    try:
        raise ValueError("two\nlines")
    except ValueError:
        exception = sys.exc_info()
    record = logging.LogRecord("web_server", logging.ERROR, "f", 1, "a %s", ("b",), exception)
    setattr(record, FIELDS, {"status": 500})
    line = JsonLines().format(record)
    logged = json.loads(line)
    assert "\n" not in line and logged["message"] == "a b" and logged["status"] == 500
    assert logged["level"] == "error" and logged["time"].endswith("+00:00")
    assert "ValueError" in logged["traceback"]


def test_counts_of_requests_are_safe_between_threads() -> None:
    import threading

    from web_server.api.metrics import Requests, render

    requests = Requests()

    def many() -> None:
        for _ in range(200):
            requests.start()
            requests.count("openPage", 200, 0.5)
            requests.end()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert requests.wait_until_idle(1)
    text = render({"browsers_free": 3}, requests)
    assert 'web_server_requests_total{route="openPage",status="200"} 800\n' in text
    assert 'web_server_request_seconds_total{route="openPage"} 400.0' in text
    assert text.startswith("# HELP web_server_browsers_free ")
