"""The computer agent in a real Chromium, with a scripted model behind real HTTP."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import browser_settings, serve

from ck_pro import Journal, Status
from ck_pro.approval import RuleApprover
from ck_pro.events import ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.model import Reply
from ck_pro.session import StopReason
from ck_pro.testing import ChatCall, FakeChatServer
from ck_web.actions import parse_action
from ck_web.browser import shared_servers
from ck_web.computer import ComputerAgent, ComputerEnv
from ck_web.tools import ComputerWebTool

pytestmark = pytest.mark.browser

# The layout is fixed, so that a script can click by coordinates.
PAGE = """<!doctype html><title>Greeter</title>
<style>
  body { margin: 0; height: 3000px; }
  body > * { position: absolute; box-sizing: border-box; margin: 0; }
  #name { left: 100px; top: 100px; width: 300px; height: 40px; }
  #go { left: 450px; top: 100px; width: 100px; height: 40px; background: rgb(0, 128, 0); }
  #said { left: 100px; top: 200px; }
  #pad { left: 600px; top: 300px; background: #ddd; }
  #box { left: 100px; top: 300px; width: 200px; height: 100px; overflow: auto; }
</style>
<input id="name" aria-label="Name">
<button id="go">Greet</button>
<p id="said">nothing yet</p>
<canvas id="pad" width="400" height="300" aria-label="Pad"></canvas>
<div id="box"><p style="height: 1000px">long</p></div>
<script>
  const say = (text) => { document.getElementById('said').textContent = text; };
  const at = (event) => `${event.offsetX},${event.offsetY}`;
  const name = document.getElementById('name');
  document.getElementById('go').onclick = () => say('Hello ' + name.value);
  const pad = document.getElementById('pad');
  const pen = pad.getContext('2d');
  let from = '';
  pad.onmousedown = (event) => { from = at(event); };
  pad.onmousemove = (event) => pen.fillRect(event.offsetX, event.offsetY, 9, 9);
  pad.onmouseup = (event) => say(`drawn ${from} to ${at(event)} with ${event.button}`);
  pad.ondblclick = (event) => say(`twice at ${at(event)} ${event.shiftKey}`);
  pad.onwheel = (event) => {
    event.preventDefault();
    say(`wheel ${event.deltaX},${event.deltaY}`);
  };
  document.onkeydown = (event) => { if (event.key === 'F2') say('renamed'); };
</script>"""


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    """Settings of a browser on a page of known layout; the module keeps its server."""
    with serve({"*": PAGE}) as url:
        yield browser_settings(target_url=f"{url}/")
        shared_servers.stop_servers()


def item(call_id: str, **action: Any) -> dict[str, Any]:
    head = {"type": "computer_call", "id": f"cu_{call_id}", "call_id": call_id}
    return {**head, "action": action, "pending_safety_checks": [], "status": "completed"}


ACTS = [
    [item("c1", type="click", button="left", x=250, y=120)],
    [item("c2", type="type", text="Ada")],
    [item("c3", type="click", button="left", x=500, y=120)],
]


def greeter(call: ChatCall) -> Reply:
    """A model that knows the layout, and answers with the last text that it reads."""
    done = sum(i.get("type") == "computer_call" for i in call.messages)
    if done < len(ACTS):
        return Reply("", items=ACTS[done])
    shown = re.findall(r"'(Hello \w+)'", json.dumps(call.messages))
    return Reply(shown[-1] if shown else "nothing was said")


def test_a_task_is_solved_by_coordinates(settings: dict[str, Any], tmp_path: Path) -> None:
    from PIL import Image

    with FakeChatServer(greeter) as server:
        agent = ComputerAgent(
            model=server.url, language="computer_use_preview", web_env=settings, name="clerk"
        )
        with Journal(tmp_path / "journal") as journal:
            session = agent.run("Greet Ada", workdir=tmp_path, journal=journal)
        calls = list(server.calls)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "Hello Ada"), session
    assert session.steps[2]["action"]["observation"].endswith("(button 'Greet')")
    sent = calls[-1].body["input"]
    shots = [i for i in sent if i.get("type") == "computer_call_output"]
    assert [s["call_id"] for s in shots] == ["c1", "c2", "c3"]
    assert shots[-1]["output"]["current_url"] == settings["target_url"]
    image = Image.open(io.BytesIO(base64.b64decode(shots[-1]["output"]["image_url"].split(",")[1])))
    assert image.size == (1280, 720)
    red, green, blue = image.convert("RGB").getpixel((460, 130))
    assert green > 100 and max(red, blue) < 60


def test_every_computer_action_reaches_the_page(settings: dict[str, Any], tmp_path: Path) -> None:
    env = ComputerEnv(settings, workdir=tmp_path)

    def does(**given: Any) -> str:
        seen = env.execute(env.named(computer_action(given)))
        return seen.text

    assert "drawn 100,100 to 100,100 with 2" in does(action="click", x=700, y=400, button="right")
    assert "with 1" in does(action="click", x=700, y=400, button="wheel")
    assert "twice at 50,60 true" in does(action="double_click", x=650, y=360, keys=["SHIFT"])
    drawn = does(action="drag", path=[[610, 310], [700, 350], [800, 400]])
    assert "drawn 10,10 to 200,100 with 0" in drawn
    before = env.state()["screen"]
    assert does(action="move", x=900, y=550) and env.state()["screen"] != before
    env.execute(computer_action({"action": "move", "x": 5, "y": 5}))
    still = env.state()["screen"]
    env.execute(computer_action({"action": "move", "x": 6, "y": 6}))
    assert env.state()["screen"] == still
    assert "wheel 0,120" in does(action="scroll", x=700, y=400, scroll_y=120)
    assert "renamed" in does(action="keypress", keys=["F2"])
    assert "textbox 'Name'" in does(action="click", x=250, y=120)
    assert "value: Eve" in does(action="type", text="Eve")
    does(action="keypress", keys=["CTRL", "A"])
    assert "value: Bob" in does(action="type", text="Bob")
    assert env.execute(
        computer_action({"action": "scroll", "x": 200, "y": 350, "scroll_y": 80})
    ).text
    assert "[2] scrollbar '0 px above" in env.get_state().current_accessibility_tree
    assert "600 px above" in does(action="scroll", x=1200, y=650, scroll_y=600)
    assert "500 px above" in does(action="scroll", scroll_y=-100)
    assert isinstance(
        env.execute(computer_action({"action": "click", "x": 1, "y": 720})), ErrorObservation
    )
    assert "unknown key" in does(action="keypress", keys=["NOKEY"])
    assert does(action="screenshot") == "screenshot: taken"
    env.close()


def test_a_file_is_uploaded_after_a_click_opened_a_chooser(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("hi")
    page = """<title>U</title><input type=file style="position:absolute;left:0;top:0;width:200px"
        onchange="document.title = this.files[0].name + ' ' + this.files[0].size">"""
    upload = ComputerWebTool(name="upload")
    with serve({"*": page}) as url:
        env = ComputerEnv(browser_settings(target_url=f"{url}/"), workdir=tmp_path)
        refused = env.execute(parse_action(upload.execute("a b.txt")))
        assert isinstance(refused, ErrorObservation) and "first click the button" in refused.text
        env.execute(computer_action({"action": "click", "x": 30, "y": 10}))
        done = env.execute(parse_action(upload.execute("a b.txt")))
        assert not isinstance(done, ErrorObservation), done.text
        assert "a b.txt 2" in env.observe().text
        env.close()
    assert "upload(path" in upload.get_function_definition(True)


def test_a_button_that_a_rule_names_is_not_pressed(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    with FakeChatServer(greeter) as server:
        agent = ComputerAgent(
            model=server.url,
            language="computer_use_preview",
            web_env=settings,
            approver=RuleApprover(stop=["on button 'Greet'"]),
        )
        session = agent.run("Greet Ada", workdir=tmp_path)
    assert (session.status, session.stop_reason) == (Status.SENSITIVE_ACTION, StopReason.GUARD)
    assert len(session.steps) == 3 and "button 'Greet'" in session.message


def test_pages_that_the_policy_blocks_are_not_opened(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    call = {"type": "function_call", "call_id": "f1", "name": "goto", "id": "fc_1"}
    blocked = {**call, "arguments": '{"url": "http://169.254.1.1/"}', "status": "completed"}
    with FakeChatServer([Reply("", items=[blocked]), "no way"]) as server:
        agent = ComputerAgent(model=server.url, language="computer", web_env=settings)
        session = agent.run("t", workdir=tmp_path)
    seen = session.steps[0]["action"]["observation"]
    assert "goto http://169.254.1.1/" in seen and "not " in seen
    assert session.final_results["output"] == "no way"
