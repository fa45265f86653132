"""A page in a prompt as its changes since the prompt showed it in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_wire import FakeWire
from hypothesis import given
from hypothesis import strategies as st
from web_scripts import web_script

from ck_pro.journal import Journal, read_events
from ck_pro.language import text_of
from ck_pro.model import Reply
from ck_pro.model.recordings.elements import observed_elements
from ck_pro.testing import ScriptedLLM
from ck_web import WebAgent
from ck_web.page.page_diff import insert_page, page_changes, section

HEAD = "URL: http://shop.test/\nTab 0 (current): Shop\n[1] RootWebArea 'Shop'"
MANY = [f"\t[{n}] link 'a link of the menu, number {n}'" for n in range(20, 40)]


def _page(*lines: str) -> str:
    return "\n".join([HEAD, *lines, *MANY, "Note: one", "Downloaded files: a.csv"])


def test_page_changes_have_removed_changed_and_new_lines() -> None:
    before = _page("\t[3] link 'A'", "\t[4] textbox 'B' value: ", "\t[0] alert 'old'")
    after = _page("\t[0] alert 'new'", "\t[4] textbox 'B' value: x", "\t\t[7] button 'C'")
    assert page_changes(before, after) == "\n".join(
        [
            "URL: http://shop.test/",
            "Tab 0 (current): Shop",
            "\t[0] alert 'new'",
            "removed: 3",
            "changed:",
            "\t[4] textbox 'B' value: x",
            "new after [4]:",
            "\t\t[7] button 'C'",
            "Note: one",
            "Downloaded files: a.csv",
        ]
    )
    assert "no other changes\nNote: one" in str(page_changes(after, after))


def test_another_page_is_shown_in_full() -> None:
    assert page_changes(_page(), HEAD + "\n\t[50] link 'x'") is None
    assert page_changes("", _page()) is None


numbers = st.lists(st.sampled_from(range(3, 60)), unique=True, max_size=30)


@given(numbers, numbers, st.sets(st.sampled_from(range(3, 60))))
def test_page_and_changes_name_the_elements_of_the_new_page(
    before: list[int], after: list[int], changed: set[int]
) -> None:
    """Page and changes together name the elements of the new page."""
    old = _page(*(f"\t[{n}] link '{n}'" for n in before if n not in range(20, 40)))
    new = _page(
        *(f"\t[{n}] link '{n}{'!' * (n in changed)}'" for n in after if n not in range(20, 40))
    )
    changes = page_changes(old, new)
    if changes is None:
        return
    history = [
        {"role": "assistant", "content": "Thought"},
        {"role": "user", "content": "Observation of step 0:\nx"},
    ]
    messages = insert_page(history, 0, section("Page at step 0", old))
    assert messages is not None
    found = observed_elements([*messages, {"role": "user", "content": changes}])
    assert {str(e) for e in found} == {
        str(e) for e in observed_elements([{"role": "user", "content": new}])
    }


def test_changes_need_the_page_in_the_history() -> None:
    assert insert_page([{"role": "user", "content": "(Earlier steps omitted.)"}], None, "p") is None


def test_pages_are_shown_as_changes_with_function_calls_too(wire: FakeWire, tmp_path: Path) -> None:
    def call(name: str, **arguments: Any) -> Reply:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return Reply("", tool_calls=[{"id": "c", "type": "function", "function": function}])

    title, lines = wire.pages["http://shop.test/"]
    wire.pages["http://shop.test/"] = (
        title,
        [*lines, *(f"\t[{n}] link 'x'" for n in range(50, 90))],
    )
    typed = [call("type", id=4, content=f"words {n}", enter=False) for n in range(3)]
    model = ScriptedLLM([*typed, call("stop", answer="42")])
    settings = {"server_url": wire.url, "target_url": "http://shop.test/"}
    agent = WebAgent(model=model, web_env=settings, page_changes=True, language="function_calls")
    assert agent.run("t", workdir=tmp_path).status == "done"
    messages = model.calls[-1].messages
    assert "changes since step 0" in text_of(messages[-1]["content"])
    assert [m["role"] for m in messages][:5] == ["system", "user", "assistant", "tool", "assistant"]
    assert "Page at step 0" in text_of(messages[1]["content"])


@pytest.mark.worker
@pytest.mark.parametrize("page_changes", [False, True])
def test_prompts_share_their_prefix(wire: FakeWire, tmp_path: Path, page_changes: bool) -> None:
    """Measure the share that a prefix cache saves, in ten steps on two large pages."""
    for url in ("http://shop.test/", "http://shop.test/lamps"):
        title, lines = wire.pages[url]
        wire.pages[url] = (title, [*lines, *(f"\t[{n}] link '{url} {n}'" for n in range(50, 250))])
    typing = [f"type(4, 'words {n}', enter=False)" for n in range(4)]
    script = web_script(*typing, "click(3)", "scroll_down()", "goback()", *typing[:2], "stop('x')")
    agent = WebAgent(
        planning="separate",
        model=script,
        web_env={"server_url": wire.url, "target_url": "http://shop.test/"},
        page_changes=page_changes,
    )
    with Journal(tmp_path / "j") as journal:
        session = agent.run("t", workdir=tmp_path / "w", journal=journal)
    assert len(session.steps) == 10 and not agent._full_pages
    events = read_events(tmp_path / "j")
    calls = [e["data"] for e in events if e["kind"] == "model_call"]
    sizes = [sum(len(text_of(m["content"])) for m in c["messages"]) for c in calls]
    share = sum(c["prefix_share"] * s for c, s in zip(calls, sizes, strict=True)) / sum(sizes)
    last = text_of(script.calls[-1].messages[-1]["content"])
    if page_changes:
        assert share > 0.8
        assert "Current page: changes since step 7" in last and "[100]" not in last
        assert observed_elements(script.calls[-1].messages)[-1].id == "249"
    else:
        assert 0.6 < share < 0.75 and "# Current page (" in last
