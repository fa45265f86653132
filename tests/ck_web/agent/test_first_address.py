"""The start page of the web agent: the first address in its task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import prompt_text, web_script

from ck_pro.approval import RuleApprover
from ck_web import WebAgent
from ck_web.agent import start_address

pytestmark = pytest.mark.worker


def first_prompt(
    wire: FakeWire, folder: Path, task: str, *, info: dict[str, Any] | None = None, **settings: Any
) -> str:
    model = web_script("stop('x')")
    web_env = {"server_url": wire.url, **settings.pop("web_env", {})}
    agent = WebAgent(model=model, web_env=web_env, **settings)
    session = agent.run(task, workdir=folder, info=info)
    assert session.final_results["output"] == "x"
    return prompt_text(model, 0)


def test_the_first_prompt_shows_the_first_address_of_the_task(
    wire: FakeWire, tmp_path: Path
) -> None:
    text = first_prompt(wire, tmp_path, f"Compare ({SHOP}), then http://other.test/. Answer: a.")
    assert "RootWebArea 'Shop'" in text
    assert f"Note: opened {SHOP}, an address of the task" in text


def test_a_named_start_page_comes_before_the_address_of_the_task(
    wire: FakeWire, tmp_path: Path
) -> None:
    task = "Look at http://other.test/ later."
    text = first_prompt(wire, tmp_path / "a", task, info={"target_url": SHOP})
    assert "RootWebArea 'Shop'" in text and "Note: opened" not in text
    text = first_prompt(wire, tmp_path / "b", task, web_env={"target_url": SHOP})
    assert "RootWebArea 'Shop'" in text and "Note: opened" not in text


def test_an_address_that_is_not_approved_stays_closed(wire: FakeWire, tmp_path: Path) -> None:
    for number, rule in enumerate(("reject", "stop")):
        approver = RuleApprover(**{rule: ["goto"]})
        text = first_prompt(wire, tmp_path / str(number), f"Look at {SHOP}", approver=approver)
        assert "URL: about:blank" in text and "Note: opened" not in text


@pytest.mark.parametrize(
    ("task", "start"),
    [
        ("Count the lamps.", ""),
        ("Open http://x.test/a, then http://x.test/b.", "http://x.test/a"),
        (
            "In the shop at http://x.test, order from http://x.test/lamps/3.",
            "http://x.test/lamps/3",
        ),
        (
            "At http://x.test/ read http://x.test/?id=3 (see http://y.test/a).",
            "http://x.test/?id=3",
        ),
        ("At http://x.test/ compare http://x.test/a and http://x.test/b", "http://x.test/"),
        (
            "At http://x.test/ (http://x.test) read http://x.test/a and http://x.test/a!",
            "http://x.test/a",
        ),
        ("At http://x.test/shop read http://x.test/shopping", "http://x.test/shop"),
    ],
)
def test_a_task_starts_on_its_first_address_or_the_one_page_below_it(task: str, start: str) -> None:
    assert start_address(task) == start
