"""Settings for all agents of a command: those of the main model, and the hosts of `--allow`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from main_command import run

from ck_main.agent import CKAgent
from ck_main.cli.building import build_agent
from ck_pro import MultiStepAgent
from ck_pro.exceptions import ConfigError
from ck_pro.model import LLM
from ck_web.agent import WebAgent


def models(*updates: str, config: Path | None = None, **options: Any) -> tuple[LLM, LLM]:
    """Return the models of the main agent and of its web agent."""
    agent = build_agent(CKAgent, config, updates, **options)
    return agent.model, agent.web_agent.model


def test_settings_of_the_main_model_reach_the_sub_agents(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model: {call_target: 'gpt:a', call_kwargs: {seed: 1}}\n")
    main, web = models(
        "model.request_timeout=30", "model.max_retry_times=1", config=tmp_path / "c.yaml"
    )
    assert web.to_dict() == main.to_dict()
    assert (web.call_target, web.request_timeout, web.call_kwargs) == ("gpt:a", 30.0, {"seed": 1})


def test_a_sub_agent_keeps_what_it_sets_itself() -> None:
    _, web = models("model.request_timeout=30", "web_agent.model.request_timeout=600")
    assert web.request_timeout == 600.0  # the default, but given
    updates = ["model.call_kwargs={'seed': 1, 'n': 1}", "web_agent.model.call_kwargs={'n': 2}"]
    assert models(*updates, model="gpt:a")[1].call_kwargs == {"seed": 1, "n": 2}

    class Slow(CKAgent):
        web_agent: WebAgent = WebAgent(model=LLM(request_timeout=900.0))

    agent = build_agent(Slow, None, ["model.request_timeout=30", "model.max_retry_times=1"])
    assert agent.web_agent.model.request_timeout == 900.0
    assert agent.web_agent.model.max_retry_times == 1


def test_another_service_does_not_get_the_parameters_of_the_main_one() -> None:
    updates = [
        "model={'call_target': 'gpt:a', 'call_kwargs': {'reasoning_effort': 'high'}}",
        "model.request_timeout=30",
        "web_agent.model=http://127.0.0.1:9/v1",
    ]
    _, web = models(*updates)
    assert (web.call_target, web.call_kwargs) == ("http://127.0.0.1:9/v1", {})
    assert web.request_timeout == 30.0


def test_models_of_other_phases_and_of_the_judge_get_them_too() -> None:
    updates = ["model.request_timeout=30", "plan_model=gpt:p", "sampling.judge=gpt:j"]
    agent = build_agent(CKAgent, None, updates)
    assert agent.plan_model is not None and agent.sampling.judge is not None
    found = [(m.call_target, m.request_timeout) for m in (agent.plan_model, agent.sampling.judge)]
    assert found == [("gpt:p", 30.0), ("gpt:j", 30.0)]


def test_allow_adds_hosts_to_every_browser() -> None:
    updates = ["web_agent.web_env.allow=['a.example']"]
    agent = build_agent(CKAgent, None, updates, allow=["localhost:8000", "127.0.0.1"])
    assert agent.web_agent.web_env.allow == ["a.example", "localhost:8000", "127.0.0.1"]
    alone = build_agent(WebAgent, None, [], allow=["localhost:8000"])
    assert alone.web_env.allow == ["localhost:8000"]
    with pytest.raises(ConfigError, match="--allow x: this agent has no browser"):
        build_agent(MultiStepAgent, None, [], allow=["x"])


def test_pictures_are_stored_by_every_browser() -> None:
    agent = build_agent(CKAgent, None, [], pictures=True)
    assert agent.web_agent.web_env.step_pictures
    assert not build_agent(CKAgent, None, []).web_agent.web_env.step_pictures
    assert build_agent(WebAgent, None, [], pictures=True).web_env.step_pictures
    with pytest.raises(ConfigError, match="--pictures: this agent has no browser"):
        build_agent(MultiStepAgent, None, [], pictures=True)


def test_allow_takes_a_host_and_not_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--task", "t", "--allow", "http://localhost:8000/a")
    assert code == 2 and "write localhost:8000" in err


@pytest.mark.parametrize("given", ["a.example:8000", "[a.example:8000]", "('a.example:8000')"])
def test_a_text_for_a_list_is_answered_by_the_list_to_write(given: str) -> None:
    with pytest.raises(ConfigError, match=r"valid list \(got .*\); write \['a\.example:8000'\]$"):
        build_agent(CKAgent, None, [f"web_agent.web_env.allow={given}"])


def test_the_help_shows_how_to_write_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--help")
    assert "NAME=['a', 'b']" in " ".join(out.split()) and "--allow HOST[:PORT]" in out


def test_a_text_for_a_browser_keeps_its_server_beside_other_settings() -> None:
    updates = ["web_agent.web_env=http://browsers.example", "web_agent.web_env.viewport_width=800"]
    agent = build_agent(CKAgent, None, updates, allow=["a.example"])
    env = agent.web_agent.web_env
    assert (env.server_url, env.allow) == ("http://browsers.example", ["a.example"])
