"""The command line, with the real main agent: errors are one line, tasks really run."""

import json
from pathlib import Path

import pytest
from main_command import PLAN, code_reply, reply, run, write_lines

from ck_main.agent import CKAgent
from ck_main.cli.building import build_agent
from ck_main.cli.command import run_command
from ck_pro.exceptions import ConfigError


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--foo"], 2, "No such option '--foo'"),
        (["-t", "x", "-i", "y"], 2, "give --input or --task, not both"),
        (["-i", "y"], 2, "--input needs --output"),
        (["--ids", "y"], 2, "need --input"),
        (["-i", "y", "-o", "z", "--ids", ""], 2, "'--ids': no task ids; omit the option"),
        (["-i", "y", "-o", "z", "--ids", " ,"], 2, "'--ids': no task ids; omit the option"),
        (["-t", "x", "-o", "-", "-m", "replay:x"], 4, "--output -: rows need a file"),
        (["-t", "x", "--max-seconds", "nan"], 2, "nan is not a finite number"),
        (["-t", "x", "--max-seconds", "inf"], 2, "not a finite number"),
        (["-t", "x", "--max-money", "nan"], 2, "not a finite number"),
        (["-i", "y", "-o", "z", "--files-dir", "/nope"], 2, "/nope: no such folder"),
        (["-t", " "], 2, "--task is empty"),
        (["-w", "0", "-t", "x"], 2, "--workers"),
        (["-t", "x", "-m", "gtp:x"], 2, "--model: CKAgent.model: call_target 'gtp:x'"),
        (
            ["-t", "x", "-u", "maxsteps=3"],
            2,
            "unknown setting 'maxsteps' (did you mean 'max_steps'",
        ),
        (["-t", "x", "-u", "max_steps=abc"], 2, "--updates max_steps=abc: CKAgent.max_steps"),
        (["-t", "x", "-c", "/nope.yaml"], 2, "config /nope.yaml: cannot be read"),
        (["-i", "/nope", "-o", "{tmp}/o", "-m", "replay:x"], 2, "cannot read the task file /nope"),
        (
            ["-t", "x", "-o", "/proc/version/o", "-m", "replay:x"],
            4,
            "/proc/version is a file, not a folder; name another",
        ),
        (["-t", "x", "-o", "/proc/nope/o", "-m", "replay:x"], 4, "cannot write the output"),
        (["-i", "y", "-o", "o" * 300], 2, "File name too long"),
        (["--resume", "o" * 300], 2, "File name too long"),
        (["-t", "x", "-o", "{tmp}/o", "-m", f"record:{'o' * 300}:manual"], 2, "File name too long"),
        (["-t", "x", "-o", "{tmp}/o", "-m", "replay:/nope"], 2, "cannot read the recording /nope"),
    ],
)
def test_each_error_is_one_line_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, said: str
) -> None:
    got, out, err = run(capsys, *[a.replace("{tmp}", str(tmp_path)) for a in args])
    assert (got, out) == (code, "") and said in err
    assert err.startswith("error: ") and err.count("\n") == 1


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for word in ("Examples:", "Exit codes:", "OPENAI_API_KEY", "--max-money", "To resume, repeat"):
        assert word in out


def test_an_error_in_a_config_says_the_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("max_steps: 3\nweb_agent:\n  model:\n    cal_target: x\n")
    with pytest.raises(ConfigError, match=r"c\.yaml, line 4: .*did you mean 'call_target'"):
        build_agent(CKAgent, tmp_path / "c.yaml", [])


def test_config_model_and_updates_in_this_order(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model:\n  call_target: gpt:a\n  call_kwargs: {t: 1}\n")
    agent = build_agent(CKAgent, tmp_path / "c.yaml", ["web_agent.model=gpt:c"], model="gpt:b")
    assert agent.model.call_target == "gpt:b" and agent.model.call_kwargs == {"t": 1}
    assert agent.web_agent.model.call_target == "gpt:c"


def test_planning_is_set_for_every_agent_and_updates_override_it(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("planning: separate\n")
    agent = build_agent(CKAgent, tmp_path / "c.yaml", [], planning="off")
    assert (agent.planning, agent.web_agent.planning) == ("off", "off")
    (tmp_path / "c.yaml").write_text("web_agent: {planning: off}\n")  # false, for YAML
    agent = build_agent(CKAgent, tmp_path / "c.yaml", [])
    assert (agent.planning, agent.web_agent.planning) == ("fused", "off")
    updates = ["web_agent.planning=fused"]
    agent = build_agent(CKAgent, None, updates, planning="separate")
    assert (agent.planning, agent.web_agent.planning) == ("separate", "fused")


def test_an_unexpected_error_is_one_line_and_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import click

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    @click.command()
    def broken() -> None:
        raise RuntimeError("not\nexpected")

    assert run_command(broken, []) == 6
    err = capsys.readouterr().err
    assert err.startswith("error: internal error: RuntimeError: not expected; the full log is in")
    (log,) = tmp_path.glob("ck-pro-error-*.log")
    assert str(log) in err and "Traceback" in log.read_text()


@pytest.mark.worker
def test_a_task_file_with_the_real_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = write_lines(
        tmp_path / "tasks.jsonl",
        [
            {"id": "sum", "question": "Add up n.csv", "answer": "6", "file_name": "n.csv"},
            {"question": ""},
            {"id": "long", "question": "Never ends"},
        ],
    )
    (tmp_path / "n.csv").write_text("1\n2\n3\n")
    replies = write_lines(
        tmp_path / "r.jsonl",
        [
            reply("Add up n.csv", "plan", PLAN),
            code_reply("Add up n.csv", 'stop(str(sum(map(int, open("n.csv")))), "added up")'),
            reply("Never ends", "plan", PLAN),
            code_reply("Never ends", "print(1)"),
        ],
    )
    output = tmp_path / "out.jsonl"
    args = ["-i", tasks, "-o", output, "-m", f"replay:{replies}?check=off", "--max-steps", 1]
    code, out, err = run(capsys, *args)
    assert code == 3 and "line 2, field 'question': is empty" in err
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [r["id"] for r in rows] == ["sum", "long"]
    assert rows[0]["eval"] == {"pred": "6", "gold": "6", "corr": 1}
    assert rows[1]["session"]["info"]["stop_reason"] == "steps"
    assert "1 of 1 scored tasks right, 1 failed" in out
    before = output.read_bytes()
    code, out, _ = run(capsys, *args)
    assert code == 3 and output.read_bytes() == before and "2 from earlier runs" in out


@pytest.mark.worker
def test_one_task_prints_its_answer_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = write_lines(
        tmp_path / "r.jsonl",
        [reply("What is 6 * 7?", "plan", PLAN), code_reply("What is 6 * 7?", "stop(str(6 * 7))")],
    )
    monkeypatch.chdir(tmp_path)
    model = f"replay:{replies}?check=off"
    code, out, err = run(capsys, "-t", "What is 6 * 7?", "-m", model)
    assert (code, out) == (0, "42\n") and "ck_agent step 0" in err
    code, out, err = run(capsys, "-t", "Another", "-m", model)
    assert code == 1 and "model_failure" in err
    assert len((tmp_path / "runs" / "main.jsonl").read_text().splitlines()) == 2


@pytest.mark.worker
def test_a_person_plays_the_model_through_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    typed = [PLAN, "/send", "Thought: t", "```python", "stop(str(2 ** 10))", "```", "/send"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(["2 to the 10th?", *typed, ""])))
    code, out, err = run(capsys, "-m", "manual", "-o", tmp_path / "o.jsonl")
    assert (code, out) == (0, "1024\n"), err
