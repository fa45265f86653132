"""One declaration per web action: everything else is derived from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from ck_pro.events import BrowserAction, BrowserObservation, Observation
from ck_pro.exceptions import ConfigError
from ck_pro.run_context import RunContext
from ck_web.actions import ACTIONS, PREDEFINED_WEB_ACTIONS, WEB_FUNCTIONS, parse_action
from ck_web.actions.__main__ import functions_table
from ck_web.actions.action import web_action
from ck_web.tools import ComputerWebTool, WebTool
from web_server.actions.registry import action_names

_SCROLL = re.compile("scroll_(up|down)")
ROOT = Path(__file__).resolve().parents[3]
DECLARATION = '''

@web_action("blink", "blink [3] slowly")
class Blink(WebAction):
    """Blink at [id]. Most pages ignore it."""

    value_name = "speed"
    quotes_value = True
    expects_change = False

    def write(self, id: int, speed: str = "slowly") -> str:
        return f"blink [{id}] {speed}"

    def parse(self, rest: str) -> BrowserAction:
        target, speed = target_of(self.name, rest)
        return self.action(target, speed or "slowly")

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.value or "", "actionValue": ""}
'''
USE = """
import json, sys
from pathlib import Path

from fake_wire import FakeWire
from web_scripts import web_agent, web_env, web_script
from ck_pro.approval import describe
from ck_web import PREDEFINED_WEB_ACTIONS
from ck_web.actions import parse_action
from ck_web.actions.__main__ import functions_table

try:
    parse_action("fly")
except Exception as e:
    unknown = str(e)
model = web_script("print(blink(4, speed='fast'))", "stop('x')")
with FakeWire() as wire:
    env = web_env(wire, Path("w"))
    action = parse_action("BLINK 4 fast")
    said = env.execute(action).text
    reviewed = describe(env.named(action))
    env.close()
    session = web_agent(wire, model).run("t", workdir="w")
    print(json.dumps({
        "writes": PREDEFINED_WEB_ACTIONS["blink"](4),
        "said": said, "reviewed": reviewed, "unknown": unknown,
        "sent": wire.acted,
        "prompt": model.calls[0].messages[0]["content"],
        "observed": session.steps[0]["action"]["observation"],
        "table": functions_table("line"),
    }))
"""


@pytest.mark.worker
def test_one_declaration_adds_an_action_everywhere(tmp_path: Path) -> None:
    for package in ("ck_pro", "ck_web", "web_server"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    elements = tmp_path / "ck_web/actions/elements.py"
    elements.write_text(elements.read_text() + DECLARATION)
    (tmp_path / "w").mkdir()
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests/support/web")])
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["writes"] == "blink [4] slowly"
    assert "blink" in found["unknown"]
    assert found["said"].startswith("blink [4] textbox \"Search it's\" 'fast': ")
    assert found["reviewed"].startswith("blink(id=4, speed='fast') on textbox")
    assert [(b["actionName"], b["targetId"], b["text"]) for b in found["sent"]] == [
        ("blink", "4", "fast")
    ] * 2
    assert "- blink(id, speed='slowly'): Blink at [id]." in found["prompt"]
    assert found["observed"] == found["said"]
    assert '| `blink(id, speed="slowly")` | `blink [3] slowly` | Blink at [id].' in found["table"]


def test_every_example_in_the_docs_is_an_action() -> None:
    for action in ACTIONS.values():
        for form in action.forms:
            parsed = parse_action(form.replace("URL", "http://x.test/"))
            assert parsed.name == _SCROLL.sub("scroll", action.name), form


def test_the_tables_in_the_docs_are_current() -> None:
    docs = (ROOT / "docs/web_agent.md").read_text(encoding="utf-8")
    for table in (functions_table("full"), functions_table("line")):
        assert table in docs, f"replace the table in docs/web_agent.md with:\n{table}"


def test_the_server_knows_every_action() -> None:
    done_by_the_client = {"screenshot", "stop", "nop"}
    sent = {_SCROLL.sub("scroll", name) for name in ACTIONS} - done_by_the_client
    assert sent <= set(action_names())
    assert set(action_names()) - sent == {"select_option", "double_click_at", "triple_click_at"}


def test_two_actions_cannot_share_a_name() -> None:
    for name in ("click", "scrollin"):
        with pytest.raises(ConfigError, match="two web actions are named"):
            web_action(name, name)


def test_every_action_has_its_own_help() -> None:
    assert len({action.help for action in ACTIONS.values()}) == len(ACTIONS)


def test_functions_are_the_actions_that_act_in_the_browser() -> None:
    assert set(PREDEFINED_WEB_ACTIONS) - set(WEB_FUNCTIONS) == {"stop", "nop"}
    assert WEB_FUNCTIONS[:2] == ["click", "type"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (WebTool(name="click"), ["Save", "the button", "button"]),
        (WebTool(name="type"), [3, " a [b]\n"]),
        (WebTool(name="press"), ["Tab Enter", 3]),
        (WebTool(name="scroll_down"), []),
        (WebTool(name="goback"), []),
        (WebTool(name="wait"), [2]),
        (ComputerWebTool(name="upload"), [["a b.csv"]]),
    ],
)
def test_a_function_does_what_its_action_string_means(tool: WebTool, arguments: list[Any]) -> None:
    done: list[BrowserAction] = []

    class Acts:
        def act(self, action: BrowserAction) -> Observation:
            done.append(action)
            return BrowserObservation(text="done")

    assert tool.bind(cast(RunContext, Acts()))(*arguments) == "done"
    assert done == [parse_action(tool.execute(*arguments))]
