"""`python -m ck_pro.trajectory.diff`: the first difference of two runs."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sample_runs import Samples, read_lines

from ck_pro.journal import EVENTS_FILE, compress_journal, journal_folders
from ck_pro.trajectory import diff
from ck_pro.trajectory.compare import first_difference


def _text(content: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "rules"}, {"role": "user", "content": content}]


def _session(agent: str = "ck_agent", task: str = "t") -> dict[str, Any]:
    steps = [
        {
            "plan": {"llm_input": _text("plan"), "llm_output": "{}"},
            "action": {
                "llm_input": _text(f"act {n}"),
                "llm_output": f"do {n}",
                "observation": f"seen {n} at http://localhost:{4000 + n}",
                "sub_sessions": [],
            },
        }
        for n in range(2)
    ]
    info = {"agent": agent, "status": "done", "stop_reason": "finished"}
    info["final_results"] = {"output": "42", "log": ""}
    return {"id": agent, "task": task, "info": info, "steps": steps}


def _run() -> dict[str, Any]:
    main = _session()
    main["steps"][1]["action"]["sub_sessions"] = [_session("web_agent", "find it")]
    tool = {"phase": "tool:ask_llm", "llm_input": _text("why"), "llm_output": "so"}
    main["steps"][1]["action"]["model_calls"] = [tool]
    return main


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(session: Any) -> None:
        *names, last = [int(n) if n.isdigit() else n for n in path.split(".")]
        for name in names:
            session = session[name]
        session[last] = value

    return change


SUB = "steps.1.action.sub_sessions.0"


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("task", "u", "ck_agent: task"),
        ("steps.0.plan.llm_input.0.content", "x", "ck_agent, step 0, plan: prompt"),
        ("steps.0.plan.llm_input", [], "ck_agent, step 0, plan: call"),
        ("steps.0.plan.llm_output", "x", "ck_agent, step 0, plan: reply"),
        ("steps.1.action.llm_output", "x", "ck_agent, step 1, action: reply"),
        ("steps.1.action.observation", "x", "ck_agent, step 1, action: observation"),
        ("steps.1.action.observation", ["x"], "ck_agent, step 1, action: observation"),
        ("steps.1.action.sub_sessions", [], "ck_agent, step 1, action: sub-agents"),
        ("steps.1.action.model_calls.0.llm_output", "x", "ck_agent, step 1, tool:ask_llm: reply"),
        ("steps.1.end", {"llm_input": [], "llm_output": "x"}, "ck_agent, step 1, end: reply"),
        (f"{SUB}.task", "x", "ck_agent/web_agent: task"),
        (f"{SUB}.steps.1.action.llm_output", "x", "ck_agent/web_agent, step 1, action: reply"),
        (f"{SUB}.steps", [], "ck_agent/web_agent, step 0: steps"),
        (f"{SUB}.info.status", "problem", "ck_agent/web_agent: status"),
        ("info.final_results.output", "43", "ck_agent: answer"),
    ],
)
def test_the_first_difference_is_found(path: str, value: Any, where: str) -> None:
    a, b = _run(), _run()
    assert first_difference(a, b) is None
    _set(path, value)(b)
    for x, y in ((a, b), (b, a)):
        found = first_difference(x, y)
        assert found is not None and found.where == where
        assert first_difference(x, y, exact=True) == found


def test_ports_and_ids_count_only_in_exact_comparisons() -> None:
    a, b = _run(), _run()
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    other = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}]
    for session, port, shot in ((a, 1, picture), (b, 2, other)):
        _set("steps.0.action.observation", f"at http://localhost:{port}")(session)
        _set("steps.0.action.llm_input.1.content", shot)(session)
    assert first_difference(a, b) is None
    found = first_difference(a, b, exact=True)
    assert found is not None and found.what == "prompt"


def test_ids_of_tool_calls_do_not_count() -> None:
    a, b = _run(), _run()
    for session, name in ((a, "c1"), (b, "c2")):
        call = {"id": name, "function": {"name": "add", "arguments": "{}"}}
        session["steps"][0]["action"]["llm_info"] = {"tool_calls": [call]}
    assert first_difference(a, b, exact=True) is None
    b["steps"][0]["action"]["llm_info"]["tool_calls"][0]["function"]["name"] = "sub"
    found = first_difference(a, b)
    assert found is not None and found.where == "ck_agent, step 0, action: reply"
    assert any('"name": "sub"' in line for line in found.lines(9))


# --- the command -----------------------------------------------------------------------------


def _row(id: str, session: dict[str, Any], **more: Any) -> str:
    return json.dumps({"id": id, "task": "t", "session": session, **more}) + "\n"


def _files(folder: Path, **contents: str) -> list[str]:
    for name, content in contents.items():
        (folder / name).write_text(content)
    return [str(folder / name) for name in contents]


def test_tasks_of_two_files_are_matched_by_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = _run()
    _set("steps.1.action.llm_output", "do\n\x1b[31mother")(changed)
    rows = _row("x", _run()) + _row("y", _run()) + _row("z", _run())
    args = _files(tmp_path, a=rows, b=_row("w", _run()) + _row("y", changed) + _row("x", _run()))
    assert diff.main(args) == 1
    assert capsys.readouterr().out.splitlines() == [
        "x: the same",
        "y: differs at ck_agent, step 1, action: reply",
        "  @@ -1 +1,2 @@",
        "  -do 1",
        "  +do",
        "  +\ufffd[31mother",
        "only in A: z",
        "only in B: w",
        "2 tasks compared: 1 differ",
    ]
    assert diff.main([*args, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] == ["x"] and found["only_a"] == ["z"] and found["only_b"] == ["w"]
    parted = found["parted"][0]
    assert (parted["task_id"], parted["step"], parted["what"]) == ("y", 1, "reply")
    assert diff.main([*args, "--ids", "x"]) == 0
    assert diff.main([*args, "--ids", "v"]) == 2
    assert diff.main([*args, "--ids", ""]) == 2


def test_previous_tries_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = copy.deepcopy(_run())
    _set("steps.0.action.llm_output", "other")(failed)
    one = _row("x", _run(), previous_failed_sessions=[{"session": _run()}])
    two = _row("y", _run(), previous_failed_sessions=[{"session": failed}])
    three = _row("y", _run())
    assert diff.main(_files(tmp_path, a=one, b=two)) == 1  # ids do not count: one task each
    assert "x: differs at ck_agent, step 0, action: reply" in capsys.readouterr().out
    assert diff.main(_files(tmp_path, a=one, b=three)) == 1
    assert "x, try 1: differs at the task: tries" in capsys.readouterr().out


def test_journals_and_rows_of_one_run_are_the_same(
    samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "packed"
    shutil.copytree(samples.journals(samples.good), packed)
    for folder in journal_folders(packed):
        compress_journal(folder)
    assert diff.main([str(samples.good), str(packed), "--exact"]) == 0
    assert "2 tasks compared: 0 differ" in capsys.readouterr().out
    assert diff.main([str(samples.good), str(samples.wrong)]) == 1
    out = capsys.readouterr().out
    assert "sum: differs at ck_agent, step 0, action: reply" in out
    assert "capital: differs at ck_agent, step 1, action: reply" in out


def test_an_unfinished_run_is_compared(samples: Samples, tmp_path: Path) -> None:
    whole = samples.journals(samples.good) / "sum"
    lines = (whole / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    steps = [n for n, line in enumerate(lines) if b'"kind":"step"' in line]
    (tmp_path / EVENTS_FILE).write_bytes(b"".join(lines[: steps[1]]))
    assert diff.main([str(whole), str(tmp_path)]) == 1
    found = diff.compare_runs(whole, tmp_path)
    assert found.differing[0][2].where == "ck_agent, step 1: steps"


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 2), ("nonsense\n", 3), ('{"session": {"task": "t", "steps": [3]}}\n', 3), ("", 1)],
)
def test_inputs_that_cannot_be_compared_are_refused(
    tmp_path: Path, content: str | None, code: int
) -> None:
    args = _files(tmp_path, a=_row("x", _run()))
    other = tmp_path / "b"
    if content is not None:
        other.write_text(content)
    assert diff.main([*args, str(other)]) == code


def test_an_unreadable_line_is_a_problem_not_a_task(tmp_path: Path, capsys: Any) -> None:
    args = _files(tmp_path, a=_row("x", _run()))
    other = tmp_path / "b"
    other.write_bytes(b"\x89PNG\n" + (tmp_path / "a").read_bytes())
    assert diff.main([*args, str(other)]) == 3
    said = capsys.readouterr()
    assert said.out == "x: the same\n1 task compared: 0 differ\n"
    assert said.err == f"{other}, line 1: not UTF-8 (skipped)\n"


def test_the_sample_rows_have_sub_sessions(samples: Samples) -> None:
    """Check that the sample rows exercise the comparison."""
    row = next(r for r in read_lines(samples.good) if r["id"] == "capital")
    assert row["session"]["steps"][0]["action"]["sub_sessions"]
