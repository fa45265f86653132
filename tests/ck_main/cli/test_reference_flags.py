"""Settings, flags and task lines that were written for CK-Pro."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from main_command import run

from ck_main.agent import CKAgent
from ck_main.cli.building import build_agent
from ck_main.cli.former_flags import REFUSED, current_arguments
from ck_main.cli.job import Job, survey
from ck_main.cli.typed import typed_lines
from ck_main.main import cli
from ck_main.tasks.dataset import Task, read_tasks
from ck_pro import MultiStepAgent, StopTool
from ck_pro.exceptions import ConfigError
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM

LINE = """{
    'model': {'call_target': 'gpt:x', 'seed': 7, 'max_token_num': 20000},
    'max_steps': 9, 'max_time_limit': 600,
    'exec_timeout_with_call': 1000, 'exec_timeout_wo_call': 200,
    'web_agent': {
        'model': {'call_target': 'gpt:y', 'call_kwargs': {'temperature': 0.5}},
        'web_env_kwargs': {
            'web_ip': 'localhost:3001', 'web_timeout': 600, 'screenshot_boxed': False,
        },
    },
}"""


def test_the_settings_line_of_the_reference_works() -> None:
    agent = build_agent(CKAgent, None, [LINE])
    assert agent.model.call_kwargs == {"seed": 7} and agent.model.max_prompt_tokens == 20000
    assert (agent.max_steps, agent.max_seconds) == (9, 600)
    assert (agent.executor.timeout, agent.executor.call_timeout) == (200, 1000)
    env = agent.web_agent.web_env
    assert env.given_server() == "localhost:3001" and env.timeout == 600
    assert not env.screenshot_boxed and agent.web_agent.model.call_kwargs == {"temperature": 0.5}
    assert agent.web_agent.max_steps == CKAgent().web_agent.max_steps


@pytest.mark.parametrize(
    ("updates", "timeout"),
    [
        (
            [
                "web_agent.web_env.timeout=5",
                "{'web_agent': {'web_env_kwargs': {'web_timeout': 9}}}",
            ],
            9,
        ),
        (
            [
                "{'web_agent': {'web_env_kwargs': {'web_timeout': 9}}}",
                "web_agent.web_env.timeout=5",
            ],
            5,
        ),
    ],
)
def test_of_former_and_current_names_the_last_wins(updates: list[str], timeout: float) -> None:
    assert build_agent(CKAgent, None, updates).web_agent.web_env.timeout == timeout


def test_a_limit_of_zero_means_none() -> None:
    agent = CKAgent(max_time_limit=0, exec_timeout_with_call=0, model={"max_token_num": 0})
    assert agent.max_seconds is None and agent.executor.call_timeout is None
    assert agent.model.max_prompt_tokens is None


def test_a_former_name_without_a_value_is_not_set() -> None:
    agent = CKAgent(model={"seed": None}, web_agent={"web_env_kwargs": None}, max_time_limit=None)
    assert agent.model.call_kwargs == {} and agent.max_seconds is None
    assert agent.web_agent.web_env.to_dict() == CKAgent().web_agent.web_env.to_dict()


def test_a_command_for_a_server_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "ck_web.browser.config._log.warning", lambda text, *args: said.append(text % args)
    )
    for _ in range(3):
        CKAgent(web_agent={"web_env_kwargs": {"web_command": "sh run_test.sh"}})
    (line,) = said
    assert line.startswith("web_command 'sh run_test.sh' is not run: ")


def test_settings_of_the_file_agent_are_settings_of_the_main_agent() -> None:
    agent = build_agent(CKAgent, None, ["{'file_agent': {'max_steps': 3}}"])
    assert agent.file_agent.max_steps == 3
    with pytest.raises(ConfigError, match="unknown setting 'web_envs'"):
        build_agent(CKAgent, None, ["{'web_agent': {'web_envs': {}}}"])


def test_the_time_limit_of_an_agent_ends_its_run() -> None:
    model = ScriptedLLM(replies=lambda *_: "```python\nstop(1)\n```")
    session = MultiStepAgent(model=model, tools=[StopTool()], max_seconds=1e-9).run("t")
    assert session.stop_reason is StopReason.TIME


# --- flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-u", "{'a': 1}", "{'b': 2}", "c=3"], ["-u", "{'a': 1}", "-u", "{'b': 2}", "-u", "c=3"]),
        (
            ["--updates={}", "{'b': 2}", "-i", "x=1"],
            ["--updates={}", "-u", "{'b': 2}", "-i", "x=1"],
        ),
        (["-U", "{}", "{}", "--input", "a"], ["-u", "{}", "-u", "{}", "--input", "a"]),
        (["--max_steps", "3", "--max-steps=4"], ["--max-steps", "3", "--max-steps=4"]),
        (["--no_such", "1"], ["--no_such", "1"]),
        (["-t", "{'a': 1}", "x"], ["-t", "{'a': 1}", "x"]),
        (["-u", "-x=1", "--", "--max_steps"], ["-u", "-x=1", "--", "--max_steps"]),
        (["-u{'a': 1}", "b=2", "-Uc=3", "{}"], ["-u{'a': 1}", "-u", "b=2", "-uc=3", "-u", "{}"]),
        (["-u"], ["-u"]),
    ],
)
def test_former_command_lines(given: list[str], expected: list[str]) -> None:
    known = {"-u", "--updates", "-i", "--input", "--max-steps", "-t"}
    assert current_arguments(given, known) == expected


@pytest.mark.parametrize("flag", sorted(REFUSED))
@pytest.mark.parametrize("form", ["{}", "{}=3"])
def test_flags_without_an_option_name_what_to_use(
    capsys: pytest.CaptureFixture[str], flag: str, form: str
) -> None:
    for name in (flag, "--" + flag[2:].replace("-", "_")):
        code, out, err = run(capsys, "-i", "x.jsonl", form.format(name), "3")
        assert code == 2 and not out and err.count("\n") == 1
        assert err.startswith(f"error: {name}: not an option here; ")
        for option in (word.strip(",;.") for word in REFUSED[flag].split()):
            if option.startswith("--"):
                assert any(option in param.opts for param in cli.params)


def test_several_dicts_after_one_flag(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["-u", "{'max_steps': 3}", "{'no_such_thing': 1}", "--task", "x"]
    code, _, err = run(capsys, *args)
    assert code == 2 and "no_such_thing" in err


def test_a_line_ends_interactive_input(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\n two \n __END__\nthree\n"))
    assert list(typed_lines(Console(file=io.StringIO()), "", "")) == ["one", "two"]


def _file(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps({"question": "q", **line}) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("value", "skip"),
    [(1, True), (True, True), ("1", True), ("yes", True), (0, False), (False, False), ("0", False),
     (None, False), ("", False), ("False", False), (0.0, False)],
)  # fmt: skip
def test_a_task_may_be_marked_to_be_skipped(tmp_path: Path, value: Any, skip: bool) -> None:
    (task,) = read_tasks(_file(tmp_path, {"skip": value}))
    assert isinstance(task, Task) and task.skip is skip
    (task,) = read_tasks(_file(tmp_path, {"info": {"skip": value}}))
    assert isinstance(task, Task) and task.skip is skip


def test_skipped_tasks_are_not_selected_unless_they_are_named(tmp_path: Path) -> None:
    path = _file(tmp_path, {"skip": 1}, {}, {"skip": 1}, {})
    job = Job(output=tmp_path / "o.jsonl", input=path)
    assert list(survey(job)[0]) == ["task0001", "task0003"]
    assert job.skipped == ["task0000", "task0002"]
    named = Job(output=tmp_path / "o.jsonl", input=path, ids=("task0002",))
    assert list(survey(named)[0]) == ["task0002"]
    limited = Job(output=tmp_path / "o.jsonl", input=path, limit=1)
    assert list(survey(limited)[0]) == ["task0001"]


def test_only_skipped_tasks_are_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path, {"skip": 1})
    code, _, err = run(capsys, "-i", path, "-o", tmp_path / "o.jsonl")
    assert code == 0 and 'not run, marked "skip": 1 (task0000)' in err
