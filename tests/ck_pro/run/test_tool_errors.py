"""The model sees every error of a tool, in every language, unless the error ends the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentSession, Journal, MultiStepAgent, StopTool
from ck_pro.events import Action, ComputerAction, Observation
from ck_pro.exceptions import EnvironmentFailure, IsolationError
from ck_pro.journal import EVENTS_FILE
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason
from ck_pro.testing import FakeEnvironment, ScriptedLLM


class Mute(Exception):
    """An error whose `__str__` fails."""

    def __str__(self) -> str:
        raise ValueError("nothing to say")


class Foreign(Exception):
    """An error of a library."""


class Odd:
    """A result whose `__str__` fails."""

    def __str__(self) -> str:
        raise Foreign("no text")

    __repr__ = __str__


ERRORS: list[BaseException] = [
    RuntimeError("broken"),
    ZeroDivisionError("by zero"),
    AssertionError("untrue"),
    StopIteration("no more"),
    MemoryError("too large"),
    RecursionError("too deep"),
    Foreign("not known"),
    Mute(),
    IsolationError("of a nested executor"),
    SystemExit(3),
    GeneratorExit("closed"),
]


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("so", tool_calls=[{"id": "c0", "type": "function", "function": function}])


def agent(language: str, tool: Callable[..., Any]) -> MultiStepAgent:
    if language == "function_calls":
        replies: list[Any] = [call("fail"), call("stop", output="continued")]
    else:
        replies = ["```python\nfail()\n```", "```python\nstop('continued')\n```"]
    model = ScriptedLLM({"action": replies})
    return MultiStepAgent(model=model, language=language, tools=[tool, StopTool()])


def raising(error: BaseException) -> Callable[[], str]:
    def fail() -> str:
        """Fail."""
        raise error

    return fail


LANGUAGES = ["function_calls", pytest.param("code", marks=pytest.mark.worker)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_the_model_sees_the_error_of_a_tool(language: str, error: BaseException) -> None:
    session = agent(language, raising(error)).run("Try.")
    assert session.status is Status.DONE, session.message
    assert session.final_results["output"] == "continued"
    seen = session.steps[0]["action"]["observation"]
    assert type(error).__name__ in seen
    assert isinstance(error, Mute) or str(error.args[0]) in seen


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_result_without_a_text_form_is_an_error_that_the_model_sees(language: str) -> None:
    def fail() -> Any:
        """Return an unusual value."""
        return Odd()

    session = agent(language, fail).run("Try.")
    assert session.status is Status.DONE and session.final_results["output"] == "continued"
    assert "Foreign" in session.steps[0]["action"]["observation"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_broken_environment_ends_the_run(language: str) -> None:
    error = EnvironmentFailure("the environment is lost")
    session = agent(language, raising(error)).run("Try.")
    assert session.stop_reason is StopReason.ENVIRONMENT_FAILURE
    assert session.message == "the environment is lost" and len(session.steps) == 1


def test_the_model_sees_the_error_of_an_environment() -> None:
    def respond(action: Action) -> Observation:
        assert isinstance(action, ComputerAction)
        raise Foreign("no such key")

    class Desk(MultiStepAgent):
        def init_run(self, session: AgentSession) -> None:
            session.run.environment = FakeEnvironment(respond=respond)

    model = ScriptedLLM([call("computer", action="wait"), "gave up"])
    session = Desk(model=model, language="computer_use").run("Try.")
    assert session.status is Status.DONE
    assert session.steps[0]["action"]["observation"] == "Foreign: no such key"


@pytest.mark.parametrize("after", [0, 1])
def test_a_run_resumes_after_the_error_of_a_tool(tmp_path: Path, after: int) -> None:
    one = agent("function_calls", raising(RuntimeError("broken")))
    with Journal(tmp_path / "whole") as journal:
        one.run("Try.", journal=journal)
    lines = (tmp_path / "whole" / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"kind":"call"' in line)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / EVENTS_FILE).write_bytes(b"".join(lines[: at + after]))
    with Journal(tmp_path / "cut") as journal:
        session = one.resume(journal=journal)
    assert session.status is Status.DONE and session.final_results["output"] == "continued"
    expected = "RuntimeError: broken" if after else "may have had an effect"
    assert expected in session.steps[0]["action"]["observation"]
