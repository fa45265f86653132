"""A journal and the row of the same run give the same view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from viewer_runs import PNG, RunWriter, small_run

from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.row_run import RowRun
from ck_main.viewer.runs.run_view import run_json
from ck_main.viewer.runs.step_view import call_json, step_json
from ck_pro.trajectory.reading.attempts import tries_of

_ONLY_JOURNAL = {"start", "calls", "seconds", "notes"}


def _both(folder: Path) -> tuple[JournalRun, RowRun]:
    row = small_run(folder)
    journal, rows = JournalRun(folder), RowRun(tries_of("row", row)[0])
    assert journal.refresh() and rows.refresh()
    assert not journal.refresh() and not rows.refresh()
    return journal, rows


def test_a_journal_and_its_row_give_the_same_tree(tmp_path: Path) -> None:
    journal, rows = _both(tmp_path / "one")

    def facts(view: dict[str, Any]) -> Any:
        names = ("sid", "parent", "agent", "path", "depth", "task", "status", "tokens", "output")
        sessions = [{name: s[name] for name in names} for s in view["sessions"]]
        steps = [
            [(p["title"], p["model_calls"], p["url"]) for p in s["steps"]] for s in view["sessions"]
        ]
        rest = {n: view[n] for n in ("id", "task", "answer", "output", "log", "score", "level")}
        return sessions, steps, rest

    from_journal, from_row = run_json(journal), run_json(rows)
    assert facts(from_journal) == facts(from_row)
    main, sub = from_journal["sessions"]
    assert sub["called_by"] == {"sid": main["sid"], "step": 0, "call": 0}
    assert from_journal["score"] == 1
    assert {span["kind"] for span in from_journal["timeline"]} == {"model", "code", "page", "call"}


def test_a_journal_and_its_row_give_the_same_steps(tmp_path: Path) -> None:
    journal, rows = _both(tmp_path / "one")
    for sid, i in (("main-one", 0), ("main-one", 1), ("web-one", 0)):
        one, other = step_json(journal, sid, i), step_json(rows, sid, i)
        assert one is not None and other is not None
        different = {name for name in one if one[name] != other[name]}
        assert different <= {*_ONLY_JOURNAL, "model_calls", "page"}
    step = step_json(journal, "main-one", 0)
    assert step is not None
    assert step["plan"]["changed"] == {"todo_list": [None, ["look", "answer"]]}
    assert step["calls"][0]["sid"] == "web-one"
    assert step["observation"][1]["session"] == "web-one"


def test_a_call_shows_its_exact_prompt_and_what_is_new(tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "run", "long")
    for i in range(5):
        run.step(i)
    row = run.finish()
    journal, rows = JournalRun(tmp_path / "run"), RowRun(tries_of("row", row)[0])
    assert journal.refresh() and rows.refresh()
    for i in range(5):
        one, other = call_json(journal, run.sid, i, 0), call_json(rows, run.sid, i, 0)
        assert one is not None and other is not None
        assert one["messages"] == other["messages"]
        assert one["messages"] == row["session"]["steps"][i]["action"]["llm_input"]
        assert one["same"] == other["same"]
        if i:
            assert one["same"]["messages"] == 2 * i
            assert one["previous"] == {"sid": run.sid, "step": i - 1, "n": 0}
    assert call_json(journal, run.sid, 9, 0) is None
    assert call_json(journal, "none", 0, 0) is None


def test_images_are_references_into_the_journal(tmp_path: Path) -> None:
    journal, rows = _both(tmp_path / "one")
    call = call_json(journal, "web-one", 0, 0)
    assert call is not None
    [_, picture] = call["messages"][1]["content"]
    assert journal.blob(picture["image"]) == PNG
    for name in ("../events.jsonl", "a" * 64 + ".png", "", "x/y", "\0"):
        assert journal.blob(name) is None
    in_row = call_json(rows, "web-one", 0, 0)
    assert in_row is not None
    assert in_row["messages"][1]["content"][1]["image"].startswith("data:image/png;base64,")


def test_the_element_that_a_call_acts_on_is_named(tmp_path: Path) -> None:
    journal, _ = _both(tmp_path / "one")
    step = step_json(journal, "web-one", 0)
    assert step is not None
    [target] = step["page"]["targets"]
    assert (target["name"], target["id"], target["box"]) == ("click", "2", None)


def test_a_growing_journal_is_followed_line_by_line(tmp_path: Path) -> None:
    small_run(tmp_path / "whole")
    lines = (tmp_path / "whole" / "events.jsonl").read_bytes()
    (tmp_path / "grows").mkdir()
    journal = JournalRun(tmp_path / "grows")
    assert not journal.refresh()
    with (tmp_path / "grows" / "events.jsonl").open("wb") as file:
        for at in range(0, len(lines), 97):
            file.write(lines[at : at + 97])
            file.flush()
            journal.refresh()
            json.dumps(run_json(journal))
    whole = JournalRun(tmp_path / "whole")
    whole.refresh()
    one, other = run_json(journal), run_json(whole)
    assert {k: v for k, v in one.items() if k != "problems"} == {
        k: v for k, v in other.items() if k != "problems"
    }


def test_a_truncated_journal_is_read_again(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    path = tmp_path / "one" / "events.jsonl"
    journal = JournalRun(tmp_path / "one")
    journal.refresh()
    assert journal.outline.scored
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6][:10])
    journal.refresh()
    assert journal.outline.scored is None
    assert len(journal.outline.sessions) >= 1


def test_a_broken_line_is_a_problem_and_the_rest_is_shown(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    path = tmp_path / "one" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{broken\n", b"[]\n", b"\xff\n", *lines[3:]]))
    journal = JournalRun(tmp_path / "one")
    journal.refresh()
    assert len(journal.outline.problems) == 3
    assert "line 4: not JSON" in journal.outline.problems[0]
    assert run_json(journal)["output"] == "42"
