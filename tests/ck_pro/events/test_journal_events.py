"""Journal events: writers use known kinds with complete data; readers accept everything."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from journal_data import model_call, status

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import EVENT_DATA
from ck_pro.exceptions import JournalError
from ck_pro.journal import EVENTS_FILE, Journal, read_events
from ck_pro.session import Status, sessions_from_events
from ck_pro.trajectory.fork import fork_run

DOCS = Path(__file__).resolve().parents[3] / "docs" / "trajectories.md"
UNKNOWN = {"kind": "later", "parent": None, "i": 0, "phase": None, "time": 1.0, "data": {"n": 1}}


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("finnish", {"output": "4", "log": ""}, "unknown kind 'finnish'; did you mean 'finish'?"),
        ("x", {}, "unknown kind 'x'; known are: session, step, "),
        (EventKind.FINISH, {"output": "4"}, "of kind 'finish' without log"),
        (EventKind.STATUS, {"status": "done"}, "of kind 'status' without message, stop_reason"),
        (EventKind.OBSERVATION, {"observed": "4"}, "without observation"),
        (EventKind.MODEL_CALL, {"messages": []}, "of kind 'model_call' without model, usage"),
    ],
)
def test_a_misspelled_kind_or_key_raises_and_writes_nothing(
    tmp_path: Path, kind: Any, data: Any, message: str
) -> None:
    for folder in (tmp_path, None):
        with Journal(folder) as journal, pytest.raises(JournalError, match=re.escape(message)):
            journal.append(kind, sid="s", data=data)
    assert (tmp_path / EVENTS_FILE).read_bytes() == b""


def test_every_kind_has_a_data_type() -> None:
    assert list(EVENT_DATA) == list(EventKind)


def test_readers_skip_unknown_kinds_and_missing_keys(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    with Journal(folder) as journal:
        journal.append(EventKind.SESSION, sid="s", data={"task": "t", "agent": "a"})
        journal.append(EventKind.STEP, sid="s", i=0)
        journal.append(EventKind.MODEL_CALL, sid="s", i=0, phase="action", data=model_call([]))
    with (folder / EVENTS_FILE).open("a") as file:
        file.write(json.dumps({**UNKNOWN, "sid": "s"}) + "\n")
        file.write(json.dumps({**UNKNOWN, "kind": "resumed", "sid": "s", "data": {}}) + "\n")
    events = list(read_events(folder))
    assert events[-2]["kind"] == "later"
    (session,) = sessions_from_events(events).values()
    assert session.status is Status.IN_PROGRESS and len(session.steps) == 1


def test_a_fork_keeps_events_of_unknown_kinds(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with Journal(old) as journal:
        journal.append(EventKind.SESSION, sid="s", data={"task": "t", "agent": "a"})
    with (old / EVENTS_FILE).open("a") as file:
        file.write(json.dumps({**UNKNOWN, "sid": "s"}) + "\n")
    with Journal(old) as journal:
        journal.append(EventKind.STEP, sid="s", i=0)
        journal.append(EventKind.STATUS, sid="s", data=status())
    fork_run(old, 0, new)
    events = list(read_events(new))
    assert [e["kind"] for e in events] == ["session", "later", "forked"]
    assert (events[1]["time"], events[1]["data"]) == (1.0, {"n": 1})


def test_lines_have_the_same_bytes_as_with_plain_strings(tmp_path: Path) -> None:
    with Journal(tmp_path, clock=lambda: 2.5) as journal:
        data = {"output": "4", "log": ""}
        event: JournalEvent = journal.append(EventKind.FINISH, sid="s", i=0, data=data)  # type: ignore[arg-type]
        journal.append("step", sid="s", duration=0.5)  # type: ignore[arg-type]
    assert (tmp_path / EVENTS_FILE).read_text() == (
        '{"kind":"finish","sid":"s","parent":null,"i":0,"phase":null,'
        '"data":{"output":"4","log":""},"time":2.5}\n'
        '{"kind":"step","sid":"s","parent":null,"i":null,"phase":null,"data":{},'
        '"time":2.5,"duration":0.5}\n'
    )
    assert next(read_events(tmp_path)) == event


def test_the_docs_list_every_kind_with_its_keys() -> None:
    _, _, text = DOCS.read_text().partition("### Event data\n")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text.partition("\n### ")[0], re.MULTILINE)
    assert [kind for kind, _ in rows] == ["kind"] + [
        k for k in EventKind if k is not EventKind.MESSAGE
    ]
    for kind, described in rows[1:]:
        keys = EVENT_DATA[EventKind(kind)].__annotations__.keys()
        named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", described))))
        assert keys <= named, kind
