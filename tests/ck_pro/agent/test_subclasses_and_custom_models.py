"""Subclasses and models of one's own, in the forms that one would write first."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ck_pro import LLM, AgentSession, MultiStepAgent, StopTool, get_template
from ck_pro.exceptions import ConfigError
from ck_pro.model import Reply, Transient
from ck_pro.session import StopReason
from ck_pro.template import TemplatedString
from ck_pro.testing import ScriptedLLM

PRINTS = "```python\nprint('hello')\n```"
STOPS = "```python\nstop('7')\n```"


# --- templates -------------------------------------------------------------------------------


def test_templates_of_an_agent_can_be_formatted() -> None:
    own = {"plan": None, "end": lambda task: f"End of {task}"}
    a = MultiStepAgent(templates=own)
    a.register_template("plan", "Plan {task}, {state['done']}")
    values = a._prepare_common_input_kwargs(AgentSession("Count."), {})
    assert a.templates["action"] == "agent_action"
    shown = a.templates["action"].format(**values)
    assert shown == get_template("agent_action").format(**values) and "Count." in str(shown)
    assert a.templates["plan"].format(task="x", state={"done": 1}) == "Plan x, 1"
    assert a.updated({"max_steps": 3}).templates["end"].format(task="x") == "End of x"
    assert MultiStepAgent(templates=own).templates["plan"] is None
    assert a.to_dict()["templates"] == {"action": "agent_action"}


def test_a_run_that_nobody_ends_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = AgentSession("Count.")
    MultiStepAgent()._prepare_common_input_kwargs(session, {})
    folder = session.run.workdir
    assert folder.is_dir()
    del session
    gc.collect()
    assert not folder.exists()


def test_what_is_no_template_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigError, match=r"agent\.templates\.action: 5 is not a template"):
        MultiStepAgent(templates={"action": 5}).check()
    given = TemplatedString("x")
    MultiStepAgent(templates={"action": given}).check()


# --- hooks -----------------------------------------------------------------------------------


@pytest.mark.worker
def test_the_end_is_looked_for_after_a_step_never_before_the_first() -> None:
    class Once(MultiStepAgent):
        def step_check_end(self, session: AgentSession) -> bool:
            return "hello" in session.steps[-1]["action"]["observation"]

    session = Once(model=ScriptedLLM([PRINTS]), tools=[StopTool()]).run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.FINISHED, 1)


def test_no_steps_at_all_are_no_error_of_ours() -> None:
    session = MultiStepAgent(model=ScriptedLLM([STOPS])).run("t", max_steps=0)
    assert session.stop_reason is StopReason.STEPS
    assert session.final_results == {"output": "", "log": session.message}


def test_a_step_that_does_nothing_does_not_go_on_for_ever() -> None:
    class Lazy(MultiStepAgent):
        def step(self, session: AgentSession, state: Mapping[str, Any]) -> Any:
            yield super().step(session, state)

    session = Lazy(model=ScriptedLLM([STOPS])).run("t")
    assert session.stop_reason is StopReason.INTERNAL_ERROR
    assert "Lazy.step did no step (it returned generator)" in session.message


# --- models ----------------------------------------------------------------------------------


@pytest.mark.worker
def test_a_model_of_ones_own_may_return_a_plain_text() -> None:
    class Tidy(ScriptedLLM):
        def __call__(self, messages: Any, **kwargs: Any) -> Any:
            return super().__call__(messages, **kwargs).strip()

    session = MultiStepAgent(model=Tidy([f"\n{STOPS}\n"]), tools=[StopTool()]).run("t")
    action = session.steps[0]["action"]
    assert session.final_results == {"output": "7", "log": ""}
    assert action["llm_output"] == STOPS and action["llm_input"][0]["role"] == "system"
    assert action["llm_info"]["model"] == "Tidy" and action["llm_info"]["usage"]["estimated"]
    assert session.call_stat()["__main__"]["llm_call"] == 1


def test_waits_for_a_model_are_told() -> None:
    busy = Transient("the house is busy", retry_after=0.001)
    model = ScriptedLLM([busy, Reply("nothing")], wait=lambda seconds, cancel: None)
    told: list[dict[str, Any]] = []
    MultiStepAgent(model=model).run("t", max_steps=1, on_event=told.append)
    (event,) = (e for e in told if e["kind"] == "model_waits")
    assert event["text"] == "retrying in 0.0 s: the house is busy" and event["phase"] == "action"


def test_a_model_of_ones_own_that_returns_no_text_is_told() -> None:
    class Silent(LLM):
        def __call__(self, messages: Any, **kwargs: Any) -> Any:
            return None

    session = MultiStepAgent(model=Silent()).run("t")
    assert session.stop_reason is StopReason.MODEL_FAILURE
    assert session.message == "Silent.__call__ returned NoneType; it must return a str"
