"""Step pictures: what a run journals for viewers, and that a failed picture costs it nothing."""

from __future__ import annotations

import base64
import errno
import logging
from pathlib import Path
from typing import Any

import pytest
from fake_wire import SHOP, FakeWire
from web_scripts import web_agent, web_script

from ck_pro import Status
from ck_pro.journal import Journal, images, read_events
from ck_web import WebEnv

pytestmark = pytest.mark.worker
LAMPS = "http://shop.test/lamps"
CODE = ("print(find('Lamps'))\nclick(id=5)\nclick(id=3)", "stop('42')")


def run(wire: FakeWire, folder: Path, *codes: str, **settings: Any) -> list[dict[str, Any]]:
    """Run an agent with step pictures; return the events of its journal."""
    script = web_script(*(codes or CODE))
    agent = web_agent(wire, script, web_env={"step_pictures": True, **settings})
    with Journal(folder) as journal:
        session = agent.run("How many lamps?", workdir=folder / "work", journal=journal)
    assert (session.status, session.final_results["output"]) == (Status.DONE, "42")
    assert all("picture" not in str(call.messages) for call in script.calls)
    return [dict(event) for event in read_events(folder)]


def pictures(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["kind"] == "picture"]


def page_of(picture: dict[str, Any]) -> str:
    """Return the URL that the fake server puts into a picture."""
    head, _, content = picture["image"].partition(",")
    assert head == "data:image/webp;base64"
    return base64.b64decode(content).decode()


def test_a_step_has_a_picture_of_its_page_and_of_each_action_that_acts(
    wire: FakeWire, tmp_path: Path
) -> None:
    events = run(wire, tmp_path)
    first, export, lamps, second = pictures(events)
    assert [page_of(p) for p in (first, export, lamps, second)] == [SHOP, SHOP, SHOP, LAMPS]
    assert first["elements"] == {"3": [3, 3, 10, 10]} and "call" not in first
    assert (first["width"], first["height"], first["url"]) == (1280, 720, SHOP)
    assert export["targets"] == [[5, 5, 10, 10]] and lamps["targets"] == [[3, 3, 10, 10]]
    assert "elements" not in export
    started = {e["data"]["call"]: e["data"] for e in events if e["kind"] == "started"}
    assert started[export["call"]]["arguments"]["id"] == 5
    assert started[lamps["call"]]["arguments"]["id"] == 3
    kinds = [e["kind"] for e in events if e["kind"] in ("picture", "started", "call", "step")]
    act = ["picture", "started", "call"]
    assert kinds == [
        "step",
        "picture",
        "started",
        "call",
        *act,
        *act,
        "step",
        "picture",
        *kinds[-2:],
    ]


def test_the_last_picture_shows_what_the_last_action_led_to(wire: FakeWire, tmp_path: Path) -> None:
    events = run(wire, tmp_path, "click(id=3)\nstop('42')")
    first, click, last = pictures(events)
    assert [page_of(p) for p in (first, click, last)] == [SHOP, SHOP, LAMPS]
    assert "call" not in last and last["elements"]
    kinds = [event["kind"] for event in events]
    assert kinds.index("status") > len(kinds) - 1 - kinds[::-1].index("picture")


def test_equal_pictures_are_stored_once(wire: FakeWire, tmp_path: Path) -> None:
    run(wire, tmp_path)
    assert len(list((tmp_path / "blobs").glob("*.webp"))) == 2


def test_pictures_are_off_by_default(wire: FakeWire, tmp_path: Path) -> None:
    assert not pictures(run(wire, tmp_path, step_pictures=False))
    assert not wire.count("takePicture") and not list(tmp_path.glob("blobs/*.webp"))


def test_an_older_server_takes_no_pictures(wire: FakeWire, tmp_path: Path) -> None:
    wire.features.remove("stepPictures")
    assert not pictures(run(wire, tmp_path)) and not wire.count("takePicture")


@pytest.mark.parametrize("fault", ["drop", "text", 409, 500])
def test_a_picture_that_fails_is_skipped_and_the_action_is_done(
    wire: FakeWire, tmp_path: Path, fault: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    wire.fail("takePicture", fault, fault, fault)
    events = run(wire, tmp_path)
    assert [page_of(p) for p in pictures(events)] == [LAMPS]
    assert [body["targetId"] for body in wire.acted if body["targetId"]] == ["5", "3"]
    assert len([r for r in caplog.records if "no step picture" in r.message]) == 1


def test_a_full_disk_costs_the_picture_and_not_the_run(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    write = images.ImageWriter._write

    def full(writer: images.ImageWriter, path: Path, content: bytes) -> None:
        if path.suffix == ".webp":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(writer, path, content)

    monkeypatch.setattr(images.ImageWriter, "_write", full)
    events = run(wire, tmp_path)
    assert not pictures(events) and not list(tmp_path.glob("blobs/*.webp"))
    assert [r.levelno for r in caplog.records if "No space left" in r.message] == [logging.WARNING]


def test_the_row_has_no_pictures(wire: FakeWire, tmp_path: Path) -> None:
    agent = web_agent(wire, web_script(*CODE), web_env={"step_pictures": True})
    with Journal(tmp_path / "j") as journal:
        session = agent.run("t", workdir=tmp_path / "w", journal=journal)
    assert "data:image/webp" not in str(session.to_dict())


def test_an_environment_returns_its_picture_for_a_person(wire: FakeWire, tmp_path: Path) -> None:
    env = WebEnv({"server_url": wire.url}, workdir=tmp_path, target_url=SHOP)
    try:
        seen = env.picture()
        assert seen is not None and page_of(dict(seen)) == SHOP and seen["targets"] == []
    finally:
        env.close()
    assert env.picture() is None
