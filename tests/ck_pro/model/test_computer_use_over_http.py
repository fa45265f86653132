"""Computer use over HTTP: the Responses API with requests and the openai package, and chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.approval import AutoApprover
from ck_pro.events import Action, ComputerAction, ComputerObservation, Observation
from ck_pro.exceptions import ModelRefused
from ck_pro.journal import read_events
from ck_pro.language import ComputerUseLanguage, FunctionCallingLanguage
from ck_pro.model import LLM, Reply
from ck_pro.session import Status
from ck_pro.testing import (
    CONTEXT_HEADERS,
    FakeChatServer,
    FakeEnvironment,
    Fault,
    recorded_replies,
)

pytestmark = pytest.mark.integration

PICTURE = "data:image/png;base64,AAAA"
CHECK = {"id": "sc_1", "code": "irrelevant_domain", "message": "Is this the right site?"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
CALL = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "status": "completed",
    "action": {"type": "click", "button": "left", "x": 10, "y": 20},
    "pending_safety_checks": [CHECK],
}
ARGUMENTS = '{"action": "click", "x": 1, "y": 2}'
CLICK = {
    **{"id": "c1", "type": "function"},
    "function": {"name": "computer", "arguments": ARGUMENTS},
}
STOP = {
    **{"id": "s1", "type": "function"},
    "function": {"name": "stop", "arguments": '{"output": "done"}'},
}
DONE = Reply("", tool_calls=[STOP])
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "f1", "name": "add"}
ADD = {**FUNCTION, "arguments": '{"a": 1, "b": 2}', "status": "completed"}
STOP_ITEM = {**FUNCTION, "name": "stop", "arguments": '{"output": "3"}', "status": "completed"}


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


class Clicker(MultiStepAgent):
    """An agent with a fake computer."""

    def init_run(self, session: AgentSession) -> None:
        self.world = session.run.environment = FakeEnvironment(respond=_screen)


def _screen(action: Action) -> Observation:
    return ComputerObservation(text="clicked", image=PICTURE, current_url="http://x.test/")


def clicker(target: str, **settings: Any) -> Clicker:
    model = LLM(call_target=target, wait=lambda seconds, cancel: None)
    language = ComputerUseLanguage("computer_use_preview")
    settings = {"tools": [add, StopTool()], "approver": AutoApprover(True), **settings}
    return Clicker(**{"model": model, "language": language, **settings})


@pytest.fixture(params=["http", "gpt"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function from a server to its `call_target`."""
    if request.param == "http":
        return lambda server: server.url
    pytest.importorskip("openai")

    def named(server: FakeChatServer) -> str:
        monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        return "gpt:computer-use-preview"

    return named


def test_a_run_with_output_items(target: Any, tmp_path: Path) -> None:
    by_items = [Reply("", items=i) for i in ([REASONING, CALL], [ADD])]
    with FakeChatServer([Fault(500), *by_items, "It is 3."]) as server:
        agent = clicker(target(server))
        budget = Budget(max_tokens=10_000)
        with Journal(tmp_path / "journal") as journal:
            session = agent.run("add up", journal=journal, budget=budget)
        calls = list(server.calls)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "It is 3.")
    (action,) = agent.world.actions
    assert isinstance(action, ComputerAction) and (action.x, action.y) == (10, 20)
    assert {c.path.rsplit("/", 1)[-1] for c in calls} == {"responses"} and len(calls) == 4

    first, second, third = (c.body for c in calls[1:])
    assert [t["type"] for t in first["tools"]] == ["computer_use_preview", "function", "function"]
    assert first["tools"][1]["name"] == "add" and first["truncation"] == "auto"
    assert REASONING in second["input"] and CALL in second["input"]
    (output,) = [i for i in second["input"] if i.get("type") == "computer_call_output"]
    assert output["acknowledged_safety_checks"] == [CHECK]
    assert output["output"]["image_url"] == PICTURE
    (answer,) = [i for i in third["input"] if i.get("type") == "function_call_output"]
    assert answer == {"type": "function_call_output", "call_id": "f1", "output": "3"}

    assert session.call_stat()["__main__"] == {
        **{"llm_call": 3, "prompt_tokens": 30, "completion_tokens": 15, "total_tokens": 45}
    }
    assert session.steps[0]["action"]["llm_info"]["items"] == [REASONING, CALL]
    assert session.steps[0]["action"]["llm_info"]["reasoning"] == "hm"
    logged = [e["data"] for e in read_events(tmp_path / "journal") if e["kind"] == "model_call"]
    assert [len(d["items"]) for d in logged] == [2, 1, 1] and logged[0]["attempts"] == 2
    kinds = [e["kind"] for e in read_events(tmp_path / "journal")]
    assert kinds.index("started") < kinds.index("call") < kinds.index("screen")


def test_output_items_can_be_recorded_and_replayed(target: Any, tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with FakeChatServer([Reply("", items=[REASONING, CALL]), "done"]) as server:
        recorded = clicker(f"record:{path}:{target(server)}").run("t")
    replayed = clicker(f"replay:{path}").run("t")
    for session in (recorded, replayed):
        assert session.final_results["output"] == "done", session.message
        assert session.steps[0]["action"]["llm_info"]["items"] == [REASONING, CALL]


@pytest.mark.parametrize("tool", ["function", "computer_use_preview"])
def test_a_recording_can_be_served_over_http(tool: Any, tmp_path: Path) -> None:
    path, language = tmp_path / "replies.jsonl", ComputerUseLanguage(tool)
    click = Reply("", items=[CALL]) if tool != "function" else Reply("", tool_calls=[CLICK])
    end = "done" if tool != "function" else DONE  # in function calling, only stop ends a task
    with FakeChatServer([click, end]) as server:
        clicker(f"record:{path}:{server.url}", language=language).run("t")
    with FakeChatServer(recorded_replies(path)) as server:
        model = LLM(call_target=server.url, headers=CONTEXT_HEADERS)
        agent = clicker("manual", model=model, language=language)
        session = agent.run("t")
    assert session.final_results["output"] == "done", session.message
    assert len(agent.world.actions) == 1


def test_chat_models_get_the_computer_as_a_function(target: Any) -> None:
    with FakeChatServer([Reply("", tool_calls=[CLICK]), DONE]) as server:
        agent = clicker(target(server), language=ComputerUseLanguage())
        session = agent.run("t")
        bodies = [c.body for c in server.calls]
    assert session.final_results["output"] == "done" and len(agent.world.actions) == 1
    assert [t["function"]["name"] for t in bodies[0]["tools"]] == ["computer", "add", "stop"]
    (call,) = next(m["tool_calls"] for m in bodies[1]["messages"] if m.get("tool_calls"))
    assert json.loads(call["function"]["arguments"]) == json.loads(ARGUMENTS)


def test_function_calls_over_the_responses_api(target: Any) -> None:
    with FakeChatServer([Reply("", items=[ADD]), Reply("", items=[STOP_ITEM])]) as server:
        model = LLM(call_target=target(server), call_kwargs={"api": "responses"})
        session = clicker("manual", model=model, language=FunctionCallingLanguage()).run("t")
        bodies = [c.body for c in server.calls]
    assert session.final_results["output"] == "3"
    assert "api" not in bodies[0] and bodies[0]["tools"][0]["name"] == "add"


def test_a_url_can_select_the_responses_api() -> None:
    with FakeChatServer() as server:
        reply = LLM(call_target=server.url + "/v1/responses")("Hello", max_tokens=3)
        assert server.calls[0].path == "/v1/responses"
        assert server.calls[0].body["max_output_tokens"] == 3
    assert (str(reply), reply.model) == ("ok", "fake-model")


def test_a_service_without_the_responses_api_is_reported(target: Any) -> None:
    with FakeChatServer([Fault(404, message="no such route")]) as server:
        llm = LLM(call_target=target(server))
        with pytest.raises(ModelRefused, match="no such route"):
            llm("Hello", tools=[{"type": "computer"}])


def test_an_old_openai_package_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openai = pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-old")
    monkeypatch.delattr(openai.OpenAI, "responses")
    with pytest.raises(ModelRefused, match=r"pip install -U 'openai>=1.66'"):
        LLM(call_target="gpt:x")("Hello", tools=[{"type": "computer"}])
