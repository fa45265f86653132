"""A task file from its first line to the exit code, with an agent that needs no model."""

import json
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent
from job_desk import Desk

from ck_main.runner.choosing import TryOptions
from ck_main.runner.model_settings import settings_of_models
from ck_main.runner.run_options import RunOptions
from ck_main.runner.service_checks import (
    check_services,
    service_url,
    uses_manual_model,
)
from ck_main.runner.signals import StopSignals
from ck_main.ui.logs import LOG_NAME, logging_to
from ck_pro import MultiStepAgent, SimpleSearchTool
from ck_pro.agent_settings import ExecutorSettings
from ck_pro.command_line import ExitCode, exit_code_of, write_crash
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import (
    BrowserServerError,
    ConfigError,
    ModelUnavailable,
    OutputError,
    TaskFileError,
)
from ck_pro.model import LLM
from ck_pro.session import StopReason
from ck_web.browser.config import WebEnvConfig

pytestmark = pytest.mark.integration

GOOD = [{"question": "a", "answer": "A"}, {"question": "b", "answer": "x"}, {"question": "c"}]


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    recording = tmp_path / "replies.jsonl"
    recording.write_text("")
    return FakeAgent(model=f"replay:{recording}")


def test_a_whole_file(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, GOOD)
    assert desk.run(agent) is ExitCode.DONE
    assert desk.ids() == ["task0000", "task0001", "task0002"]
    assert "3 tasks, 1 of 2 scored tasks right, 21 tokens" in desk.table()
    assert "[3/3] task0002" in desk.said() and f"rows: {desk.output}" in desk.table()
    assert not (tmp_path / "out" / LOG_NAME).exists()


def test_selection_and_resuming(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, GOOD)
    desk.run(agent, ids=("task0002",))
    assert desk.ids() == ["task0002"]
    desk.run(agent, limit=2)
    desk.run(agent, limit=2)
    assert desk.ids() == ["task0002", "task0000", "task0001"]
    assert "2 from earlier runs" in desk.table()


@pytest.mark.parametrize("keep", [0, 100, -1])
@pytest.mark.parametrize("tries", [None, TryOptions(2, choose="first")])
def test_rows_that_a_truncated_output_lost_are_written_again(
    tmp_path: Path, agent: FakeAgent, keep: int, tries: TryOptions | None
) -> None:
    desk = Desk(tmp_path, GOOD)
    asked: list[str] = []

    def behaviour(call: Call) -> str:
        asked.append(call.task)
        if len(asked) == 2 * (tries.tries if tries else 1):
            os.truncate(desk.output, keep if keep >= 0 else desk.output.stat().st_size + keep)
        return call.task

    agent.behaviour = behaviour
    options = RunOptions(tries=tries)
    assert desk.run(agent, options=options) is ExitCode.DONE
    assert sorted(desk.ids()) == ["task0000", "task0001", "task0002"]
    if keep >= 0:
        assert "restored 1 of 1 lost rows from their journals" in desk.said()
    count = len(asked)
    assert desk.run(agent, options=options) is ExitCode.DONE and len(asked) == count


def test_a_row_that_is_torn_between_two_commands_is_rebuilt(
    tmp_path: Path, agent: FakeAgent
) -> None:
    desk = Desk(tmp_path, GOOD)
    desk.run(agent)
    before = desk.output.read_bytes()
    os.truncate(desk.output, len(before) - 100)
    agent.behaviour = lambda call: pytest.fail("it ran again")
    assert desk.run(agent) is ExitCode.DONE and desk.output.read_bytes() == before


def test_an_output_removed_during_the_run_is_reported(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, GOOD)

    def behaviour(call: Call) -> str:
        if call.task == "b":
            desk.output.unlink()
        return call.task

    agent.behaviour = behaviour
    assert desk.run(agent) is ExitCode.OUTPUT
    assert desk.ids() == ["task0001", "task0002"] and "2 of 3 tasks" in desk.table()
    assert "rows lost: 1 (task0000); repeat the command to run these tasks again" in desk.said()
    status = json.loads((desk.output.with_suffix("") / "status.json").read_text())
    assert (status["state"], status["done"], status["left"]) == ("output", 3, 1)
    agent.behaviour = None
    assert desk.run(agent) is ExitCode.DONE and desk.ids()[2:] == ["task0000"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_task_file_changed_during_the_run_is_reported(
    tmp_path: Path, agent: FakeAgent, workers: int
) -> None:
    lines = [{"question": q, "file_name": f"{q}.txt"} for q in "abcdef"]
    for line in lines:
        (tmp_path / line["file_name"]).write_text("")
    desk = Desk(tmp_path, lines)

    def behaviour(call: Call) -> str:
        (tmp_path / "f.txt").unlink(missing_ok=True)
        return call.task

    agent.behaviour = behaviour
    assert desk.run(agent, options=RunOptions(workers=workers)) is ExitCode.LINES
    assert sorted(desk.ids()) == [f"task000{n}" for n in range(5)]
    assert "changed during the run: not run: 1 (task0005)" in desk.said()
    (tmp_path / "f.txt").write_text("")
    assert desk.run(agent) is ExitCode.DONE


def test_invalid_lines_are_reported_and_the_others_run(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, [GOOD[0], "broken\n", {"id": 3}, *["[]\n"] * 30, GOOD[1]])
    assert desk.run(agent) is ExitCode.LINES
    assert desk.ids() == ["task0000", "task0033"]
    assert ", line 2: is not JSON" in desk.said() and "field 'question'" in desk.said()
    assert "... and 12 more invalid lines" in desk.said()


def test_a_file_without_tasks(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, ["x\n"])
    with pytest.raises(TaskFileError, match="no valid tasks; write one"):
        desk.run(agent)
    assert desk.said().startswith("error: ") and len(desk.said().splitlines()) == 1
    with pytest.raises(TaskFileError, match="no tasks; write one"):
        Desk(tmp_path, ["\n\n"]).run(agent)
    assert not desk.output.exists()


def test_a_question_that_changed_is_neither_run_nor_counted(
    tmp_path: Path, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CK_TEST_API_KEY", "very-secret-key")
    tasks = [{"id": n, "question": f"{n} very-secret-key"} for n in "abc"]
    Desk(tmp_path, tasks).run(agent, limit=2)
    desk = Desk(tmp_path, [{**tasks[0], "question": "another"}, *tasks[1:]])
    before = desk.output.read_text()
    assert desk.run(agent) is ExitCode.LINES
    assert desk.output.read_text().startswith(before) and desk.ids() == ["a", "b", "c"]
    (line,) = [x for x in desk.said().splitlines() if "error: " in x]
    assert "task 'a': its row in" in line and "answers a different question" in line
    assert "2 of 3 tasks, 1 not run" in desk.table()


def test_tasks_without_a_row_are_counted(tmp_path: Path, agent: FakeAgent) -> None:
    def behaviour(call: Call) -> Any:
        if call.task == "b":
            os.kill(os.getpid(), signal.SIGTERM)
            return StopReason.CANCELLED
        return "x"

    agent.behaviour = behaviour
    desk = Desk(tmp_path, GOOD)
    assert desk.run(agent) is ExitCode.STOPPED
    assert "1 of 3 tasks, 2 not run" in desk.table()


def test_problems_are_in_the_exit_code_also_the_next_time(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, GOOD)

    def behaviour(call: Call) -> str:
        if call.task == "b":
            raise RuntimeError("a fault")
        return "x"

    agent.behaviour = behaviour
    assert desk.run(agent) is ExitCode.PROBLEM
    assert desk.run(agent) is ExitCode.PROBLEM
    log = (tmp_path / "out" / LOG_NAME).read_text()
    assert "Traceback" in log and "Traceback" not in desk.said()


def test_mistakes_are_found_before_the_first_task(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, GOOD)
    with pytest.raises(ConfigError, match=r"--ids x: .* has no valid task"):
        desk.run(agent, ids=("x", "task0000"))
    with pytest.raises(ConfigError, match="is the task file itself"):
        desk.run(agent, output=desk.input)
    with pytest.raises(TaskFileError, match="cannot read the task file"):
        desk.run(agent, input=tmp_path / "none.jsonl")
    with pytest.raises(OutputError):
        desk.run(agent, output=tmp_path)
    with pytest.raises(ConfigError, match="replay: cannot read"):
        desk.run(FakeAgent(model="replay:none.jsonl"))
    assert desk.output.read_text() == ""


def test_ctrl_c_stops_cleanly(
    tmp_path: Path, agent: FakeAgent, capfd: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(tmp_path, GOOD)
    before = signal.getsignal(signal.SIGINT)

    def behaviour(call: Call) -> str:
        if call.task == "b":
            os.kill(os.getpid(), signal.SIGTERM)
            call.cancel.wait(60)
        return "x"

    agent.behaviour = behaviour
    assert desk.run(agent) is ExitCode.STOPPED
    assert desk.ids() == ["task0000", "task0001"]  # the task in progress completed
    assert "Stopping" in capfd.readouterr().err and signal.getsignal(signal.SIGINT) is before


def test_an_output_that_cannot_be_written_has_its_exit_code(
    tmp_path: Path, agent: FakeAgent
) -> None:
    desk = Desk(tmp_path, GOOD)

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "task0001").write_text("in the way")
    assert desk.run(agent) is ExitCode.OUTPUT
    assert desk.ids() == ["task0000"] and "error: cannot write " in desk.said()


def test_exit_codes_of_errors() -> None:
    assert exit_code_of(ConfigError("")) == exit_code_of(TaskFileError("")) == 2
    assert exit_code_of(OutputError("")) == 4
    assert exit_code_of(ModelUnavailable("")) == exit_code_of(BrowserServerError("")) == 5


def test_the_first_signal_stops_and_the_second_interrupts() -> None:
    stop, said = threading.Event(), []
    with StopSignals(stop, say=said.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60) and len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
    hung_up = StopSignals(threading.Event(), say=said.append)
    with hung_up:
        for _ in range(2):  # the shell and the kernel both send it
            os.kill(os.getpid(), signal.SIGHUP)
        assert hung_up.stop.wait(60)
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    with StopSignals(threading.Event(), say=said.append):
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, ignored)
    assert len(said) == 2
    person = StopSignals(threading.Event(), at_once=True, say=said.append)
    with person, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)


class Team(KwargsInitializable):
    model: LLM = LLM(call_target="gpt:a")
    helper: FakeAgent = FakeAgent(model="gpt:b")
    none: LLM | None = None


def test_one_model_for_the_whole_tree() -> None:
    settings = settings_of_models(Team(), {"call_target": "manual"})
    assert settings == {
        "model": {"call_target": "manual"},
        "helper": {"model": {"call_target": "manual"}},
    }
    assert not uses_manual_model(Team())
    assert uses_manual_model(Team(helper={"model": "record:x.jsonl:manual"}))


def test_services_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("")
    closed = _closed_port()
    for target in (f"http://127.0.0.1:{closed}/v1", f"record:x:http://127.0.0.1:{closed}"):
        with pytest.raises(ModelUnavailable, match=f"127.0.0.1:{closed} cannot be reached"):
            check_services(FakeAgent(model=target))

    class Browsing(FakeAgent):
        web_env: WebEnvConfig = WebEnvConfig(server_url=f"127.0.0.1:{closed}")

    with pytest.raises(BrowserServerError, match="connection refused"):
        check_services(Browsing(model=f"replay:{tmp_path / 'r.jsonl'}"))


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("local:none.json", r"search\.backend: simple_web_search: cannot read the index none.json"),
        ("google", r"search\.backend: simple_web_search: GOOGLE_API_KEY is not set"),
    ],
)
def test_a_search_tool_that_lacks_its_index_or_package(
    backend: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)

    class Searching(MultiStepAgent):
        search: SimpleSearchTool = SimpleSearchTool()
        tools = ["search"]

    Path("r.jsonl").write_text("")
    agent = Searching(model="replay:r.jsonl", search={"backend": backend})
    with pytest.raises(ConfigError, match=said):
        check_services(agent)
    check_services(agent.updated({"active_functions": []}))


@pytest.mark.worker
@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("preload", ["no_such_module"], "executor: cannot preload no_such_module"),
        ("require_isolation", "walls", "executor: require_isolation: unknown walls"),
    ],
)
def test_a_worker_that_cannot_start(setting: str, value: Any, said: str) -> None:
    class Coding(FakeAgent):
        executor: ExecutorSettings = ExecutorSettings()

    with pytest.raises(ConfigError, match=said):
        check_services(Coding(executor={setting: value}))


def _closed_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_which_address_a_target_means() -> None:
    none: dict[str, str] = {}
    assert service_url("manual", none) is None and service_url("gpt:x", none) is None
    assert service_url("replay:x", none) is None
    assert service_url("gpt:x", {"OPENAI_BASE_URL": "http://localhost:1"}) == "http://localhost:1"
    assert service_url("record:f:http://localhost:1", none) == "http://localhost:1"


def test_logs_hold_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_TEST_API_KEY", "very-secret-key")
    with logging_to(tmp_path / "run.log"):
        try:
            raise ValueError("very-secret-key")
        except ValueError:
            logging.getLogger("ck_pro.x").exception("with very-secret-key")
    text = (tmp_path / "run.log").read_text()
    assert "ValueError: ***" in text and "very-secret-key" not in text
    try:
        raise ValueError("very-secret-key")
    except ValueError as e:
        said = write_crash(e)
    crash = Path(said.removeprefix("the full log is in "))
    try:
        assert "Traceback" in crash.read_text() and "very-secret-key" not in crash.read_text()
    finally:
        crash.unlink()
