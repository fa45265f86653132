"""The names that programs written for CK-Pro's web agent use."""

from __future__ import annotations

import importlib
import inspect

import pytest

from ck_pro.agent import MultiStepAgent
from ck_pro.config import KwargsInitializable
from ck_web import WebAgent, WebEnv, WebState
from ck_web.actions import parse_action
from ck_web.agent import PREDEFINED_WEB_ACTIONS


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("ck_web", ["WebAgent", "WebEnv", "WebState", "PREDEFINED_WEB_ACTIONS"]),
        ("ck_web.agent", ["WebAgent", "PREDEFINED_WEB_ACTIONS"]),
        ("ck_web.env", ["WebEnv", "WebState"]),
        ("ck_web.prompts", ["web_plan", "web_action", "web_end"]),
        ("ck_web.main", ["cli"]),
    ],
)
def test_documented_names_can_be_imported(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


def test_the_agent_has_its_documented_methods() -> None:
    agent = WebAgent(model="manual", max_steps=3, recent_steps=2, store_io=False)
    assert isinstance(agent, MultiStepAgent) and isinstance(agent, KwargsInitializable)
    assert (agent.name, agent.max_steps, agent.recent_steps, agent.store_io) == (
        "web_agent", 3, 2, False,
    )  # fmt: skip
    assert agent.model.call_target == "manual" and dict(agent.web_envs) == {}
    assert sorted(agent.templates) == ["action", "end", "plan"]
    assert all(callable(agent.get_template(phase).format) for phase in agent.templates)
    assert agent.sub_agents == [] and agent.active_functions is None and agent.tools
    hooks = "init_run end_run step_prepare step_action step_check_end"
    loop = "run yield_session_run step finalize _prepare_common_input_kwargs _call_model"
    more = "_parse_output __call__ get_function_definition register_template"
    assert all(callable(getattr(agent, name)) for name in f"{hooks} {loop} {more}".split())
    assert list(inspect.signature(agent.__call__).parameters)[:2] == ["task", "target_url"]


def test_a_subclass_can_set_attributes_before_and_after_init() -> None:
    class Shopper(WebAgent):
        def __init__(self, **kwargs: object) -> None:
            self.name = "shopper"
            super().__init__(**kwargs)
            self.max_steps = 7

    assert (Shopper().name, Shopper().max_steps) == ("shopper", 7)


def test_environment_and_state_have_their_documented_names() -> None:
    methods = "observe execute step_state get_state state stop close suspend"
    assert all(callable(getattr(WebEnv, name)) for name in methods.split())
    state = WebState()
    fields = (
        "browser_id page_id target_url curr_step action_string error_message step_url title "
        "current_accessibility_tree downloaded_file_path curr_screenshot_mode boxed_screenshot"
    )
    assert all(hasattr(state, name) for name in fields.split())
    assert "boxed_screenshot" not in state.to_dict()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("click", 3), "click [3]"),
        (("click", 3, "name"), "click [3] name"),
        (("type", 3, "text"), "type [3] text"),
        (("type", 3, "text", False), "type [3] text[NOENTER]"),
        (("scroll_up",), "scroll up"),
        (("scroll_down",), "scroll down"),
        (("wait",), "wait"),
        (("goback",), "goback"),
        (("restart",), "restart"),
        (("goto", "http://a.example/"), "goto http://a.example/"),
        (("save", "a.csv", "b.csv"), "save a.csv b.csv"),
        (("screenshot", True, "a.png"), "screenshot 1 a.png"),
        (("screenshot", False), "screenshot 0"),
        (("stop", "42", "seen"), 'stop ["42", "seen"]'),
        (("nop",), "nop"),
    ],
)
def test_functions_write_their_action_strings(call: tuple[object, ...], text: str) -> None:
    name, *arguments = call
    assert PREDEFINED_WEB_ACTIONS[str(name)](*arguments) == text
    for shape in (text.replace("[3]", "3"), text.upper().replace("UP", "up"), f"  {text}\n"):
        assert parse_action(shape).name == parse_action(text).name


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("click", "(id, link_name='', role='')"),
        ("type", "(id, content, enter=True, role='')"),
        ("goto", "(url)"),
        ("save", "(remote_path, local_path)"),
        ("screenshot", "(flag, save_path='', marks=True, region=None)"),
    ],
)
def test_parameters_have_their_documented_names(name: str, parameters: str) -> None:
    signature = inspect.signature(PREDEFINED_WEB_ACTIONS[name])
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == parameters
