"""`--profile` and `--language`: settings for every agent, which `--updates` override."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ck_main.agent import CKAgent
from ck_main.cli import profiles
from ck_main.cli.building import build_agent
from ck_main.cli.profiles import PROFILES, Profile
from ck_main.demo import cli as demo
from ck_main.demo import demo_agent
from ck_main.main import cli as main
from ck_pro.exceptions import ConfigError
from ck_pro.language import ComputerUseLanguage
from ck_pro.model.shorten import estimate_tokens
from ck_pro.testing import ScriptedLLM
from ck_web.agent import WebAgent
from ck_web.computer import ComputerAgent
from ck_web.main import cli as web
from ck_web.tools import definitions


def test_the_small_profile_applies_to_every_agent_and_model() -> None:
    agent = build_agent(CKAgent, None, [], model="gpt:x", profile="small")
    for one in (agent, agent.web_agent):
        assert one.planning == "off" and one.model.max_reply_tokens == 400
        assert one.model.call_target == "gpt:x" and one.model.call_kwargs["temperature"] == 0
    assert [f.name for f in agent.functions()] == ["web_agent", "stop"]
    assert len(agent.web_agent.functions()) < 10
    agent.check()


@pytest.mark.parametrize("kind", [CKAgent, WebAgent, ComputerAgent])
@pytest.mark.parametrize("profile", [*PROFILES])
def test_every_profile_fits_every_agent_of_the_commands(kind: Any, profile: str) -> None:
    build_agent(kind, None, [], profile=profile).check()


def test_a_file_and_updates_override_single_settings_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("planning: fused\nmodel: {call_kwargs: {temperature: 1}}\n")
    updates = ["web_agent.model.max_reply_tokens=900"]
    agent = build_agent(CKAgent, path, updates, profile="small")
    assert (agent.planning, agent.web_agent.planning) == ("fused", "off")
    assert agent.model.call_kwargs["temperature"] == 1 and agent.model.call_kwargs["stop"]
    assert (agent.model.max_reply_tokens, agent.web_agent.model.max_reply_tokens) == (400, 900)
    assert agent.web_agent.model.call_kwargs["temperature"] == 1


def test_an_update_of_the_main_model_overrides_the_profile_for_all_models() -> None:
    agent = build_agent(CKAgent, None, ["model.max_reply_tokens=800"], profile="small")
    assert (agent.model.max_reply_tokens, agent.web_agent.model.max_reply_tokens) == (800, 800)


def test_a_model_given_as_text_keeps_the_settings_of_the_profile(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model: http://localhost:1\n")
    agent = build_agent(CKAgent, tmp_path / "c.yaml", [], profile="small")
    assert (agent.model.call_target, agent.model.max_reply_tokens) == ("http://localhost:1", 400)


def test_a_new_profile_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = Profile("tests", model={"max_reply_tokens": 9}, named={"web_agent": {"max_steps": 3}})
    monkeypatch.setattr(profiles, "PROFILES", {"brief": brief})
    agent = build_agent(CKAgent, None, [], profile="brief")
    assert (agent.model.max_reply_tokens, agent.web_agent.model.max_reply_tokens) == (9, 9)
    assert (agent.max_steps, agent.web_agent.max_steps) == (16, 3)


def test_the_functions_of_the_small_profile_take_less_than_half_of_the_tokens() -> None:
    full, small = WebAgent(), build_agent(WebAgent, None, [], profile="small")
    sizes = [estimate_tokens(definitions(a.functions())) for a in (small, full)]
    assert sizes[0] < sizes[1] / 2


def test_without_a_profile_nothing_changes() -> None:
    assert build_agent(CKAgent, None, []).to_dict() == CKAgent().to_dict()


@pytest.mark.parametrize("command", [main, web, demo])
def test_every_command_has_the_options(command: Any) -> None:
    options = {name for param in command.params for name in param.opts}
    assert {"--profile", "--language"} <= options


def test_the_demo_accepts_a_profile_and_a_language() -> None:
    agent = demo_agent("http://127.0.0.1:1", model="gpt:x", profile="small", language="code")
    assert agent.web_agent.planning == "off" and agent.web_agent.max_steps == 16
    assert agent.web_agent.web_env.allow == ["127.0.0.1:1"]


@pytest.mark.parametrize("option", [["--profile", "small"], ["--language", "function_calls"]])
def test_the_recording_of_the_demo_needs_its_own_prompts(option: list[str]) -> None:
    from click import UsageError

    with pytest.raises(UsageError, match="needs --model: the recording has other prompts"):
        demo.main(option, standalone_mode=False)


def test_the_language_is_set_for_every_agent_and_updates_override_it() -> None:
    agent = build_agent(CKAgent, None, [], language="function_calls")
    assert (agent.language.name, agent.web_agent.language.name) == ("function_calls",) * 2
    updates = ["web_agent.language=code"]
    agent = build_agent(CKAgent, None, updates, language="function_calls")
    assert (agent.language.name, agent.web_agent.language.name) == ("function_calls", "code")


def test_a_language_of_the_screen_needs_the_computer_agent() -> None:
    agent = build_agent(ComputerAgent, None, [], language="computer")
    assert isinstance(agent.language, ComputerUseLanguage) and agent.language.tool == "computer"
    with pytest.raises(ConfigError, match=r"--language computer: .* use python -m ck_web.main"):
        build_agent(CKAgent, None, [], language="computer")


@pytest.mark.parametrize("kind", [CKAgent, WebAgent])
def test_the_prompts_of_the_small_profile_are_short(kind: Any) -> None:
    def size(profile: str | None) -> int:
        agent = build_agent(kind, None, [], profile=profile)
        functions = agent.functions()
        short, long = functions.definitions(short=True), functions.definitions()
        values = {
            **{"task": "", "history": [], "goals": [], "state": {}, "files": [], "notices": []},
            **{"language": agent.language, "plans": profile is None, "planning": "fused"},
            **{"functions_short": short, "functions_long": long, "step_idx": 0, "max_steps": 9},
            **{"web_functions": definitions(functions), "web_page": "", "web_image": ""},
            "web_page_title": "Current page",
        }
        prompt = agent.get_template("action").format(**values)
        assert not isinstance(prompt, str)
        return estimate_tokens(prompt[0]["content"])

    assert size("small") < 0.6 * size(None)
    assert size("small") < 600


def test_the_small_profile_works_with_function_calls() -> None:
    agent = build_agent(CKAgent, None, [], profile="small", language="function_calls")
    agent = agent.updated({"model": ScriptedLLM(["stop(output='42')"])})
    assert agent.run("What is 6 * 7?").final_results["output"] == "42"
