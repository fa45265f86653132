"""Subclasses of agents and models, in the forms that users write first."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code

from ck_pro import LLM, AgentResult, AgentSession, Journal, MultiStepAgent, StopTool, get_template
from ck_pro.exceptions import ConfigError
from ck_pro.journal import read_events
from ck_pro.model import Reply, Transient
from ck_pro.session import StopReason, sessions_from_events
from ck_pro.template import TemplatedString
from ck_pro.testing import ScriptedLLM

PRINTS = "```python\nprint('hello')\n```"
STOPS = "```python\nstop('7')\n```"


# --- templates -------------------------------------------------------------------------------


def test_the_templates_of_an_agent_can_be_formatted() -> None:
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


@pytest.mark.slow  # the garbage collector examines all objects of the tests
def test_a_run_without_an_end_leaves_no_folder(
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


def test_an_invalid_template_raises_before_the_run() -> None:
    with pytest.raises(ConfigError, match=r"agent\.templates\.action: 5 is not a template"):
        MultiStepAgent(templates={"action": 5}).check()
    given = TemplatedString("x")
    MultiStepAgent(templates={"action": given}).check()


# --- hooks -----------------------------------------------------------------------------------


@pytest.mark.worker
def test_step_check_end_is_called_only_after_a_step() -> None:
    class Once(MultiStepAgent):
        def step_check_end(self, session: AgentSession) -> bool:
            return "hello" in session.steps[-1]["action"]["observation"]

    session = Once(model=ScriptedLLM([PRINTS]), tools=[StopTool()]).run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.FINISHED, 1)


def test_zero_steps_are_not_an_internal_error() -> None:
    session = MultiStepAgent(model=ScriptedLLM([STOPS])).run("t", max_steps=0)
    assert session.stop_reason is StopReason.STEPS
    assert session.final_results == {"output": "", "log": session.message}


def test_a_step_that_does_nothing_raises() -> None:
    class Lazy(MultiStepAgent):
        def step(self, session: AgentSession, state: Mapping[str, Any]) -> Any:
            yield super().step(session, state)

    session = Lazy(model=ScriptedLLM([STOPS])).run("t")
    assert session.stop_reason is StopReason.INTERNAL_ERROR
    assert "Lazy.step did no step (it returned generator)" in session.message


# --- models ----------------------------------------------------------------------------------


@pytest.mark.worker
def test_a_custom_model_may_return_plain_text() -> None:
    class Tidy(ScriptedLLM):
        def __call__(self, messages: Any, **kwargs: Any) -> Any:
            return super().__call__(messages, **kwargs).strip()

    session = MultiStepAgent(model=Tidy([f"\n{STOPS}\n"]), tools=[StopTool()]).run("t")
    action = session.steps[0]["action"]
    assert session.final_results == {"output": "7", "log": ""}
    assert action["llm_output"] == STOPS and action["llm_input"][0]["role"] == "system"
    assert action["llm_info"]["model"] == "Tidy" and action["llm_info"]["usage"]["estimated"]
    assert session.call_stat()["__main__"]["llm_call"] == 1


def test_waits_for_a_model_are_emitted() -> None:
    busy = Transient("the house is busy", retry_after=0.001)
    model = ScriptedLLM([busy, Reply("nothing")], wait=lambda seconds, cancel: None)
    emitted: list[dict[str, Any]] = []
    MultiStepAgent(model=model).run("t", max_steps=1, on_event=emitted.append)
    (event,) = (e for e in emitted if e["kind"] == "model_waits")
    assert event["text"] == "retrying in 0.0 s: the house is busy" and event["phase"] == "action"


def test_a_custom_model_that_returns_no_text_ends_the_run_with_a_message() -> None:
    class Silent(LLM):
        def __call__(self, messages: Any, **kwargs: Any) -> Any:
            return None

    session = MultiStepAgent(model=Silent()).run("t")
    assert session.stop_reason is StopReason.MODEL_FAILURE
    assert session.message == "Silent.__call__ returned NoneType; it must return a str"


@pytest.mark.worker
def test_a_sub_agent_may_override_call() -> None:
    class Reader(MultiStepAgent):
        def __call__(self, task: str, page: int = 1, **kwargs: Any) -> AgentResult:
            return super().__call__(f"{task}, page {page}", **kwargs)

    class Still(MultiStepAgent):
        def __call__(self, task: str) -> AgentResult:  # type: ignore[override]
            return AgentResult(output="still", log="")

    reader = Reader(name="reader", model=ScriptedLLM([code("stop('read')")]), tools=[StopTool()])
    assert reader.get_function_definition(short=True).startswith(
        "- reader(task: str, page: int = 1):"
    )
    assert reader.parameters["properties"]["page"] == {"type": "integer", "default": 1}
    subs = [reader, Still(name="still")]
    a = agent(code("stop(reader('x', page=2).output + still('y').output)"), sub_agents=subs)
    session = a.run("t")
    assert session.final_results["output"] == "readstill"
    assert [child.task for child in session.children.values()] == ["x, page 2"]


@pytest.mark.worker
def test_overrides_of_finalize_and_step_check_end_count(tmp_path: Path) -> None:
    class Loud(MultiStepAgent):
        def step_check_end(self, session: AgentSession) -> bool:
            return len(session.steps) == 2

        def finalize(self, session: AgentSession) -> dict[str, Any]:
            return {**super().finalize(session), "output": "loud"}

    a = Loud(name="main", model=ScriptedLLM([code("1"), code("2")]), tools=[StopTool()])
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert (session.stop_reason, session.message) == (StopReason.FINISHED, "")
    assert session.final_results["output"] == "loud"
    rebuilt = sessions_from_events(read_events(tmp_path))
    assert rebuilt[session.id].to_dict() == session.to_dict()


@pytest.mark.worker
def test_a_subclass_may_override_parse_output() -> None:
    class Tagged(MultiStepAgent):
        def _parse_output(self, reply: str) -> dict[str, str]:
            thought, _, rest = reply.partition("<run>")
            return {"thought": thought, "code": rest.partition("</run>")[0]}

    replies = ["sum<run>print(1 + 1)</run>", code("print('not agreed')"), "<run>stop('2')</run>"]
    session = Tagged(name="main", model=ScriptedLLM(replies), tools=[StopTool()]).run("t")
    seen = [step["action"]["observation"] for step in session.steps[:2]]
    assert session.final_results == {"output": "2", "log": ""}
    assert session.steps[0]["action"]["thought"] == "sum"
    assert seen[0] == "2" and "no code" in seen[1]
