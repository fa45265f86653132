"""`WebAgent` on a fake server, with real worker processes: loop, prompts, results."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import EMPTY_PLAN, code, prompt_text, web_agent, web_script

from ck_pro import MultiStepAgent, Status
from ck_pro.exceptions import BrowserServerError, ConfigError, ParseError, ToolError
from ck_pro.journal import Journal
from ck_pro.language import FunctionCallingLanguage, text_of
from ck_pro.model import CallContext, Reply
from ck_pro.session import AgentSession
from ck_pro.testing import ScriptedLLM
from ck_web import PREDEFINED_WEB_ACTIONS, WebAgent
from ck_web.agent import WebTool
from ck_web.env import WebEnv


@pytest.mark.worker
def test_a_run_from_page_to_answer(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script(
        "click(id=5)\nx = open('downloads/data set.csv').read()\nprint(x.split())",
        "print(click(id=3, link_name='Lamps'))",
        "stop(answer='42', summary='on the page')",
    )
    agent = web_agent(wire, script)
    session = agent.run("How many lamps?", workdir=tmp_path)
    assert (session.status, session.final_results) == (
        Status.DONE,
        {"output": "42", "log": "on the page"},
    )
    first, second, third = (s["action"] for s in session.steps)
    assert first["web_state_before"]["step_url"] == "http://shop.test/"
    assert third["web_state_before"]["title"] == "Lamps"
    assert first["observation"].startswith("click [5] button 'Export': done")
    assert first["observation"].endswith("['a,b', '1,2']")
    assert second["observation"].count("now at http://shop.test/lamps") == 1
    assert session.state["todo_list"] == ["look"]
    assert [c.context.phase for c in script.calls] == ["plan", "action"] * 3
    assert not wire.browsers and not agent.web_envs
    assert session.to_dict()["steps"][0]["action"]["web_state_before"]["browser_id"] == "b1"


@pytest.mark.worker
def test_the_prompt_has_functions_page_and_history(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script("print('looked')")
    web_agent(wire, script).run("How many lamps?", workdir=tmp_path, max_steps=1)
    plan, action, end = (c.messages for c in script.calls)
    assert plan[0] == action[0] == end[0]
    assert [m["role"] for m in action] == ["system", "user"]
    system, last = action[0]["content"], action[-1]["content"]
    assert "def click(id: int | str, " in system and "def stop(answer" in system
    assert last.startswith("# Task\nHow many lamps?\n\n# Current page")
    assert last.index("# Progress so far") > last.index("[5] button 'Export'")
    assert "URL: http://shop.test/\nTab 0 (current): Shop\n[1] RootWebArea 'Shop'" in last
    assert "Observation of step 0:\n```\nlooked" in prompt_text(script, 2)
    assert "Answer: none" not in prompt_text(script, 2)
    assert "no step is left" in prompt_text(script, 2)


@pytest.mark.worker
def test_a_failed_action_ends_the_block_and_is_reported(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script("type(4, 'x', enter=False)\nclick(99)\nclick(3)", "stop('', 'gave up')")
    session = web_agent(wire, script).run("t", workdir=tmp_path)
    seen = session.steps[0]["action"]["observation"]
    assert "click [99] failed: no element 99 on this page" in seen
    assert seen.startswith("type [4] textbox")
    assert "[3]" not in seen
    assert session.steps[1]["action"]["web_state_before"]["title"] == "Shop"


@pytest.mark.worker
def test_a_run_without_an_answer_is_summarized(wire: FakeWire, tmp_path: Path) -> None:
    session = web_agent(wire, web_script("scroll_down()")).run("t", workdir=tmp_path, max_steps=2)
    assert session.final_results == {"output": "partly", "log": "time ran out"}
    assert session.status is Status.PROBLEM
    assert session.steps[-1]["end"]["llm_output"]


@pytest.mark.worker
def test_end_always_runs_the_end_phase(wire: FakeWire, tmp_path: Path) -> None:
    script = web_script("stop('42', 'seen')")
    session = web_agent(wire, script, end_always=True).run("t", workdir=tmp_path)
    assert session.final_results == {"output": "partly", "log": "time ran out"}
    assert "Answer: 42\nSummary: seen" in prompt_text(script, -1)


@pytest.mark.worker
def test_steps_without_effect_end_the_run(wire: FakeWire, tmp_path: Path) -> None:
    session = web_agent(wire, web_script("scroll_down()"), stuck_limit=3).run("t", workdir=tmp_path)
    assert str(session.stop_reason) == "stuck" and len(session.steps) < 6


@pytest.mark.worker
@pytest.mark.parametrize("old", [False, True])
def test_a_lost_browser_ends_the_run_and_releases_all(
    wire: FakeWire, tmp_path: Path, old: bool
) -> None:
    wire.old = old

    def answer(messages: Any, context: CallContext) -> str:
        if context.phase == "action":
            wire.browsers.clear()
        return code("click(3)" if context.phase == "action" else EMPTY_PLAN)

    script = ScriptedLLM(answer)
    session = web_agent(wire, script).run("t", workdir=tmp_path)
    reason, said = ("environment_failure", "may have") if old else ("lease_expired", "the lease of")
    assert str(session.stop_reason) == reason and said in session.message
    assert session.status is Status.PROBLEM


@pytest.mark.worker
@pytest.mark.parametrize("leased", [True, False])
def test_a_suspended_run_resumes_in_its_browser_or_at_its_last_page(
    wire: FakeWire, tmp_path: Path, leased: bool
) -> None:
    agent = web_agent(wire, web_script("click(3)", "type(13, 'x')", "stop('found')"))
    with Journal(tmp_path / "j") as journal:
        session = AgentSession()
        steps = agent.run("t", session=session, journal=journal, stream=True, workdir=tmp_path)
        next(steps), next(steps)
        agent.suspend_run(session)
        assert list(steps) == [] and list(wire.browsers) == ["b1"] and not agent.web_envs
    if not leased:
        wire.browsers.clear()
    with Journal(tmp_path / "j") as journal:
        session = agent.resume(journal=journal, workdir=tmp_path)
    assert session.final_results["output"] == "found" and not wire.browsers
    last = session.steps[-1]["action"]["web_state_before"]
    assert (last["browser_id"], last["title"]) == ("b1" if leased else "b2", "Lamps")
    assert last["target_url"] == "http://shop.test/"


def test_a_missing_server_ends_the_run(tmp_path: Path) -> None:
    agent = WebAgent(model=web_script("1"), web_env={"server_url": "127.0.0.1:9"})
    session = agent.run("t", workdir=tmp_path)
    assert str(session.stop_reason) == "environment_failure"
    assert "connection refused" in session.message and not agent.web_envs


@pytest.mark.worker
def test_a_web_agent_is_a_function_of_another_agent(wire: FakeWire, tmp_path: Path) -> None:
    web = web_agent(wire, web_script("stop('42', 'seen')"))
    call = "r = web_agent('count', target_url='http://shop.test/lamps')\nprint(r)\nr['output']"
    main = MultiStepAgent(model=ScriptedLLM([code(call)]), sub_agents=[web], max_steps=1)
    session = main.run("t", workdir=tmp_path)
    assert "42" in str(session.steps[0]["action"]["observation"])
    (child,) = session.children.values()
    assert child.steps[0]["action"]["web_state_before"]["target_url"] == "http://shop.test/lamps"
    assert "target_url: str | None = None" in web.get_function_definition(short=True)


@pytest.mark.worker
def test_one_agent_object_serves_concurrent_runs(wire: FakeWire, tmp_path: Path) -> None:
    def answer(messages: Any, context: CallContext) -> str:
        if context.phase == "plan":
            return code(EMPTY_PLAN)
        live.append(agent.web_envs[context.sid].get_state().browser_id)
        return code("click(3)" if context.step == 0 else f"stop({context.task!r})")

    live: list[str] = []
    agent = web_agent(wire, ScriptedLLM(answer))

    def run(n: int) -> AgentSession:
        return agent.run(f"task number {n}", workdir=tmp_path / str(n))

    with ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(run, range(4)))
    ids = {s.steps[0]["action"]["web_state_before"]["browser_id"] for s in sessions}
    assert len(ids) == 4 and ids == set(live) and not wire.browsers and not agent.web_envs
    assert [s.final_results["output"] for s in sessions] == [f"task number {n}" for n in range(4)]


def test_the_same_task_is_solved_by_function_calls(wire: FakeWire, tmp_path: Path) -> None:
    def reply(name: str, **arguments: Any) -> Reply:
        call = {"function": {"name": name, "arguments": json.dumps(arguments)}}
        return Reply("", tool_calls=[{"id": "1", "type": "function", **call}])

    actions = [reply("click", id=99), reply("click", id=3), reply("stop", answer="42", summary="s")]
    plan = reply("update_plan", completed_list=[], todo_list=["a"], experience=[], information=[])
    model = ScriptedLLM({"plan": [plan, code(EMPTY_PLAN), "no plan"], "action": actions})
    session = web_agent(wire, model, language=FunctionCallingLanguage()).run("t", workdir=tmp_path)
    seen = [s["action"]["observation"] for s in session.steps]
    assert seen[0] == "ToolError: click [99] failed: no element 99 on this page"
    assert seen[1].startswith("click [3] link 'Lamps': now at")
    assert session.final_results == {"output": "42", "log": "s"}
    assert [s["plan"]["state"]["todo_list"] for s in session.steps] == [["a"], ["look"], ["look"]]
    assert session.to_dict()["info"]["unreadable"] == {"plan": 1}
    (tools,) = {json.dumps(c.params["tools"]) for c in model.calls}
    names = [tool["function"]["name"] for tool in json.loads(tools)]
    assert names == [*(f.name for f in WebAgent(file_functions=[]).functions()), "update_plan"]
    for c in model.calls:
        text = "\n".join(text_of(m["content"]) for m in c.messages)
        assert "python" not in text.casefold() and "calling" in text


def test_a_function_acts_immediately_or_raises(wire: FakeWire, tmp_path: Path) -> None:
    env = WebEnv({"server_url": wire.url}, workdir=tmp_path, target_url="http://shop.test/")
    run = SimpleNamespace(act=env.execute)
    click = WebTool(name="click").bind(run)  # type: ignore[arg-type]
    assert click(id="3").startswith("click [3] link 'Lamps': now at")
    with pytest.raises(ToolError, match="no element 99"):
        click(99)
    with pytest.raises(ToolError, match="no element"):
        click("the lamp")
    with pytest.raises(ParseError, match="an element is its id or its name"):
        click(None)
    assert click.__name__ == "click" and "link_name" in click.__wrapped__.__annotations__
    env.close()


def test_settings_are_merged_and_checked() -> None:
    agent = WebAgent(web_env="host:3000", active_functions=["click", "stop"])
    assert agent.web_env.given_server() == "host:3000"
    assert [f.name for f in agent.functions()] == ["click", "stop"]
    assert WebAgent(web_env={"web_ip": "a:1"}).web_env.given_server() == "a:1"
    named = {"server_url": "host:3000", "token": "s3cret"}
    assert WebAgent(web_env=named).web_env.token.get_secret_value() == "s3cret"
    assert "s3cret" not in str(WebAgent(web_env=named).to_dict())
    with pytest.raises(ConfigError, match="did you mean 'server_url'"):
        WebAgent(web_env={"serverurl": "x"})
    with pytest.raises(ConfigError, match="HOST:PORT"):
        WebAgent(web_env="ftp://x")
    with pytest.raises(ConfigError, match="viewport_width"):
        WebAgent(web_env={"viewport_width": 1})
    wanted = {"click", "type", "scroll_up", "scroll_down", "wait", "goback", "restart", "goto"}
    assert wanted | {"save", "screenshot", "stop"} <= {f.name for f in WebAgent().functions()}
    assert set(PREDEFINED_WEB_ACTIONS) > wanted


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"token": "x"}, "token: set server_url too"),
        (
            {"server_url": "host:1", "max_browsers": 3},
            "max_browsers: it applies to an",
        ),
        ({"web_ip": "host:1", "chromium": "/x"}, "chromium: .*server_url is 'host:1'"),
        ({"server_url": "host:1", "keep_server_seconds": 5}, "keep_server_seconds: "),
    ],
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        WebAgent(web_env=settings)


def test_rules_are_sent_with_the_lease_request(wire: FakeWire, tmp_path: Path) -> None:
    rules = {"allow": ["shop.test"], "block": ["*"]}
    env = WebEnv({"server_url": wire.url, "target_url": SHOP, **rules}, workdir=tmp_path)
    (leased,) = [body for route, body in wire.requests if route == "getBrowser"]
    assert {key: leased[key] for key in rules} == rules
    left = env.suspend()
    other = WebEnv({"server_url": wire.url, "block": ["x.test"]}, workdir=tmp_path, suspended=left)
    assert not other.taken_up, "a browser with other rules was used"
    other.close()
    assert not wire.browsers
    wire.features = []
    with pytest.raises(BrowserServerError, match="accepts no rules from its clients"):
        WebEnv({"server_url": wire.url, "block": ["x.test"]}, workdir=tmp_path)
    assert not wire.browsers
