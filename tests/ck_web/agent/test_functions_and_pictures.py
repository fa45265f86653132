"""The agent's functions in prompt and code, and screenshots for its models."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from fake_wire import PNG, SHOP, FakeWire
from web_scripts import EMPTY_PLAN, code, prompt_text, web_agent, web_script

from ck_pro.exceptions import ConfigError
from ck_pro.journal import Journal, read_events
from ck_pro.model import LLM, CallContext
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory.export import main as export
from ck_web import WebAgent
from ck_web.actions import FURTHER_WEB_ACTIONS, PREDEFINED_WEB_ACTIONS
from ck_web.tools import WebTool, definitions


def _images(model: ScriptedLLM) -> list[bool]:
    return ["image_url" in json.dumps(call.messages) for call in model.calls]


# --- functions -----------------------------------------------------------------------------------


def test_definitions_are_full_or_one_line() -> None:
    tool = WebTool(name="press")
    assert tool.get_function_definition(short=True) == (
        '- press(keys, id=None): Press keys, such as "Escape" or "Control+a", at the focus or in '
        "[id]."
    )
    assert tool.get_function_definition(short=False).startswith(
        'def press(keys: str, id: int | str | None = None):\n    """Press keys'
    )
    text = definitions(WebAgent().functions())
    further, seed = set(FURTHER_WEB_ACTIONS), set(PREDEFINED_WEB_ACTIONS) - {"nop"}
    assert all(f"\n- {name}(" in text and f"def {name}(" not in text for name in further)
    assert all(f"def {name}(" in text for name in seed - further)
    assert all(len(line) < 120 for line in text.splitlines() if line.startswith("- "))


@pytest.mark.worker
def test_active_functions_filter_prompt_and_code(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script("print('hover' in globals(), 'find' in globals())\nhover(3)", "stop('x')")
    agent = web_agent(wire, script, active_functions=["click", "find", "stop"])
    session = agent.run("t", workdir=tmp_path)
    system = script.calls[0].messages[0]["content"]
    assert "- find(text, " in system and "hover" not in system and "def goto" not in system
    seen = session.steps[0]["action"]["observation"]
    assert seen.startswith("False True") and "NameError" in seen


@pytest.mark.worker
def test_code_can_loop_over_actions_and_read_pages(wire: FakeWire, tmp_path: Path) -> None:
    wire.replies["read"].extend(["Part 1 of 1\n\n# Lamps\nfour lamps"] * 2)
    wire.replies["find"].append("found 'Lamps' in 1 lines:\n[3] link 'Lamps'")
    script = web_script(
        "import re\n"
        "words = [type(4, w, enter=False).rpartition(' ')[2] for w in ('a', 'b')]\n"
        "text = read()\n"
        "id = re.search(r'\\[(\\d+)\\] link', find('Lamps'))[1]\n"
        "print(words, text.splitlines()[-1], click(id))",
        "read()",
        "stop('x')",
    )
    session = web_agent(wire, script).run("t", workdir=tmp_path)
    first, second, _ = (s["action"]["observation"] for s in session.steps)
    *lines, printed = first.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "type [4] textbox \"Search it's\" 'a'",
        "type [4] textbox \"Search it's\" 'b'",
    ]
    assert printed.startswith("['a', 'b'] four lamps click [3] link 'Lamps': now at")
    assert "four lamps" in second
    assert "Tab 0 (current): Lamps" in prompt_text(script, -1)


# --- pictures ------------------------------------------------------------------------------------

SEEING = ["screenshot(True)", "1", "stop('x')"]


def test_screenshot_modes_have_aliases() -> None:
    assert [WebAgent(use_multimodal=m).use_multimodal for m in ("off", "auto", "on")] == [
        "off",
        "auto",
        "on",
    ]
    assert WebAgent(use_multimodal=True).use_multimodal == "on"
    assert WebAgent(use_multimodal="no").use_multimodal == "off"
    # YAML also reads an unquoted off of cookie_banners as False
    assert WebAgent(web_env={"cookie_banners": False}).web_env.cookie_banners == "off"
    assert WebAgent().use_multimodal == "auto" and WebAgent().model_multimodal is None
    with pytest.raises(ConfigError, match="use_multimodal"):
        WebAgent(use_multimodal="maybe")
    agent = WebAgent(model_multimodal="gpt:sees")
    assert isinstance(agent.model_multimodal, LLM)
    assert agent.model_multimodal.call_target == "gpt:sees"


@pytest.mark.worker
@pytest.mark.parametrize(
    ("mode", "first", "second"),
    [("off", [0] * 6, []), ("auto", [0, 0], [1] * 4), ("on", [], [1] * 6)],
)
def test_prompts_with_a_screenshot_go_to_the_multimodal_model(
    wire: FakeWire, tmp_path: Path, mode: str, first: list[int], second: list[int]
) -> None:
    def answer(messages: Any, context: CallContext) -> str:
        return code(EMPTY_PLAN if context.phase == "plan" else SEEING[context.step])

    plain, seeing = ScriptedLLM(answer), ScriptedLLM(answer)
    agent = web_agent(wire, plain, use_multimodal=mode, model_multimodal=seeing)
    session = agent.run("t", workdir=tmp_path)
    assert session.final_results["output"] == "x"
    assert (_images(plain), _images(seeing)) == (first, second)


@pytest.mark.worker
def test_a_single_model_gets_only_requested_screenshots(wire: FakeWire, tmp_path: Path) -> None:
    wire.elements = {"3": {"role": "Canvas", "box": [0, 0, 1280, 720]}}
    script = web_script(*SEEING)
    web_agent(wire, script).run("t", workdir=tmp_path)
    assert _images(script) == [False, False, True, True, True, True]


@pytest.mark.worker
def test_a_page_of_pictures_goes_to_the_multimodal_model(wire: FakeWire, tmp_path: Path) -> None:
    wire.elements = {"3": {"role": "Canvas", "box": [0, 0, 1280, 720]}}
    wire.pages[SHOP] = ("Map", ["[1] RootWebArea 'Map'", "[3] Canvas 'Map'"])
    plain, seeing = web_script("stop('x')"), web_script("stop('x')")
    web_agent(wire, plain, model_multimodal=seeing).run("t", workdir=tmp_path)
    assert (_images(plain), _images(seeing)) == ([], [True, True])


@pytest.mark.integration
@pytest.mark.worker
def test_screenshots_are_journaled_as_blobs_and_exported(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script("1", "stop('x')")
    with Journal(tmp_path / "runs" / "t") as journal:
        agent = web_agent(wire, script, use_multimodal="on")
        session = agent.run("t", workdir=tmp_path / "w", journal=journal)
    raw = (tmp_path / "runs" / "t" / "events.jsonl").read_text()
    assert '"blob:' in raw and base64.b64encode(PNG).decode() not in raw
    assert [p.read_bytes() for p in (tmp_path / "runs" / "t" / "blobs").iterdir()] == [PNG]
    calls = [e["data"] for e in read_events(tmp_path / "runs" / "t") if e["kind"] == "model_call"]
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    row = session.to_dict()
    assert url in json.dumps(calls[0]["messages"])
    assert url in json.dumps(row["steps"][0]["action"]["llm_input"])
    assert "boxed_screenshot" not in row["steps"][0]["action"]["web_state_before"]
    out = tmp_path / "sft.jsonl"
    assert export(["-f", "sft", "-i", str(tmp_path / "runs"), "-o", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 4
    assert [p.read_bytes() for p in (tmp_path / "sft_images").iterdir()] == [PNG]
