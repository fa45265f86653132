"""Step pictures in the view of a step: one per picture event, with the targets of its action."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from viewer_runs import PICTURE, PNG, RunWriter

from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.step_view import step_json

BLOB = f"{hashlib.sha256(PNG).hexdigest()}.png"
SIZE = {"image": PICTURE, "width": 1280, "height": 720, "url": "http://site.test/0"}


def page_of(folder: Path, *pictures: dict[str, Any]) -> dict[str, Any]:
    run = RunWriter(folder, "pictured")
    click = ("click", {"id": 3}, "click [3] link 'Help': now at http://site.test/help")
    run.step(0, page="[1] RootWebArea 'Shop'\n\t[3] link 'Help'", calls=(click,))
    for picture in pictures:
        run.append("picture", {**SIZE, **picture}, i=0)
    run.finish()
    journal = JournalRun(folder)
    assert journal.refresh()
    step = step_json(journal, run.sid, 0)
    assert step is not None
    page: dict[str, Any] = step["page"]
    return page


def test_a_picture_before_an_action_has_its_targets(tmp_path: Path) -> None:
    box = [10, 20, 30, 40]
    page = page_of(tmp_path, {"elements": {"3": box}}, {"call": 0, "targets": [box]})
    first, click = page["pictures"]
    assert (first["call"], first["targets"]) == (None, [])
    assert (click["call"], click["name"], click["picture"]) == (0, "click", BLOB)
    label = "click [3] link 'Help': now at http://site.test/help"
    assert click["targets"] == [{"name": "click", "id": "3", "label": label, "box": box}]
    assert (page["picture"], page["width"], page["targets"]) == (BLOB, 1280, click["targets"])


def test_damaged_targets_and_unknown_calls_give_a_picture_without_targets(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        {"call": 0, "targets": [[1, 2], "no", [1, 2, None, 4], [1, 2, float("inf"), 3]]},
        {"call": 7, "targets": [[1, 2, 3, 4]]},
        {"call": "0", "targets": {"a": 1}},
    )
    assert [p["targets"] for p in page["pictures"]] == [[], [], []]
    assert page["targets"] == []
