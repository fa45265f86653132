"""A run journals the pictures of any environment, and a failing picture costs it nothing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ck_pro import ActionAgent
from ck_pro.events import Action, BrowseURLAction, FinishAction
from ck_pro.events.journal_events import PictureData
from ck_pro.exceptions import EnvironmentFailure
from ck_pro.journal import Journal, read_events
from ck_pro.session import AgentSession, Status
from ck_pro.testing import FakeEnvironment

IMAGES = [f"data:image/webp;base64,{base64.b64encode(t).decode()}" for t in (b"one", b"two")]


class Opening(ActionAgent):
    """Opens a page in its first step."""

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        if len(state.steps) == 1:
            return BrowseURLAction(url="https://a.example")
        return FinishAction(output="done")


def events_of(folder: Path, environment: FakeEnvironment) -> list[dict[str, Any]]:
    with Journal(folder) as journal:
        session = Opening(environment=lambda: environment).run("t", journal=journal)
    assert session.status is Status.DONE and len(environment.actions) == 1
    return [dict(event) for event in read_events(folder)]


def test_a_picture_precedes_each_action_and_starts_each_step(tmp_path: Path) -> None:
    events = events_of(tmp_path, FakeEnvironment(["a", "b"], pictures=IMAGES))
    pictures = [e["data"] for e in events if e["kind"] == "picture"]
    assert [p["image"] for p in pictures] == [IMAGES[0], IMAGES[0], IMAGES[1]]
    assert pictures[0]["elements"] == {"1": [0, 0, 100, 50]}
    started = [e["data"]["call"] for e in events if e["kind"] == "started"]
    assert [p.get("call") for p in pictures] == [None, *started, None]
    assert pictures[1]["targets"] == [[0, 0, 100, 50]] and "elements" not in pictures[1]
    assert len(list(tmp_path.glob("blobs/*.webp"))) == 2


def test_without_the_setting_there_are_none(tmp_path: Path) -> None:
    events = events_of(tmp_path, FakeEnvironment(["a", "b"]))
    assert not [e for e in events if e["kind"] == "picture"]


@pytest.mark.parametrize("error", [EnvironmentFailure("gone"), RuntimeError("broken"), OSError()])
def test_a_picture_that_fails_ends_no_run(tmp_path: Path, error: Exception) -> None:
    class Blind(FakeEnvironment):
        def picture(self, action: Action | None = None) -> PictureData | None:
            raise error

    events = events_of(tmp_path, Blind(["a", "b"], pictures=IMAGES))
    assert not [e for e in events if e["kind"] == "picture"]
