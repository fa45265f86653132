"""Compressed journals read the same and survive a kill at any moment."""

from __future__ import annotations

import builtins
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal_data import RESUMED, model_call, status

from ck_pro.events import EventKind
from ck_pro.exceptions import JournalError
from ck_pro.journal import (
    COMPRESSED_FILE,
    EVENTS_FILE,
    Journal,
    compress_journal,
    has_ended,
    journal_folders,
    locked_folder,
    packed,
    read_events,
    restore_journal,
)

IMAGE = "data:image/png;base64,iVBORw0KGgoAAAA="


def _write(folder: Path, *, ended: bool = True, **settings: Any) -> list[dict[str, Any]]:
    rng = random.Random(1)
    with Journal(folder, **settings) as journal:
        events = []
        for n in range(30):
            noise = rng.randbytes(200).hex()
            messages = [{"role": "system", "content": "rules " * 50}, {"content": [noise, IMAGE]}]
            data = model_call(messages, output=f"reply {n}")
            event = journal.append(EventKind.MODEL_CALL, sid="s", i=n, phase="action", data=data)
            events.append(event)
        end = status("done" if ended else "in_progress")
        events.append(journal.append(EventKind.STATUS, sid="s", data=end))
        events.append(journal.append(EventKind.ROW, sid="s"))
    return events


def _files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} - {"blobs"}


def test_a_compressed_journal_gives_the_same_events(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    events = _write(folder)
    assert journal_folders(tmp_path) == journal_folders(folder) == [folder]
    size, mtime = (s := (folder / EVENTS_FILE).stat()).st_size, s.st_mtime_ns
    before, after = compress_journal(folder)
    assert before == size and after < size * 0.7
    assert _files(folder) == {COMPRESSED_FILE}
    assert (folder / COMPRESSED_FILE).stat().st_mtime_ns == mtime
    assert list(read_events(folder)) == events
    assert has_ended(folder)
    assert compress_journal(folder) == (before, after)
    assert journal_folders(tmp_path) == [folder]


def test_messages_can_stay_on_the_disk(tmp_path: Path) -> None:
    events = _write(tmp_path)
    for _ in ("plain", "compressed"):
        stored = list(read_events(tmp_path, stored=True))
        for event in stored[:-2]:
            messages = event["data"]["messages"]
            assert len(messages) == 2 and messages[1:] == [messages[1]]
            event["data"]["messages"] = list(messages)
        assert stored == events
        compress_journal(tmp_path)


def test_close_compresses_the_journal_of_an_ended_run(tmp_path: Path) -> None:
    _write(tmp_path / "a", compress=True)
    _write(tmp_path / "b", compress=True, ended=False)
    assert _files(tmp_path / "a") == {COMPRESSED_FILE}
    assert _files(tmp_path / "b") == {EVENTS_FILE}
    assert not has_ended(tmp_path / "b")
    with Journal(tmp_path / "a", compress=True):  # opened again without a new end
        assert _files(tmp_path / "a") == {EVENTS_FILE}
    assert _files(tmp_path / "a") == {COMPRESSED_FILE}


def test_a_resumed_run_has_not_ended(tmp_path: Path) -> None:
    _write(tmp_path)
    with Journal(tmp_path, compress=True) as journal:
        journal.append(EventKind.RESUMED, sid="s", data=RESUMED)
        journal.append(EventKind.STATUS, sid="child", parent="s", data=status())
    assert _files(tmp_path) == {EVENTS_FILE} and not has_ended(tmp_path)
    with Journal(tmp_path, compress=True) as journal:
        journal.append(EventKind.STATUS, sid="s", data=status("problem"))
    assert _files(tmp_path) == {COMPRESSED_FILE} and has_ended(tmp_path)


@pytest.mark.integration
def test_a_failed_compression_leaves_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Journal(tmp_path, compress=True) as journal:
        journal.append(EventKind.STATUS, sid="s", data=status())
        monkeypatch.setattr(packed, "_pack", full)
    assert _files(tmp_path) == {EVENTS_FILE}
    assert "No space left on device; the journal is not compressed" in caplog.text


def test_a_full_disk_during_decompression_leaves_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = _write(tmp_path)
    compress_journal(tmp_path)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(JournalError, match=r"cannot open .*events\.jsonl: No space left"):
        Journal(tmp_path)
    assert _files(tmp_path) == {COMPRESSED_FILE}
    assert list(read_events(tmp_path)) == events


def test_a_compressed_journal_can_be_extended(tmp_path: Path) -> None:
    events = _write(tmp_path)
    compress_journal(tmp_path)
    with Journal(tmp_path) as journal:
        again = [{"role": "system", "content": "rules " * 50}]
        events.append(journal.append(EventKind.MODEL_CALL, sid="s", data=model_call(again)))
        assert _files(tmp_path) == {EVENTS_FILE}
        with pytest.raises(JournalError, match="in use by another process"):
            compress_journal(tmp_path)
    assert list(read_events(tmp_path)) == events
    line = (tmp_path / EVENTS_FILE).read_bytes().splitlines()[-1]
    assert b"message_hashes" in line and len(line) < 400  # known messages are not stored again


def _killed_at(point: int, action: Callable[[], object]) -> bool:
    """Run `action` in a process that exits at its n-th disk operation; return whether it did."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    left = point

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(9)
            return function(*args, **kwargs)

        return call

    code = 1
    try:
        for owner, name in (
            (os, "fsync"),
            (os, "utime"),
            (Path, "replace"),
            (Path, "unlink"),
            (Path, "open"),
            (builtins, "open"),
        ):
            setattr(owner, name, deadly(getattr(owner, name)))
        action()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.integration
@pytest.mark.parametrize("change", ["compress", "restore", "open"])
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path, change: str) -> None:
    kills = 0
    while True:
        folder = tmp_path / f"{change}{kills}"
        events = _write(folder)
        action = {
            "compress": lambda f=folder: compress_journal(f),
            "restore": lambda f=folder: restore_journal(f),
            "open": lambda f=folder: Journal(f).close(),
        }[change]
        if change != "compress":
            compress_journal(folder)
        killed = _killed_at(kills, action)
        assert list(read_events(folder)) == events
        with Journal(folder) as journal:
            events.append(journal.append(EventKind.ROW, sid="s"))
        compress_journal(folder)
        assert list(read_events(folder)) == events
        assert _files(folder) == {COMPRESSED_FILE}
        if not killed:
            break
        kills += 1
    assert kills >= 4


def test_two_different_journals_are_not_merged(tmp_path: Path) -> None:
    _write(tmp_path)
    compress_journal(tmp_path)
    other = b'{"kind":"a","sid":"other","data":{}}\n'
    (tmp_path / EVENTS_FILE).write_bytes(other)
    with pytest.raises(JournalError, match=r"has two different journals; move events"):
        Journal(tmp_path)
    assert _files(tmp_path) == {EVENTS_FILE, COMPRESSED_FILE}


@pytest.mark.parametrize("content", [b"nonsense", b"\x28\xb5\x2f\xfd\x00\x58"])
def test_a_broken_compressed_file_raises(tmp_path: Path, content: bytes) -> None:
    (tmp_path / COMPRESSED_FILE).write_bytes(content)
    with pytest.raises(JournalError, match=r"events\.jsonl\.zst"):
        list(read_events(tmp_path))


def test_a_flipped_byte_raises(tmp_path: Path) -> None:
    _write(tmp_path)
    compress_journal(tmp_path)
    path = tmp_path / COMPRESSED_FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalError):
        list(read_events(tmp_path))


def test_a_missing_zstd_package_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path)
    compress_journal(tmp_path)

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(packed, "import_module", missing)
    said = r'pip install "ck-pro\[zstd\]"'
    for action in (
        lambda: list(read_events(tmp_path)),
        lambda: Journal(tmp_path / "new", compress=True),
        lambda: compress_journal(tmp_path),
    ):
        with pytest.raises(JournalError, match=said):
            action()
    assert list((tmp_path / "new").parent.glob("new")) == []


def test_opening_waits_for_the_folder_lock(tmp_path: Path) -> None:
    import threading

    opened = threading.Event()

    def open_it() -> None:
        Journal(tmp_path).close()
        opened.set()

    with locked_folder(tmp_path):
        thread = threading.Thread(target=open_it)
        thread.start()
        assert not opened.wait(0.05)
    thread.join()
    assert opened.is_set()


def test_journal_folders_lists_tries_in_order(tmp_path: Path) -> None:
    names = [
        "a/try-2",
        "a/try-10",
        "a/attempt-1/try-1",
        "b",
        "b/attempt-1",
        "c10",
        "c9",
        "d/x",
        ".e",
    ]
    for name in names:
        Journal(tmp_path / name).close()

    def found(path: Path) -> list[str]:
        return [str(p.relative_to(tmp_path)) for p in journal_folders(path)]

    assert found(tmp_path) == ["a/try-2", "a/try-10", "b", "c9", "c10"]
    assert found(tmp_path / "a") == ["a/try-2", "a/try-10"]
    assert found(tmp_path / "b") == ["b"]
    assert found(tmp_path / "a" / "try-10") == ["a/try-10"]
