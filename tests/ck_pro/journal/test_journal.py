"""The journal loses nothing, stores nothing twice, and masks secrets."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_data import model_call, status

from ck_pro.events import EventKind
from ck_pro.exceptions import JournalError
from ck_pro.journal import (
    EVENTS_FILE,
    BlobReader,
    Journal,
    read_events,
    secrets_of_environment,
)

IMAGE = "data:image/png;base64,iVBORw0KGgoAAAA="


def _read(folder: Path) -> list[dict[str, Any]]:
    return list(read_events(folder))


def test_written_events_are_read_back(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "user", "content": [{"u": IMAGE}]}]
    with Journal(tmp_path, clock=lambda: 5.0) as journal:
        first = journal.append(
            EventKind.SESSION, sid="s", data={"task": "t", "agent": "a", "n": [1, None, "ü"]}
        )
        call = journal.append(
            EventKind.MODEL_CALL, sid="s", i=0, phase="plan", data=model_call(messages)
        )
    assert _read(tmp_path) == [first, call]
    assert call["data"]["messages"] == messages


def test_half_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        event = journal.append(
            EventKind.WORLD, sid="s", data={"a": "cut \ud83d", "messages": ["\ud83d"]}
        )
    assert _read(tmp_path) == [event]


def test_messages_and_images_are_stored_once(tmp_path: Path) -> None:
    big = [{"role": "user", "content": f"{n} " + "x" * 1000} for n in range(20)]
    shot = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}}]}
    with Journal(tmp_path) as journal:
        for n in range(20):
            journal.append(EventKind.MODEL_CALL, sid="s", data=model_call([*big[: n + 1], shot]))
    assert (tmp_path / EVENTS_FILE).stat().st_size < 3 * 20 * 1000
    assert len(list((tmp_path / "blobs").iterdir())) == 1
    events = _read(tmp_path)
    assert events[-1]["data"]["messages"] == [*big, shot]
    with Journal(tmp_path) as journal:  # a second writer does not store known messages again
        before = (tmp_path / EVENTS_FILE).stat().st_size
        journal.append(EventKind.MODEL_CALL, sid="s", data=model_call(big))
        assert (tmp_path / EVENTS_FILE).stat().st_size - before < 1500


def test_a_damaged_image_is_reported_and_restored_by_the_next_writer(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        kept = journal.append(EventKind.WORLD, sid="s", data={"seen": IMAGE})
    blob = next((tmp_path / "blobs").iterdir())
    for damaged in (b"", b"\x89PNG\r\n\x1a\x00"):  # a power failure, a bad disk
        blob.write_bytes(damaged)
        with pytest.raises(JournalError, match=r"\.png is damaged"):
            _read(tmp_path)
    blob.write_bytes(b"")
    with Journal(tmp_path) as journal:
        again = journal.append(EventKind.WORLD, sid="s", data={"seen": IMAGE})
    assert _read(tmp_path) == [kept, again]


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_something_else_in_the_place_of_an_image_is_damage(tmp_path: Path, kind: str) -> None:
    with Journal(tmp_path) as journal:
        journal.append(EventKind.WORLD, sid="s", data={"seen": IMAGE})
    blob = next((tmp_path / "blobs").iterdir())
    blob.unlink()
    if kind == "pipe":
        os.mkfifo(blob)
    elif kind == "device":
        blob.symlink_to("/dev/zero")
    else:
        with blob.open("wb") as file:
            file.truncate(2**33)
    with pytest.raises(JournalError, match=r"\.png: it (is not a file|has more than)"):
        _read(tmp_path)
    assert BlobReader(tmp_path).read(blob.name) is None


@pytest.mark.parametrize("torn", ['{"kind": "x", "sid"', '{"kind": "', "\x00\x00", "é"])
def test_a_torn_last_line_is_removed_and_counted(tmp_path: Path, torn: str) -> None:
    with Journal(tmp_path) as journal:
        kept = journal.append(EventKind.WORLD, sid="s")
    path = tmp_path / EVENTS_FILE
    with path.open("ab") as file:
        file.write(torn.encode())
    assert _read(tmp_path) == [kept]
    with Journal(tmp_path) as journal:
        assert journal.repaired == len(torn.encode())
        after = journal.append(EventKind.WORLD, sid="s")
    assert _read(tmp_path) == [kept, after]


def test_a_broken_line_in_the_middle_raises_with_its_number(tmp_path: Path) -> None:
    (tmp_path / EVENTS_FILE).write_text('{"kind":"a","sid":"s","data":{}}\nnonsense\n')
    with pytest.raises(JournalError, match=r"events.jsonl, line 2: not JSON"):
        _read(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        '{"khnd":"a","sid":"s","data":{}}',
        '{"kind":"a","sad":"s","data":{}}',
        '{"kind":"a","sid":3,"data":{}}',
        '{"kind":"message","sid":"s","data":{"hash":"00000000000000000000000000000000","mess":1}}',
        '{"kind":"message","sid":"s","data":{"has":"00000000000000000000000000000000"}}',
        '{"kind":"a","sid":"s","data":{"message_hashes":[1]}}',
        '{"kind":"a","sid":"s","data":' + "[" * 100_000,
    ],
)
def test_a_line_that_is_not_an_event_raises_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / EVENTS_FILE).write_text(f"{line}\n")
    with pytest.raises(JournalError, match="line 1"):
        _read(tmp_path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(JournalError, match="in use by another"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_secrets_reach_neither_disk_nor_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'sk-"quoted"-1234')
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    assert secrets_of_environment() == tuple(
        v for k, v in os.environ.items() if k == "SOME_API_KEY"
    )
    with Journal(tmp_path, secrets=["hunter2"]) as journal:
        event = journal.append(
            EventKind.WORLD, sid="s", data={"a": ['my sk-"quoted"-1234!'], "hunter2": "hunter2 abc"}
        )
    assert event["data"] == {"a": ["my ***!"], "***": "*** abc"}
    assert "hunter2" not in (tmp_path / EVENTS_FILE).read_text()
    assert _read(tmp_path) == [event]


def test_a_placeholder_key_damages_no_text() -> None:
    journal = Journal(None)
    journal.protect(["x", "EMPTY", "sk-0123456789"])
    text = "max(box) EMPTY next sk-0123456789"
    assert journal.masked({"code": text}) == {"code": "max(box) EMPTY next ***"}


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    kept = journal.append(EventKind.WORLD, sid="s")
    write = os.write

    def full(fd: int, content: bytes) -> int:
        if len(content) <= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, content[: len(content) - 10])

    monkeypatch.setattr(os, "write", full)
    said = {"messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(JournalError, match="No space left"):
        journal.append(EventKind.WORLD, sid="s", data=said)
    monkeypatch.undo()
    assert _read(tmp_path) == [kept]
    after = journal.append(
        EventKind.WORLD, sid="s", data=said
    )  # the failed write stored no message
    journal.close()
    assert _read(tmp_path) == [kept, after]


def test_a_full_disk_leaves_no_partial_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(JournalError, match="No space left"):
            journal.append(EventKind.WORLD, sid="s", data={"shot": IMAGE})
        monkeypatch.undo()
        assert list((tmp_path / "blobs").iterdir()) == []
        kept = journal.append(EventKind.WORLD, sid="s", data={"shot": IMAGE})
    (tmp_path / "blobs" / ".half.png.123").write_bytes(b"of a writer that was killed")
    Journal(tmp_path).close()
    assert len(list((tmp_path / "blobs").iterdir())) == 1
    assert _read(tmp_path) == [kept]


@pytest.mark.parametrize(
    ("policy", "lines"),
    [("never", []), ("step", ["started", "observation", "status"]), ("always", [])],
)
def test_fsync_selects_which_events_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Any, lines: list[str]
) -> None:
    """Images and folders are synced before the lines that refer to them."""
    synced: list[str] = []

    def fsync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        synced.append(Path(path).name if Path(path).is_file() else "folder")

    monkeypatch.setattr(os, "fsync", fsync)
    data = {
        EventKind.STEP: {},
        EventKind.WORLD: {},
        EventKind.STARTED: {"call": 0, "name": "f", "arguments": {}},
        EventKind.MODEL_CALL: model_call(),
        EventKind.OBSERVATION: {"observation": ""},
        EventKind.STATUS: status(),
        EventKind.ROW: {},
    }
    with Journal(tmp_path, fsync=policy) as journal:
        for kind in data:
            before = len(synced)
            journal.append(kind, sid="s", data=data[kind])
            assert (len(synced) > before) == (policy == "always" or kind in lines)
        journal.append(EventKind.WORLD, sid="s", data={"shot": IMAGE})
    if policy == "never":
        assert synced == []
        return
    assert synced[0] == "folder"  # the journal's own folder
    image = next(n for n, name in enumerate(synced) if name.startswith("."))
    assert synced[image + 1] == "folder"
    assert len(synced) == 1 + (7 if policy == "always" else 3) + 2 + (policy == "always")


def test_text_that_looks_like_a_reference_is_kept(tmp_path: Path) -> None:
    texts = [f"blob:{'0' * 64}.png", "blob:", "blob::x", "blob"]
    with Journal(tmp_path) as journal:
        event = journal.append(EventKind.WORLD, sid="s", data={"a": texts, "b": {"c": texts[0]}})
        call = journal.append(
            EventKind.WORLD, sid="s", data={"messages": texts, "output": texts[0]}
        )
    assert _read(tmp_path) == [event, call]


@pytest.mark.parametrize("rest", ["abcde", "abc", "é", "iVBORw0K...", "iVBORw0KGgo=\n", "=="])
def test_a_truncated_image_is_kept_as_text(tmp_path: Path, rest: str) -> None:
    text = f"data:image/png;base64,{rest}"
    with Journal(tmp_path) as journal:
        event = journal.append(EventKind.OBSERVATION, sid="s", data={"observation": text})
        call = journal.append(EventKind.MODEL_CALL, sid="s", data=model_call([{"content": text}]))
    assert _read(tmp_path) == [event, call]
    assert not (tmp_path / "blobs").exists()


def test_a_listener_gets_the_stored_events(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    with Journal(tmp_path, secrets=["hush"], listener=heard.append) as journal:
        journal.append(EventKind.WORLD, sid="s", data={"x": "hush"})
        journal.append(EventKind.WORLD, sid="s", duration=1.5)
    assert heard == _read(tmp_path)


def test_a_folder_that_cannot_be_created_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot open"):
        Journal(tmp_path / "file" / "run")


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    with Journal(None, secrets=["hush"]) as journal:
        assert journal.append(EventKind.WORLD, sid="s", data={"x": "hush"})["data"] == {"x": "***"}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), _json, max_size=3), max_size=4), st.integers(0, 400))
def test_any_data_survives_and_any_cut_loses_only_the_tail(
    rows: list[dict[str, Any]], cut: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Journal(folder) as journal:
            for data in rows:
                data.pop("messages", None), data.pop("message_hashes", None)
                journal.append(EventKind.WORLD, sid="s", data=data)
        whole = [e["data"] for e in _read(folder)]
        assert whole == json.loads(json.dumps(rows))
        path = folder / EVENTS_FILE
        with path.open("rb+") as file:
            file.truncate(max(0, path.stat().st_size - cut))
        left = [e["data"] for e in _read(folder)]
        assert left == whole[: len(left)]
