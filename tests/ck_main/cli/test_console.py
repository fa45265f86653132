"""`ck-pro COMMAND`: every command under one name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import ck_pro
from ck_main import console
from ck_main.agent import CKAgent
from ck_main.cli import building
from ck_pro.exceptions import ConfigError
from ck_web.browser import server_process

ROOT = Path(console.__file__).resolve().parents[1]
CONSOLE = "import sys; from ck_main.console import main; sys.exit(main())"


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.main(["--help"]) == console.main(["-h"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in console.COMMANDS)
    assert max(map(len, text.splitlines())) <= 80


def test_every_command_is_a_module_that_can_be_run() -> None:
    for _, (module, _) in _commands():
        spec = find_spec(module)
        assert spec is not None and spec.origin is not None
        if spec.submodule_search_locations is not None:
            spec = find_spec(f"{module}.__main__")
            assert spec is not None and spec.origin is not None
        source = Path(spec.origin).read_text()
        assert '__name__ == "__main__"' in source and "quit_on_interrupt()" in source


def test_the_version_has_one_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.main(["--version"]) == 0
    assert capsys.readouterr().out == f"ck-pro {ck_pro.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no command given"),
        (["exprot"], "there is no command 'exprot'; did you mean 'export'?"),
        (["--model"], "there is no command '--model'"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert console.main(arguments) == 2
    assert capsys.readouterr().err == f"error: {said} (see --help)\n"


@pytest.mark.integration
@pytest.mark.parametrize("name", ["run", "export", "site"])
def test_the_help_of_a_command_names_the_command(name: str) -> None:
    done = _run(name, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"Usage: ck-pro {name} ")


@pytest.mark.integration
def test_a_command_keeps_its_exit_code() -> None:
    done = _run("diff", "/nope/a", "/nope/b")
    assert done.returncode == 2 and done.stderr.startswith("error: cannot read /nope/a")


@pytest.mark.integration
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_help_for_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", CONSOLE, "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 4
    assert done.stderr == "error: cannot write to standard output: No space left on device\n"


@pytest.mark.integration
@pytest.mark.parametrize(
    "command", [*((f"-m {module}") for module, _ in console.COMMANDS.values()), "ck-pro run"]
)
def test_ctrl_c_during_the_imports_prints_no_traceback(command: str) -> None:
    form = ["-c", CONSOLE, "run"] if command.startswith("ck-pro") else command.split()
    command_line = [sys.executable, "-X", "importtime", *form, "--help"]
    null = subprocess.DEVNULL
    with subprocess.Popen(command_line, stdout=null, stderr=subprocess.PIPE, text=True) as process:
        seen = process.stderr
        assert seen is not None
        assert any(line.endswith(" click\n") for line in seen)  # the command imports more after it
        process.send_signal(signal.SIGINT)
        rest = [line for line in seen if not line.startswith("import time:")]
    assert process.returncode in (-signal.SIGINT, 130)
    assert rest in ([], ["stopped\n"])


@pytest.mark.integration
@pytest.mark.parametrize("name", ["serve", "install-chromium", "export", "site"])
def test_an_unknown_option_is_one_line(name: str) -> None:
    done = _run(name, "--bogus")
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: No such option '--bogus'") and line.endswith("(see --help)")


@pytest.mark.integration
def test_the_choices_of_a_missing_option_are_on_one_line() -> None:
    done = _run("export", "-i", "x", "-o", "y")
    assert done.returncode == 2
    assert "Choose from: atif, axolotl, " in done.stderr and "\t" not in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-t", "x", "-m", "replay:none.jsonl"),
        ("run", "-t", "x", "-m", "record:none/a.jsonl:manual"),
        ("web", "-t", "x", "-m", "manual", "-u", "web_env.chromium=/nope"),
        ("serve", "--chromium", "/nope"),
    ],
)
def test_a_missing_file_of_the_settings_is_a_usage_error(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = _run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and "--chromium" not in line


@pytest.mark.parametrize("missing", ["flask", "playwright"])
def test_a_browser_without_its_packages_is_a_configuration_error(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = server_process._CHECK.replace(missing, f"no_{missing}")
    monkeypatch.setattr(server_process, "_CHECK", check)
    with pytest.raises(ConfigError, match=rf"no_{missing} is missing: pip install "):
        server_process.check_chromium()


def test_an_agent_without_a_browser_runs_without_its_web_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CK_CHROMIUM")
    monkeypatch.setattr(building, "check_chromium", _failing)
    agent, line = building.without_missing_browser(CKAgent())
    assert line == "this run is without web_agent: no browser can be started here: no Chromium"
    assert agent.sub_agents == [] and "web_agent" in CKAgent().sub_agents
    assert [f.name for f in agent.functions()] == [f.name for f in CKAgent().functions()][1:]


@pytest.mark.parametrize(
    ("settings", "check"),
    [
        ({}, lambda: None),
        ({"web_agent": {"web_env": {"server_url": "http://127.0.0.1:3000"}}}, None),
        ({"web_agent": {"web_env": {"chromium": "/named/chromium"}}}, None),
    ],
)
def test_an_agent_with_a_browser_or_a_server_keeps_its_web_agent(
    settings: dict[str, object],
    check: Callable[[], None] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CK_CHROMIUM")
    monkeypatch.setattr(building, "check_chromium", check or _failing)
    agent = CKAgent(**settings)
    assert building.without_missing_browser(agent) == (agent, "")


def _failing() -> None:
    raise ConfigError("no browser can be started here: no Chromium")


def _commands() -> list[tuple[str, tuple[str, str]]]:
    return list(console.COMMANDS.items())


def _run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CONSOLE, *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, env=env)
