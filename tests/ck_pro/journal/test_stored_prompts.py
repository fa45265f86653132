"""Prompts in the journal: stored in their growth, read back whole, cut anywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_data import model_call, status

from ck_pro.events import EventKind
from ck_pro.exceptions import JournalError
from ck_pro.journal import EVENTS_FILE, Journal, read_events


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def calls_of(folder: Path) -> list[tuple[str, str, list[Any]]]:
    events = [e for e in read_events(folder) if e["kind"] == "model_call"]
    lazily = [e for e in read_events(folder, stored=True) if e["kind"] == "model_call"]
    assert [list(e["data"]["messages"]) for e in lazily] == [e["data"]["messages"] for e in events]
    return [(e["sid"], e["phase"], e["data"]["messages"]) for e in events]


def entries(folder: Path) -> list[list[str]]:
    lines = [json.loads(line) for line in (folder / EVENTS_FILE).read_bytes().splitlines()]
    return [e["data"]["message_hashes"] for e in lines if e["kind"] == "model_call"]


def put(journal: Journal, sid: str, phase: str, messages: list[Any]) -> dict[str, Any]:
    return journal.append(EventKind.MODEL_CALL, sid=sid, phase=phase, data=model_call(messages))


def test_a_call_names_what_is_new_since_the_one_before(tmp_path: Path) -> None:
    history = [said(f"message {n}") for n in range(40)]
    with Journal(tmp_path) as journal:
        for n in range(1, 40):
            put(journal, "s", "action", [*history[:n], said(f"now {n}")])
            put(journal, "s", "plan", [*history[:n], said(f"plan {n}")])
        put(journal, "s", "action", [history[0], said("(moved)"), *history[20:], said("now")])
    found = entries(tmp_path)
    assert all(len(names) <= 3 for names in found[2:-1])
    assert found[-2][0] == "0:38" and found[-1][0] == "0:1" and found[-1][2] == "20:39"
    assert len(calls_of(tmp_path)[-1][2]) == 23


def test_other_sessions_do_not_disturb_and_an_ended_one_is_forgotten(tmp_path: Path) -> None:
    history = [said(f"message {n}") for n in range(5)]
    with Journal(tmp_path) as journal:
        for n in range(2, 5):
            for sid in ("a", "b"):
                put(journal, sid, "action", [said(sid), *history[:n]])
        journal.append(EventKind.STATUS, sid="a", data=status())
        put(journal, "a", "action", [said("a"), *history])
        put(journal, "b", "action", [said("b"), *history])
    assert all(":" not in name for name in entries(tmp_path)[-2])
    assert entries(tmp_path)[-1][0] == "0:5"
    assert [m[0]["content"] for _, _, m in calls_of(tmp_path)] == ["a", "b"] * 4


def test_journals_of_whole_lists_are_read_and_written_on(tmp_path: Path) -> None:
    names = ["0" * 32, "1" * 32]
    bodies = [{"hash": name, "message": said(name[0])} for name in names]
    lines: list[dict[str, Any]] = [{"kind": "message", "sid": "s", "data": b} for b in bodies]
    for hashes in (names[:1], names):
        head = {"kind": "model_call", "sid": "s", "parent": None, "i": 0, "phase": "action"}
        lines.append({**head, "data": {"message_hashes": hashes}, "time": 1.0})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (tmp_path / EVENTS_FILE).write_text(text)
    with Journal(tmp_path) as journal:
        put(journal, "s", "action", [said("0"), said("1"), said("2")])
        put(journal, "s", "action", [said("0"), said("1"), said("2"), said("3")])
    told = ["".join(m["content"] for m in messages) for _, _, messages in calls_of(tmp_path)]
    assert told == ["0", "01", "012", "0123"]


def test_a_journal_cut_at_any_line_is_read_and_written_on(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    history = [said(f"message {n}") for n in range(5)]
    with Journal(whole) as journal:
        for n in range(1, 5):
            put(journal, "s", "plan", [*history[: n - n % 3], said(f"plan {n}")])
            put(journal, "s", "action", [*history[max(0, n - 3) : n], said(f"act {n}")])
            put(journal, "t", "action", [*history[:n], said(f"other {n}")])
    expected = calls_of(whole)
    lines = (whole / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    for count in range(len(lines)):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / EVENTS_FILE).write_bytes(b"".join(lines[:count]) + lines[count][:-5])
        kept = calls_of(folder)
        assert kept == expected[: len(kept)]
        with Journal(folder) as journal:
            for sid, phase, messages in expected[len(kept) :]:
                put(journal, sid, phase, messages)
        assert calls_of(folder) == expected
        shutil.rmtree(folder)


def test_a_message_that_its_owner_changed_is_stored_as_it_is_now(tmp_path: Path) -> None:
    one, parts = said("one"), {"role": "user", "content": [{"type": "text", "text": "a"}]}
    with Journal(tmp_path) as journal:
        first = put(journal, "s", "action", [one, parts, said("end")])
        seen = json.dumps(first["data"]["messages"])
        one["content"], parts["content"][0]["text"] = "two", "b"  # type: ignore[index]
        put(journal, "s", "action", [one, parts, said("end")])
    (_, _, before), (_, _, after) = calls_of(tmp_path)
    assert json.dumps(before) == seen
    assert [after[0]["content"], after[1]["content"][0]["text"]] == ["two", "b"]


def test_what_is_a_secret_since_a_while_is_masked_in_old_messages_too(tmp_path: Path) -> None:
    history = [said("the word is swordfish"), said("good")]
    with Journal(tmp_path) as journal:
        put(journal, "s", "action", history)
        journal.protect(["swordfish"])
        event = put(journal, "s", "action", history)
    assert event["data"]["messages"][0]["content"] == "the word is ***"
    assert calls_of(tmp_path)[1][2] == event["data"]["messages"]


@pytest.mark.parametrize("entry", ["0:1", "1:4", "2:2"])
def test_a_run_that_is_not_there_is_an_error_with_its_place(tmp_path: Path, entry: str) -> None:
    with Journal(tmp_path) as journal:
        put(journal, "s", "plan" if entry == "0:1" else "action", [said("a"), said("b"), said("c")])
        put(journal, "s", "action", [said("x")])
    path = tmp_path / EVENTS_FILE
    lines = path.read_text().splitlines()
    event = json.loads(lines[-1])
    event["data"]["message_hashes"] = [entry]
    path.write_text("\n".join([*lines[:-1], json.dumps(event)]) + "\n")
    with pytest.raises(JournalError, match=rf"line {len(lines)}: .* no messages {entry}"):
        list(read_events(tmp_path))


_TEXTS = st.sampled_from(["", "a", "b", "swordfish", "blob:x", "ü"])
_MESSAGES = st.one_of(
    st.builds(lambda r, t: {"role": r, "content": t}, st.sampled_from(["user", "tool"]), _TEXTS),
    st.builds(lambda t: {"content": t, "role": "user"}, _TEXTS),
    st.builds(lambda t: {"role": "user", "content": [{"text": t}, {"n": 1}]}, _TEXTS),
    st.builds(lambda t: {"role": "user", "content": [{"text": t}, {"n": True}]}, _TEXTS),
)
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["plan", "action"]),
        st.lists(_MESSAGES, max_size=6),
        st.integers(0, 8),
        st.booleans(),
    ),
    max_size=12,
)


@given(_STEPS)
def test_any_row_of_prompts_reads_back_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[Any], int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    live: list[str] = []
    last: list[Any] = []
    journal = Journal(folder, secrets=["swordfish"])
    for phase, new, kept, again in steps:
        last = [*last[:kept], *new, *last[kept + 2 :]]
        live.append(json.dumps(put(journal, "s", phase, last)["data"]["messages"]))
        if again:
            journal.close()
            journal = Journal(folder, secrets=["swordfish"])
    journal.close()
    assert [json.dumps(messages) for _, _, messages in calls_of(folder)] == live
    shutil.rmtree(folder)
