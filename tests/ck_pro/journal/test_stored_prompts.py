"""Prompts in the journal: stored incrementally, restored completely, also after truncation."""

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


def message(text: str, role: str = "user") -> dict[str, Any]:
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


def test_a_call_stores_only_new_messages(tmp_path: Path) -> None:
    history = [message(f"message {n}") for n in range(40)]
    with Journal(tmp_path) as journal:
        for n in range(1, 40):
            put(journal, "s", "action", [*history[:n], message(f"now {n}")])
            put(journal, "s", "plan", [*history[:n], message(f"plan {n}")])
        put(journal, "s", "action", [history[0], message("(moved)"), *history[20:], message("now")])
    found = entries(tmp_path)
    assert all(len(names) <= 3 for names in found[2:-1])
    assert found[-2][0] == "0:38" and found[-1][0] == "0:1" and found[-1][2] == "20:39"
    assert len(calls_of(tmp_path)[-1][2]) == 23


def test_each_session_has_its_own_chain_until_it_ends(tmp_path: Path) -> None:
    history = [message(f"message {n}") for n in range(5)]
    with Journal(tmp_path) as journal:
        for n in range(2, 5):
            for sid in ("a", "b"):
                put(journal, sid, "action", [message(sid), *history[:n]])
        journal.append(EventKind.STATUS, sid="a", data=status())
        put(journal, "a", "action", [message("a"), *history])
        put(journal, "b", "action", [message("b"), *history])
    assert all(":" not in name for name in entries(tmp_path)[-2])
    assert entries(tmp_path)[-1][0] == "0:5"
    assert [m[0]["content"] for _, _, m in calls_of(tmp_path)] == ["a", "b"] * 4


def test_older_journals_with_full_lists_are_read_and_extended(tmp_path: Path) -> None:
    names = ["0" * 32, "1" * 32]
    bodies = [{"hash": name, "message": message(name[0])} for name in names]
    lines: list[dict[str, Any]] = [{"kind": "message", "sid": "s", "data": b} for b in bodies]
    for hashes in (names[:1], names):
        head = {"kind": "model_call", "sid": "s", "parent": None, "i": 0, "phase": "action"}
        lines.append({**head, "data": {"message_hashes": hashes}, "time": 1.0})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (tmp_path / EVENTS_FILE).write_text(text)
    with Journal(tmp_path) as journal:
        put(journal, "s", "action", [message("0"), message("1"), message("2")])
        put(journal, "s", "action", [message("0"), message("1"), message("2"), message("3")])
    texts = ["".join(m["content"] for m in messages) for _, _, messages in calls_of(tmp_path)]
    assert texts == ["0", "01", "012", "0123"]


def test_a_journal_truncated_at_any_line_is_read_and_extended(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    history = [message(f"message {n}") for n in range(5)]
    with Journal(whole) as journal:
        for n in range(1, 5):
            put(journal, "s", "plan", [*history[: n - n % 3], message(f"plan {n}")])
            put(journal, "s", "action", [*history[max(0, n - 3) : n], message(f"act {n}")])
            put(journal, "t", "action", [*history[:n], message(f"other {n}")])
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


def test_a_message_changed_in_place_is_stored_again(tmp_path: Path) -> None:
    one, parts = message("one"), {"role": "user", "content": [{"type": "text", "text": "a"}]}
    with Journal(tmp_path) as journal:
        first = put(journal, "s", "action", [one, parts, message("end")])
        seen = json.dumps(first["data"]["messages"])
        one["content"], parts["content"][0]["text"] = "two", "b"  # type: ignore[index]
        put(journal, "s", "action", [one, parts, message("end")])
    (_, _, before), (_, _, after) = calls_of(tmp_path)
    assert json.dumps(before) == seen
    assert [after[0]["content"], after[1]["content"][0]["text"]] == ["two", "b"]


def test_a_new_secret_is_masked_in_known_messages(tmp_path: Path) -> None:
    history = [message("the word is swordfish"), message("good")]
    with Journal(tmp_path) as journal:
        put(journal, "s", "action", history)
        journal.protect(["swordfish"])
        event = put(journal, "s", "action", history)
    assert event["data"]["messages"][0]["content"] == "the word is ***"
    assert calls_of(tmp_path)[1][2] == event["data"]["messages"]


@pytest.mark.parametrize("entry", ["0:1", "1:4", "2:2"])
def test_an_invalid_slice_raises_with_its_line(tmp_path: Path, entry: str) -> None:
    with Journal(tmp_path) as journal:
        put(
            journal,
            "s",
            "plan" if entry == "0:1" else "action",
            [message("a"), message("b"), message("c")],
        )
        put(journal, "s", "action", [message("x")])
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
def test_any_prompts_are_read_back_unchanged(
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
