"""The data of a shared page: all answers of the viewer, masked, without private facts, limited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from viewer_runs import PICTURE, RunWriter, small_run

from ck_main.sharing.page_data import PageData, TooLarge
from ck_main.viewer.runs.journal_run import JournalRun

KEY = "0123456789ab"
PATH = f"/api/run/{KEY}"


def data_of(folder: Path, **options: Any) -> dict[str, Any]:
    reader = JournalRun(folder)
    assert reader.refresh()
    given = {"task_id": "one", "limit": 10_000_000, **options}
    answer: dict[str, Any] = json.loads(PageData(reader, KEY, **given).to_json())
    return answer


def test_the_data_has_every_answer_about_the_run(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    data = data_of(tmp_path / "one")
    run = data["responses"][PATH]
    assert (run["key"], run["id"], run["output"], run["live"]) == (KEY, "one", "42", False)
    places = [(s["sid"], step) for s in run["sessions"] for step in s["steps"]]
    assert len(places) == 3
    for sid, step in places:
        path = f"{PATH}/step/{sid}/{step['i']}"
        assert data["responses"][path]["sid"] == sid
        for n in range(step["model_calls"]):
            call = data["responses"][path.replace("/step/", "/call/") + f"/{n}"]
            assert [data["messages"][m]["role"] for m in call["messages"]]
    images = [v for k, v in data["responses"].items() if "/blob/" in k]
    assert images == [PICTURE]


def test_equal_messages_are_stored_once(tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "long", "long")
    for i in range(10):
        run.step(i)
    run.finish(i=9)
    data = data_of(tmp_path / "long")
    calls = [v for k, v in data["responses"].items() if "/call/" in k]
    assert sum(len(call["messages"]) for call in calls) == 110
    assert len(data["messages"]) == 20


def test_prompts_can_be_left_out(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    data = data_of(tmp_path / "one", prompts=False)
    assert not data["messages"] and not [k for k in data["responses"] if "/call/" in k]


def test_secrets_and_private_facts_are_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunWriter(tmp_path / "run", "secret")
    run.step(0, thought="sk-0123456789", observation="sk-0123456789", page="[1] x sk-0123456789")
    lease = {"browserId": "the-key-of-the-browser"}
    status = {"status": "human-intervention", "stop_reason": "asked", "message": "", "lease": lease}
    run.append("status", status, i=0)
    run.journal.close()
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")
    text = json.dumps(data_of(tmp_path / "run"))
    assert "***" in text and "human-intervention" in text
    for private in ("sk-0123456789", "the-key-of-the-browser", str(tmp_path)):
        assert private not in text


def test_more_data_than_the_limit_is_one_clear_line(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    with pytest.raises(TooLarge, match="more than 0 MB: leave out the prompts with --no-prompts"):
        data_of(tmp_path / "one", limit=2000)
