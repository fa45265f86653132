"""Every typed action is executed, observed, journaled and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ck_pro import ActionAgent, AgentSession, Journal, MultiStepAgent, Stepper, StopTool
from ck_pro.approval import RuleApprover
from ck_pro.events import (
    Action,
    AddTaskAction,
    BrowserObservation,
    BrowseURLAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    CodeAction,
    ErrorObservation,
    FileReadAction,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
    FinishAction,
    MessageAction,
    ModifyTaskAction,
    Observation,
    RecallAction,
    RecallObservation,
    RejectAction,
    SuccessObservation,
    TextObservation,
    ThinkAction,
    ToolCall,
    action_from_dict,
    observation_from_dict,
)
from ck_pro.events.observations import CodeObservation
from ck_pro.exceptions import InputError
from ck_pro.journal import read_events
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM


class Doing(ActionAgent):
    """Returns the actions of a list, one per step."""

    actions: list[Any] = []

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        return self.actions[len(state.steps) - 1]  # type: ignore[no-any-return]


def do(*actions: Action, **settings: Any) -> AgentSession:
    run = {k: settings.pop(k) for k in ("journal", "on_event") if k in settings}
    agent = Doing(actions=[*actions, FinishAction(output="end")], max_steps=30, **settings)
    session: AgentSession = agent.run("t", **run)
    return session


@pytest.mark.worker
def test_commands_and_files(tmp_path: Path) -> None:
    actions = [
        FileWriteAction(path="a/b.txt", content="one\ntwo\n"),
        FileReadAction(path="a/b.txt"),
        FileReadAction(path="missing"),
        CmdRunAction(command="echo hi; exit 3"),
        CmdRunAction(command="sleep 600", background=True),
        CmdKillAction(command_id=1),
        CmdKillAction(command_id=7),
        CodeAction(code="x = 1\nprint(x + 1)", thought="add"),
        CodeAction(code="x / 0"),
    ]
    with Journal(tmp_path) as journal:
        session = do(*actions, journal=journal)
    seen = [observation for _, observation in session.history]
    assert [a for a, _ in session.history[:-1]] == actions
    assert isinstance(seen[0], FileWriteObservation) and seen[0].path == "a/b.txt"
    assert isinstance(seen[1], FileReadObservation) and seen[1].text == "one\ntwo\n"
    assert isinstance(seen[2], ErrorObservation) and "missing" in seen[2].text
    assert isinstance(seen[3], CmdOutputObservation)
    assert seen[3].exit_code == 3 and seen[3].text.startswith("hi")
    assert isinstance(seen[4], CmdOutputObservation)
    assert (seen[4].exit_code, seen[4].command_id) == (None, 1)
    assert isinstance(seen[5], CmdOutputObservation) and seen[5].command_id == 1
    assert isinstance(seen[6], ErrorObservation)
    assert seen[7] == CodeObservation(text="2")
    assert isinstance(seen[8], CodeObservation) and seen[8].error == "ZeroDivisionError"
    (rebuilt,) = sessions_from_events(read_events(tmp_path)).values()
    assert rebuilt.history == session.history
    assert AgentSession.from_dict(session.to_dict()).history == session.history
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


def test_tasks_memory_thoughts_and_messages() -> None:
    sent: list[str] = []

    def on_event(event: Any) -> None:
        if event["kind"] == "message":
            sent.append(event["text"])

    session = do(
        AddTaskAction(goal="install the lamp"),
        AddTaskAction(goal="buy it", parent="0.0"),
        ModifyTaskAction(task_id="0.0.0", state="in_progress"),
        ModifyTaskAction(task_id="0.9", state="completed"),
        ModifyTaskAction(task_id="0.0", state="finished"),
        ThinkAction(thought="The lamp was installing itself."),
        RecallAction(query="installed lamps"),
        MessageAction(content="Nearly there."),
        on_event=on_event,
    )
    seen = [observation for _, observation in session.history]
    assert seen[0] == SuccessObservation(text="0.0") and seen[1].text == "0.0.0"
    assert seen[2] == SuccessObservation(text="task 0.0.0 is in_progress")
    assert "no task '0.9'; known are: 0, 0.0, 0.0.0" in seen[3].text
    assert "no state 'finished'; known are: open, in_progress, completed" in seen[4].text
    assert isinstance(seen[3], ErrorObservation) and isinstance(seen[4], ErrorObservation)
    assert isinstance(seen[6], RecallObservation)
    assert any("installing itself" in text for text in seen[6].memories)
    assert sent == ["Nearly there."]
    assert session.root_task.text() == (
        "- 0.0 [in_progress] install the lamp\n  - 0.0.0 [in_progress] buy it"
    )
    assert session.updated_info[0][0] == FinishAction(output="end")
    assert session.status is Status.DONE


def test_a_page_is_opened_and_read() -> None:
    pages = ["start", "opened", "the page"]

    class Browser(FakeEnvironment):
        def observe(self) -> Observation:
            return BrowserObservation(text="the page", url="https://a.example/")

    session = do(BrowseURLAction(url="https://a.example"), environment=lambda: Browser(pages))
    ((action, seen), _) = session.history
    assert action == BrowseURLAction(url="https://a.example")
    assert isinstance(seen, BrowserObservation) and seen.url == "https://a.example/"
    assert seen.text == "opened\n\nthe page"
    ((_, refused), _) = do(BrowseURLAction(url="https://a.example")).history
    assert isinstance(refused, ErrorObservation) and "no browser" in refused.text


@pytest.mark.worker
def test_an_approver_sees_the_tool_call_of_an_action() -> None:
    approver = RuleApprover(reject=["run_command.*rm"], stop=["write_file"])
    session = do(
        CmdRunAction(command="rm -r x"), FileWriteAction(path="x", content="y"), approver=approver
    )
    assert "not allowed" in session.history[0][1].text
    assert session.stop_reason is StopReason.GUARD and len(session.history) == 1


def test_an_agent_may_reject() -> None:
    agent = Doing(actions=[RejectAction(reason="not mine")])
    session = agent.run("t")
    assert (session.stop_reason, session.message) == (StopReason.REJECTED, "not mine")


class Counting(ActionAgent):
    """The protocol of the document, with a model and a long-term memory."""

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        reply = self.llm(f"{state.task}: {len(state.history)} so far. What now?")
        if reply == "recall":
            return RecallAction(query="colour")
        return FinishAction(output=str(reply))

    def search_memory(self, query: str) -> list[str]:
        return [f"The {query} is green."]


def test_a_step_calls_the_model_of_the_agent(tmp_path: Path) -> None:
    model = ScriptedLLM(["recall", "green"])
    with Journal(tmp_path) as journal:
        session = Counting(model=model).run("Which colour?", journal=journal)
    assert session.final_results["output"] == "green"
    assert session.history[0][1].text == "The colour is green."
    assert model.calls[1].messages[0]["content"] == "Which colour?: 1 so far. What now?"
    assert [e["phase"] for e in read_events(tmp_path) if e["kind"] == "model_call"] == [
        "action"
    ] * 2
    assert session.call_stat()["__main__"]["llm_call"] == 2
    with pytest.raises(InputError, match=r"call it in step\(state\)"):
        Counting(model=model).llm("x")


def test_a_step_that_returns_no_action_is_an_error() -> None:
    class Wrong(ActionAgent):
        def step(self, state: AgentSession) -> Any:
            return "finish"

    assert "Wrong.step returned str; return an Action" in Wrong().run("t").message
    assert "defines no step(state)" in ActionAgent().run("t").message


def test_an_interrupted_run_of_actions_resumes(tmp_path: Path) -> None:
    actions: list[Action] = [AddTaskAction(goal="a"), AddTaskAction(goal="b")]
    with Journal(tmp_path) as journal:
        do(*actions, journal=journal)
    events = tmp_path / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    cut = [n for n, kind in enumerate(kinds) if kind == "task_changed"][1]
    events.write_text("".join(lines[:cut]))  # killed while the second one was carried out
    agent = Doing(actions=[*actions, AddTaskAction(goal="c"), FinishAction(output="end")])
    with Journal(tmp_path) as journal:
        session = agent.resume(journal=journal)
    assert session.status is Status.DONE
    assert [t.goal for t in session.root_task.subtasks] == ["a", "c"]
    assert "did not complete, but may have had an effect" in json.dumps(session.steps[1])


def test_a_driver_reads_typed_history(tmp_path: Path) -> None:
    call = {"id": "c0", "function": {"name": "look", "arguments": '{"n": 1}'}}
    model = ScriptedLLM([Reply("", tool_calls=[call]), "Done."])

    def look(n: int) -> str:
        return "nothing"

    agent = MultiStepAgent(model=model, language="function_calls", tools=[look])
    with Journal(tmp_path) as journal, Stepper(agent, "t", journal=journal) as stepper:
        action = stepper.step(stepper.state)
        assert action == ToolCall(name="look", arguments={"n": 1}, call_id="c0")
        stepper.observe(CmdOutputObservation(text="lamp", command="look", exit_code=0))
        assert stepper.state.updated_info == stepper.state.history
        assert stepper.state.history[0] == (
            action,
            CmdOutputObservation(text="lamp", command="look", exit_code=0),
        )
        stepper.message("Hurry.")
        assert stepper.step(stepper.state) == FinishAction(output="Done.")
        assert stepper.state.root_task.goal == "t"
    assert "The user says: Hurry." in json.dumps(model.calls[1].messages)
    (rebuilt,) = sessions_from_events(read_events(tmp_path)).values()
    sources = [a.source for a, _ in rebuilt.history if isinstance(a, MessageAction)]
    assert sources == ["user"] and rebuilt.history == stepper.state.history


def test_the_history_of_an_ordinary_run_is_typed_as_well() -> None:
    call = {"id": "c0", "function": {"name": "look", "arguments": '{"n": 1}'}}

    def look(n: int) -> str:
        return "nothing"

    model = ScriptedLLM([Reply("", tool_calls=[call]), "Done."])
    agent = MultiStepAgent(model=model, language="function_calls", tools=[look])
    session = agent.run("t")
    assert session.history[0] == (
        ToolCall(name="look", arguments={"n": 1}, call_id="c0"),
        TextObservation(text="nothing"),
    )


def test_the_model_changes_the_task_tree_and_sees_it() -> None:
    def call(name: str, **arguments: Any) -> str:
        return json.dumps({"tool": name, "args": arguments})

    replies = [
        call("add_task", goal="look"),
        call("modify_task", task_id="0.0", state="done"),
        call("modify_task", task_id="0.0", state="completed"),
        call("search_memory", query="looking"),
        call("stop", output="x"),
    ]
    model = ScriptedLLM(replies)
    tools = ["add_task", "modify_task", "search_memory", StopTool()]
    agent = MultiStepAgent(model=model, language="function_calls", tools=tools)
    session = agent.run("t")
    observed = [step["action"]["observation"] for step in session.steps]
    assert observed[0] == "0.0" and "no state 'done'; known are: open" in observed[1]
    assert observed[3].startswith("Step 0: ")
    assert "# Tasks\n- 0.0 [open] look" in model.calls[1].messages[-1]["content"]
    assert "# Tasks\n- 0.0 [completed] look" in model.calls[3].messages[-1]["content"]
    assert "# Tasks" not in model.calls[0].messages[-1]["content"]


def test_the_memory_reads_earlier_journals(tmp_path: Path) -> None:
    for name, fact in (("one", "The invoices were archived in spring."), ("two", "Nothing.")):
        with Journal(tmp_path / name) as journal:
            do(ThinkAction(thought=fact), journal=journal)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "events.jsonl").write_text('{"kind": "session"}\n')
    agent = Doing(
        actions=[RecallAction(query="archiving an invoice"), FinishAction()],
        memory_journals=[str(tmp_path)],
    )
    ((_, seen), _) = agent.run("t").history
    assert isinstance(seen, RecallObservation) and len(seen.memories) == 1
    assert seen.text.startswith("Earlier task: t\nAnswer: end\nStep 0: ")
    assert "archived in spring" in seen.text


class Later(Observation):
    """A type whose fields changed."""

    kind: ClassVar[str] = "later_test"
    version: ClassVar[int] = 2
    size: int = 0

    @classmethod
    def upgraded(cls, fields: dict[str, Any], version: int) -> dict[str, Any]:
        return {"text": fields["text"], "size": int(fields["length"])}


def test_events_are_versioned() -> None:
    made = Later(text="x", size=3)
    assert made.to_dict() == {"kind": "later_test", "version": 2, "text": "x", "size": 3}
    assert observation_from_dict(made.to_dict()) == made
    assert observation_from_dict({"kind": "later_test", "text": "x", "length": "3"}) == made
    with pytest.raises(InputError, match="has version 3; this version of ck-pro reads up to 2"):
        observation_from_dict({"kind": "later_test", "version": 3, "text": "x"})
    assert "version" not in ThinkAction(thought="x").to_dict()


@pytest.mark.parametrize(
    "event",
    [
        CmdRunAction(command="x", background=True),
        CmdKillAction(command_id=1),
        FileReadAction(path="x"),
        FileWriteAction(path="x", content="y"),
        BrowseURLAction(url="https://a.example"),
        RecallAction(query="x"),
        AddTaskAction(goal="x", parent="0.1"),
        ModifyTaskAction(task_id="0.1", state="completed"),
        ThinkAction(thought="x"),
        MessageAction(content="x", source="user"),
        FinishAction(output="x", log="y"),
        RejectAction(reason="x"),
        CodeAction(code="x", thought="y"),
        CmdOutputObservation(text="x", command="y", exit_code=-9, command_id=2),
        CodeObservation(text="x", error="ValueError"),
        FileReadObservation(text="x", path="y"),
        FileWriteObservation(text="x", path="y"),
        BrowserObservation(text="x", url="y"),
        RecallObservation(text="x", query="y", memories=["z"]),
        SuccessObservation(text="x"),
        ErrorObservation(text="x"),
        TextObservation(text="x"),
    ],
    ids=lambda event: event.kind,
)
def test_every_type_survives_a_round_trip(event: Any) -> None:
    read = action_from_dict if isinstance(event, Action) else observation_from_dict
    assert read(json.loads(json.dumps(event.to_dict()))) == event
