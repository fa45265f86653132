"""The demo's command on a small demo folder, without a browser."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from main_command import PLAN, code_reply, reply, write_lines

from ck_main.cli.command import run_command
from ck_main.demo import DEMO, cli, demo_agent, fill_placeholders, notice, set_aside
from ck_pro.exceptions import ConfigError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "demo"
    data.mkdir()
    shutil.copytree(DEMO / "site", data / "site")
    shutil.copy(DEMO / "config.yaml", data)
    (data / "search_index.json").write_text("[]")
    task = "Which host? {site}/"
    write_lines(data / "tasks.jsonl", [{"id": "a", "question": task, "answer": "yes"}])
    return data


def test_the_agent_knows_the_site(data: Path) -> None:
    agent = demo_agent("http://127.0.0.1:81", data)
    assert agent.web_agent.web_env.allow == ["127.0.0.1:81"]
    assert agent.search.origin == "http://127.0.0.1:81"
    assert agent.search.backend.startswith(f"local:{data}")
    target = f"replay:{data / 'replies.jsonl'}"
    assert agent.model.call_target == agent.web_agent.model.call_target == target
    recorder = demo_agent("http://127.0.0.1:81", data, "gpt:x", Path("r.jsonl"))
    assert recorder.web_agent.model.call_target == "record:r.jsonl:gpt:x"


def test_the_demo_takes_settings_and_limits(data: Path) -> None:
    updates = ["web_agent.max_steps=3", "{'max_steps': 5}"]
    agent = demo_agent("http://127.0.0.1:81", data, updates=updates)
    assert (agent.max_steps, agent.web_agent.max_steps) == (5, 3)
    assert agent.web_agent.web_env.allow == ["127.0.0.1:81"]
    with pytest.raises(ConfigError, match=r"--updates max_step=3: .*did you mean 'max_steps'"):
        demo_agent("http://127.0.0.1:81", data, updates=["max_step=3"])
    names = {name for param in cli.params for name in param.opts}
    what = ("steps", "seconds", "tokens", "money")
    limits = {f"--{run}max-{one}" for run in ("", "run-") for one in what}
    assert names >= limits | {"--updates"}


def test_the_demo_sets_planning_only_with_a_model_of_its_own(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = demo_agent("http://127.0.0.1:81", data, "manual", planning="off")
    assert agent.planning == agent.web_agent.planning == "off"
    output = str(tmp_path / "out.jsonl")
    options = ["--data", str(data), "--output", output, "--planning", "separate"]
    assert run_command(cli, options) == 2
    assert "--planning separate needs --model: the recording" in capsys.readouterr().err


def test_placeholders_are_filled_at_every_depth() -> None:
    assert fill_placeholders({"a": ["{x}{y}", 1]}, {"x": "1"}) == {"a": ["1{y}", 1]}


def test_the_notice_names_the_setting() -> None:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as shown:
        console.print(notice(None), notice("gpt:x"))
    assert "recording" in shown.get() and "--model gpt:NAME" in shown.get()
    assert "gpt:x" in shown.get()


def test_an_earlier_demo_moves_aside(tmp_path: Path) -> None:
    output = tmp_path / "demo.jsonl"
    assert set_aside(output) is None
    for content in ("1", "2"):
        output.write_text(content)
        (tmp_path / "demo").mkdir()
        (tmp_path / "demo" / content).touch()
        assert set_aside(output) == tmp_path / "demo.old.jsonl"
    assert (tmp_path / "demo.old.jsonl").read_text() == "2"
    assert [p.name for p in (tmp_path / "demo.old").iterdir()] == ["2"]
    assert not output.exists() and not (tmp_path / "demo").exists()


@pytest.mark.worker
@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 1)])
def test_the_exit_code_is_the_score(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    question = "Which host? http://127.0.0.1/"
    replies = tmp_path / "r.jsonl"
    write_lines(replies, [reply(question, "plan", PLAN), code_reply(question, f"stop({answer!r})")])
    _normalised(replies)
    output = tmp_path / "runs" / "demo.jsonl"
    mine = tmp_path / "runs" / "demo.tasks.jsonl"
    mine.parent.mkdir()
    mine.write_text("mine")
    args = ["--data", data, "-o", output, "-m", f"replay:{replies}?check=off"]
    assert run_command(cli, [str(a) for a in args]) == code, capsys.readouterr().err
    (row,) = map(json.loads, output.read_text().splitlines())
    assert mine.read_text() == "mine"
    assert (tmp_path / "runs" / "demo" / "tasks.jsonl").is_file()
    assert row["eval"]["corr"] == 1 - code and "{site}" not in row["task"]
    assert "scored tasks right" in capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.parametrize(
    ("options", "code"), [([], 5), (["--run-max-steps", "1"], 7)], ids=["stopped", "limit"]
)
def test_an_unfinished_demo_advises_to_start_over(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    code: int,
) -> None:
    typed = "no code\n/send\n" * 2 if options else ""
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    good = ["--data", str(data), "-o", str(tmp_path / "out.jsonl"), "-m", "manual"]
    assert run_command(cli, [*good, *options]) == code
    said = capsys.readouterr().err
    assert "; repeat the command to start over" in said and "resume" not in said


def _normalised(replies: Path) -> None:
    """Tasks in recordings are in normal form: no ports."""
    from ck_pro.model.recordings.elements import normalise_task

    rows = [json.loads(line) for line in replies.read_text().splitlines()]
    write_lines(replies, [{**r, "task": normalise_task(r["task"], "")} for r in rows])


def test_a_missing_demo_folder_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(cli, ["--data", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.integration
def test_nothing_is_moved_or_written_before_the_checks(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs" / "demo.jsonl"
    output.parent.mkdir()
    output.write_text("earlier")
    write_lines(tmp_path / "r.jsonl", [])
    good = ["--data", str(data), "-o", str(output)]
    for wrong in (["-m", "gtp:x"], ["--ids", "none"], ["-m", "replay:/nope"]):
        assert run_command(cli, [*good, "-m", f"replay:{tmp_path / 'r.jsonl'}", *wrong]) != 0
        assert [p.name for p in output.parent.iterdir()] == ["demo.jsonl"]
    folder = tmp_path / "some"
    folder.mkdir()
    assert run_command(cli, ["--data", str(data), "-o", str(folder)]) == 4
    assert "not a regular file" in capsys.readouterr().err
    assert list(folder.iterdir()) == [] and not (tmp_path / "some.tasks.jsonl").exists()


def test_an_output_without_rows_never_replaces_one_with_rows(tmp_path: Path) -> None:
    output, old = tmp_path / "demo.jsonl", tmp_path / "demo.old.jsonl"
    output.write_text("")
    old.write_text("rows")
    assert set_aside(output) is None
    assert old.read_text() == "rows"
