"""`--agent NAME` and the list of agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from main_command import run

from ck_main.agents import cli as agents
from ck_main.cli.agent_names import BUILTIN, named_agent
from ck_pro.command_line import ExitCode, run_command

SOURCE = '''
from ck_pro import ActionAgent
from ck_pro.events import FinishAction


class Hello(ActionAgent):
    """Greets."""

    greeting: str = "Hello"

    def step(self, state):
        return FinishAction(output=f"{self.greeting}, {state.task}!")
'''


def test_a_class_in_the_current_folder_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("greeters_of_test.py").write_text(SOURCE)
    given = ["--agent", "greeters_of_test:Hello", "-t", "Ada"]
    assert run(capsys, *given)[:2] == (ExitCode.DONE, "Hello, Ada!\n")
    assert run(capsys, *given, "-u", "greeting=Good day")[1] == "Good day, Ada!\n"
    code, _, err = run(capsys, "--agent", "greeters_of_test:Bye", "-t", "Ada")
    assert code == ExitCode.USAGE and "has no attribute 'Bye'" in err
    code, _, err = run(capsys, "--agent", "web_agnt", "-t", "Ada")
    assert code == ExitCode.USAGE and "did you mean 'web_agent'?" in err


def test_the_agents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(agents, []) == ExitCode.DONE
    shown = capsys.readouterr().out
    for name, target in BUILTIN.items():
        assert f"{name} " in shown and f"{target} (ck-pro)" in shown
        assert named_agent(name).__name__ == target.rpartition(":")[2]
    assert "not usable" not in shown
