"""Conversations: several turns of the user in one session."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ck_pro import Agent, AgentSession, AskHumanTool, Journal, MultiStepAgent, StopTool
from ck_pro.events import Observation
from ck_pro.exceptions import InputError
from ck_pro.journal import read_events
from ck_pro.language import text_of
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM


def call(tool: str, **args: Any) -> str:
    return json.dumps({"tool": tool, "args": args})


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def answer_of(session: AgentSession) -> str:
    assert session.final_results is not None
    return session.final_results["output"]


def last_prompt(agent: MultiStepAgent) -> str:
    assert isinstance(agent.model, ScriptedLLM)
    return "\n".join(text_of(m["content"]) for m in agent.model.calls[-1].messages)


class World(FakeEnvironment):
    """Counts how often it was made."""

    made: list[World] = []

    def __init__(self) -> None:
        super().__init__(["calm"])
        self.made.append(self)

    def observe(self) -> Observation:
        return Observation()


@pytest.fixture(autouse=True)
def no_worlds() -> None:
    World.made.clear()


@pytest.mark.worker
def test_variables_and_environment_stay_between_turns(tmp_path: Path) -> None:
    model = ScriptedLLM([code("x = 40"), code("stop(x)"), code("stop(x + 2)")])
    agent = MultiStepAgent(model=model, tools=[StopTool()], environment=World)
    with Journal(tmp_path) as journal:
        session = agent.turn(None, "Remember 40.", journal=journal)
        assert (session.status, answer_of(session)) == (Status.DONE, "40")
        session = agent.turn(session, "Add 2.")
        assert (session.status, answer_of(session)) == (Status.DONE, "42")
        assert "# Message from the user\nAdd 2.\n\n" in last_prompt(agent)
        assert "# Task\nRemember 40." in last_prompt(agent)
        assert last_prompt(agent).index("stop(x)") < last_prompt(agent).index("Add 2.")
        assert [w.closed for w in World.made] == [0]
        agent.end_session(session)
        agent.end_session(session)  # no effect
    assert [w.closed for w in World.made] == [1] and session.run is None
    (rebuilt,) = sessions_from_events(read_events(tmp_path)).values()
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())
    assert session.info["turns"] == [{"step": 2, "text": "Add 2."}]
    assert AgentSession.from_dict(session.to_dict()).turns == session.turns


def test_each_turn_has_its_own_step_limit_and_step_numbers() -> None:
    def look() -> str:
        return "nothing"

    replies = [call("look"), call("look"), call("look"), call("look"), "at last"]
    agent = Agent(actions=[look], generate_response=ScriptedLLM(replies), max_steps=2)
    session = agent.turn(None, "a")
    assert session.stop_reason is StopReason.STEPS and "within 2 steps" in session.message
    session = agent.turn(session, "b", max_steps=3)
    assert answer_of(session) == "at last" and len(session.steps) == 5
    assert "Step 3 of 3, the last one." in last_prompt(agent)
    agent.end_session(session)


def test_a_repeated_message_is_not_a_repeated_step() -> None:
    agent = Agent(generate_response=lambda prompt: "Yes.", stuck_limit=2)
    session = agent.turn(None, "Are you there?")
    for _ in range(4):
        session = agent.turn(session, "Are you there?")
        assert session.status is Status.DONE
    agent.end_session(session)


def test_the_message_of_the_current_turn_stays_visible_when_old_steps_leave() -> None:
    def look(n: int) -> str:
        return "long " * 200

    replies = ["Hello.", *(call("look", n=n) for n in range(6)), "Done."]
    agent = Agent(actions=[look], generate_response=ScriptedLLM(replies), history_chars=2000)
    session = agent.turn(None, "First request.")
    session = agent.turn(session, "Second request.")
    agent.end_session(session)
    assert "# Message from the user\nSecond request." in last_prompt(agent)
    assert last_prompt(agent).count("Second request.") == 1
    assert session.status is Status.DONE


def test_a_conversation_continues_from_its_journal(tmp_path: Path) -> None:
    agent = Agent(generate_response=ScriptedLLM(["one", "two", "three"]), environment=World)
    with Journal(tmp_path / "j") as journal:
        first = agent.turn(None, "a", journal=journal)
        first = agent.turn(first, "b")
        agent.suspend_run(first)
    with Journal(tmp_path / "j") as journal:  # as another process does
        session = agent.turn(None, "c", journal=journal)
        agent.end_session(session)
    assert session is not first and session.id == first.id
    assert [turn["text"] for turn in session.turns] == ["b", "c"]
    assert answer_of(session) == "three" and len(World.made) == 2
    text = last_prompt(agent)
    assert text.index("# Task\na") < text.index("from the user\nb") < text.index("from the user\nc")
    (rebuilt,) = sessions_from_events(read_events(tmp_path / "j")).values()
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


def test_a_cancelled_turn_can_be_replaced_by_another_message() -> None:
    cancel = threading.Event()

    def wait() -> str:
        cancel.set()
        return "waited"

    replies = [call("wait"), "Then this."]
    agent = Agent(actions=[wait], generate_response=ScriptedLLM(replies), environment=World)
    session = agent.turn(None, "a", cancel=cancel)
    assert session.status is Status.IN_PROGRESS
    session = agent.turn(session, "Do this instead.")
    assert answer_of(session) == "Then this." and len(World.made) == 1
    assert "Do this instead." in last_prompt(agent)
    agent.end_session(session)


def test_a_killed_turn_resumes_or_is_replaced(tmp_path: Path) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    for folder, text in (("completed", ""), ("replaced", "Something else.")):
        model = ScriptedLLM(["Hi.", call("look"), "Seen.", "Else."])
        agent = Agent(actions=[look], generate_response=model)
        with Journal(tmp_path / folder) as journal:
            session = agent.turn(None, "Hello.", journal=journal)
            session = agent.turn(session, "Look.")
            agent.end_session(session)
        events = tmp_path / folder / "events.jsonl"
        lines = events.read_text().splitlines(keepends=True)
        kinds = [json.loads(line)["kind"] for line in lines]
        last = len(kinds) - 1 - kinds[::-1].index("started")
        events.write_text("".join(lines[: last + 1]))  # killed while the tool ran
        with Journal(tmp_path / folder) as journal:
            session = agent.turn(None, text, journal=journal)
            agent.end_session(session)
        assert session.status is Status.DONE
        assert [t["text"] for t in session.turns][1:] == ([text] if text else [])
        seen = session.steps[1]["action"]["observation"]
        expected = "did not complete" if text else "look: the run was interrupted during this call"
        assert expected in seen


def test_the_next_message_answers_a_question(tmp_path: Path) -> None:
    replies = [call("ask_human", question="Which colour?"), "Green it is."]
    agent = Agent(actions=[AskHumanTool()], generate_response=ScriptedLLM(replies))
    with Journal(tmp_path) as journal:
        session = agent.turn(None, "Paint the door.", journal=journal)
        assert session.status is Status.HUMAN_INTERVENTION and "Which colour?" in session.message
        session = agent.turn(session, "Green.", journal=journal)
        agent.end_session(session)
    assert answer_of(session) == "Green it is." and session.turns == []
    assert session.steps[0]["action"]["observation"] == "Green."


def test_without_a_journal_the_prompt_shows_the_answer() -> None:
    replies = [call("ask_human", question="Which colour?"), "Green it is."]
    agent = Agent(actions=[AskHumanTool()], generate_response=ScriptedLLM(replies))
    session = agent.turn(None, "Paint the door.")
    session = agent.turn(session, "Green.")
    agent.end_session(session)
    assert answer_of(session) == "Green it is."
    assert "Question to the user: Which colour? Answer: Green." in last_prompt(agent)


def test_wrong_uses_raise_one_line() -> None:
    agent = Agent(generate_response=lambda prompt: "x")
    with pytest.raises(InputError, match="the first message is missing"):
        agent.turn(None, " ")
    inner: list[BaseException] = []

    def again() -> str:
        for use in (lambda: agent2.turn(session, "b"), lambda: agent2.end_session(session)):
            try:
                use()
            except InputError as e:
                inner.append(e)
        return "done"

    session = AgentSession()
    agent2 = Agent(actions=[again], generate_response=ScriptedLLM([call("again"), "x"]))
    assert agent2.turn(session, "a") is session
    assert ["still works" in str(e) for e in inner] == [True, True]
    agent2.end_session(session)


def test_a_finished_run_can_become_a_conversation() -> None:
    agent = Agent(generate_response=ScriptedLLM(["one", "two"]))
    session = agent.run("a")
    session = agent.turn(session, "b")
    assert answer_of(session) == "two" and len(session.steps) == 2
    agent.end_session(session)
