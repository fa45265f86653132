"""The start page of the web agent: the first address in its task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import prompt_text, web_script

from ck_pro.approval import RuleApprover
from ck_web import WebAgent

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
    assert f"Note: opened {SHOP}, the first address of the task" in text


def test_a_named_start_page_comes_before_the_address_of_the_task(
    wire: FakeWire, tmp_path: Path
) -> None:
    task = "Look at http://other.test/ later."
    text = first_prompt(wire, tmp_path / "a", task, info={"target_url": SHOP})
    assert "RootWebArea 'Shop'" in text and "first address" not in text
    text = first_prompt(wire, tmp_path / "b", task, web_env={"target_url": SHOP})
    assert "RootWebArea 'Shop'" in text and "first address" not in text


def test_an_address_that_is_not_approved_stays_closed(wire: FakeWire, tmp_path: Path) -> None:
    for number, rule in enumerate(("reject", "stop")):
        approver = RuleApprover(**{rule: ["goto"]})
        text = first_prompt(wire, tmp_path / str(number), f"Look at {SHOP}", approver=approver)
        assert "URL: about:blank" in text and "first address" not in text
