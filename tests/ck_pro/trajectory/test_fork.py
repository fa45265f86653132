"""Forks: a new run from a step of an old one."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sample_runs import Samples, call, make_agent, read_lines, run_tasks

from ck_pro import MultiStepAgent
from ck_pro.events import EventKind
from ck_pro.exceptions import InputError, OutputError
from ck_pro.journal import Journal, compress_journal, read_events, snapshots
from ck_pro.journal.snapshots import FileSnapshots
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory import fork
from ck_pro.trajectory.fork import events_before, fork_run


@pytest.fixture
def origin(samples: Samples, tmp_path: Path) -> Path:
    """A run with two steps; the first called two web agents."""
    folder = tmp_path / "old" / "capital"
    shutil.copytree(samples.journals(samples.good) / "capital", folder)
    (folder / "work" / "notes.txt").write_text("of the old run")
    return folder


def _events(folder: Path) -> list[dict[str, Any]]:
    return list(read_events(folder))


def test_a_fork_has_the_earlier_steps_unchanged(origin: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "capital"
    made = fork_run(origin, 1, new)
    old, events = _events(origin), _events(new)
    assert events[:-1] == old[: len(events) - 1]
    nxt = old[len(events) - 1]
    assert (nxt["kind"], nxt["i"], nxt["parent"]) == ("step", 1, None)
    assert {e["sid"] for e in events} == {
        e["sid"] for e in old
    }  # including the sub-agents of step 0
    assert (events[-1]["kind"], events[-1]["i"]) == (EventKind.FORKED, 1)
    assert events[-1]["data"] == {"origin": str(origin.resolve()), "at": 1}
    assert (made.task_id, made.steps, made.events) == ("capital", 2, len(events) - 1)
    assert not (new / "work" / "notes.txt").exists()  # written later
    assert {p.name for p in new.parent.iterdir()} == {"capital"}
    blobs = {p.name for p in (new / "blobs").iterdir()}
    assert blobs and blobs <= {p.name for p in (origin / "blobs").iterdir()}


def test_a_compressed_journal_can_be_forked_at_step_0(origin: Path, tmp_path: Path) -> None:
    compress_journal(origin)
    before = {p.name for p in origin.iterdir()}
    fork_run(origin, 0, tmp_path / "new", work=False)
    assert [e["kind"] for e in _events(tmp_path / "new")] == ["task", "session", EventKind.FORKED]
    assert not (tmp_path / "new" / "work").exists()
    assert {p.name for p in origin.iterdir()} == before


@pytest.mark.integration
@pytest.mark.parametrize(("reply", "answer"), [(None, "London"), ("It is Rome.", "It is Rome.")])
def test_the_runner_resumes_a_fork(
    origin: Path, tmp_path: Path, reply: str | None, answer: str
) -> None:
    fork_run(origin, 1, tmp_path / "new" / "capital", reply=reply)
    out = run_tasks(make_agent(wrong=True), tmp_path / "new.jsonl", ["capital"])
    (row,) = read_lines(out)
    assert row["eval"]["pred"] == answer
    assert len(row["session"]["steps"]) == 2
    assert len(row["session"]["steps"][0]["action"]["sub_sessions"]) == 2
    events = _events(tmp_path / "new" / "capital")
    kinds = [e["kind"] for e in events]
    asked = [e for e in events if e["kind"] == "model_call" and e["parent"] is None]
    assert asked[-1]["data"]["model"] == ("scripted" if reply is None else "edited")
    assert kinds.index(EventKind.FORKED) < kinds.index("status", kinds.index(EventKind.FORKED))


def test_the_command_prints_how_to_resume(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reply.txt").write_text("It is Rome.")
    new = tmp_path / "new" / "capital"
    args = [str(origin), "--at", "1", "--to", str(new), "-m", "gpt:x"]
    assert fork.main([*args, "--reply", str(tmp_path / "reply.txt")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("next is step 1 of 2, with your reply")
    assert second == (
        f"resume: python -m ck_main.main -i TASKS --ids capital -o {tmp_path}/new.jsonl -m gpt:x"
    )
    assert _events(new)[-1]["data"]["reply"] == "It is Rome."
    assert fork.main(args) == 4
    assert "exists already; name another folder" in capsys.readouterr().err


def test_the_runner_looks_for_a_fork_by_its_name(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = tmp_path / "runs" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    shutil.copytree(origin, tmp_path / "sum" / "try-2")
    assert fork.main([str(tmp_path / "sum" / "try-2"), "--at", "1", "--to", "other"]) == 0
    _, rename, command = capsys.readouterr().out.splitlines()
    assert rename == "rename it to sum, the name that the runner expects"
    assert command.endswith("--ids capital -o ../b.jsonl -m MODEL")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"--at": "7"}, "there is no step 7: its main session has steps 0 to 1"),
        ({"--reply": "nothing.txt"}, "cannot read the reply nothing.txt: No such file"),
        ({"--reply": "empty.txt"}, "the reply empty.txt is empty"),
        ({"-m": "gtp:x"}, "call_target 'gtp:x': unknown scheme"),
        ({"--at": "-1"}, "--at"),
        ({"": "old"}, "old: no journal in it; name one of its journals, such as old/capital"),
        ({"": "odd", "--at": "0"}, "odd: not a ck-pro journal: KeyError('parent')"),
        ({"": "lost", "--at": "0"}, "cannot read lost/blobs/"),
        ({"": "missing"}, "cannot read missing: No such file or directory"),
        ({"": "empty.txt"}, "empty.txt is a file: name the folder of a run or of a task"),
    ],
)
def test_unusable_inputs_and_outputs_are_refused(
    origin: Path,
    tmp_path: Path,
    change: dict[str, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text(" \n")
    for name in ("odd", "lost"):
        Path(name).mkdir()
    Path("odd/events.jsonl").write_text('{"kind":"session","sid":"s","data":{}}\n')
    with Journal("lost") as journal:
        data = {"task": "t", "agent": "a", "info": {"shown": "data:image/png;base64,AAAA"}}
        journal.append(EventKind.SESSION, sid="s", data=data)
        journal.append(EventKind.STEP, sid="s", i=0)
    shutil.rmtree("lost/blobs")
    given = {"": "old/capital", "--at": "1", "--to": "new/capital", **change}
    args = [a for k, v in given.items() for a in ((k, v) if k else (v,))]
    assert fork.main(args) == 2
    assert says in capsys.readouterr().err
    assert not Path("new").exists() and not list(tmp_path.glob(".*"))


def test_a_full_disk_leaves_no_files(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fork, "restore_files", full)
    with pytest.raises(OutputError, match="No space left"):
        fork_run(origin, 1, tmp_path / "new")
    assert {p.name for p in tmp_path.iterdir()} == {"old"}


def test_steps_of_sub_agents_are_not_counted() -> None:
    def event(kind: str, sid: str, i: int, parent: str | None = None) -> dict[str, Any]:
        return {"kind": kind, "sid": sid, "i": i, "parent": parent}

    events = [
        event("session", "m", 0),
        event("step", "m", 0),
        event("session", "s", 0, "m"),
        *(event("step", "s", n, "m") for n in range(3)),
        event("observation", "m", 0),
        event("step", "m", 1),
        event("status", "m", 1),
    ]
    assert list(events_before(events, 1)) == events[:7]
    with pytest.raises(InputError, match="steps 0 to 1"):
        list(events_before(events, 2))


# --- the files of the working folder ---------------------------------------------------------


Act = Callable[[Path], object]


def write(name: str, text: str) -> Act:
    def act(work: Path) -> None:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)

    return act


def run_that_writes(folder: Path, *acts: Act, **settings: Any) -> Path:
    """A run whose steps change its working folder."""
    work, left = folder / "work", list(acts)
    work.mkdir(parents=True)

    def touch() -> str:
        """Change files."""
        left.pop(0)(work)
        return "done"

    model = ScriptedLLM(replies=[*(call("touch") for _ in acts), Reply("done")])
    agent = MultiStepAgent(
        name="main", model=model, tools=[touch], language=FunctionCallingLanguage(), **settings
    )
    with Journal(folder) as journal:
        agent.run("Write.", workdir=work, journal=journal)
    assert not left
    return folder


def files_of(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink() or path.is_file():
            content = str(path.readlink()) if path.is_symlink() else path.read_text()
            found[str(path.relative_to(folder))] = content
    return found


def overwrite_in_place(work: Path) -> None:
    """Replace bytes; keep length and time."""
    before = (work / "a.txt").stat()
    (work / "a.txt").write_text("two")
    os.utime(work / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_fork_has_the_files_of_its_step(tmp_path: Path) -> None:
    old = run_that_writes(
        tmp_path / "old",
        write("a.txt", "one"),
        write("deep/er/b.txt", "b"),
        overwrite_in_place,
        lambda work: (work / "link").symlink_to("a.txt"),
        lambda work: (shutil.rmtree(work / "deep"), (work / "a.txt").chmod(0o755)),
    )
    expected: list[dict[str, str]] = [
        {},
        {"a.txt": "one"},
        {"a.txt": "one", "deep/er/b.txt": "b"},
        {"a.txt": "two", "deep/er/b.txt": "b"},
        {"a.txt": "two", "deep/er/b.txt": "b", "link": "a.txt"},
        {"a.txt": "two", "link": "a.txt"},
    ]
    for at, files in enumerate(expected):
        new = tmp_path / f"new{at}"
        made = fork_run(old, at, new)
        assert files_of(new / "work") == files and made.files == len(files)
        assert not made.lost and not made.as_now
        if at:
            again = fork_run(new, at - 1, tmp_path / f"again{at}")  # a fork can be forked
            assert files_of(again.folder / "work") == expected[at - 1]
    kept, now = (p.stat() for p in (tmp_path / "new5/work/a.txt", old / "work/a.txt"))
    assert (kept.st_mtime_ns, kept.st_mode) == (now.st_mtime_ns, now.st_mode)


def test_files_that_were_not_stored_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snapshots, "MAX_FILE_BYTES", 10)
    old = run_that_writes(
        tmp_path / "old",
        write("large.txt", "x" * 20),
        write("larger.txt", "y" * 30),
        write("large.txt", "changed" * 3),
    )
    made = fork_run(old, 2, tmp_path / "new")
    assert files_of(tmp_path / "new/work") == {"larger.txt": "y" * 30}  # copied: unchanged since
    assert (made.lost, made.files) == (("large.txt",), 1)
    assert fork.main([str(old), "--at", "2", "--to", str(tmp_path / "other")]) == 0
    assert "not restored: 'large.txt'" in capsys.readouterr().out


def test_the_stored_content_is_bounded(tmp_path: Path) -> None:
    stored: list[bytes] = []

    def put(content: bytes, ext: str) -> str:
        stored.append(content)
        return f"{len(stored)}.{ext}"

    taken = FileSnapshots(tmp_path, put, 25)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name * 10)
    changed = (taken.take() or {})["changed"]
    assert sum("blob" in facts for facts in changed.values()) == 2
    assert sum(map(len, stored)) <= 25 and taken.take() is None


def test_a_folder_with_too_many_files_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snapshots, "MAX_ENTRIES", 2)
    old = run_that_writes(
        tmp_path / "old",
        *(write(f"{n}.txt", str(n)) for n in range(3)),
        lambda work: (work / "0.txt").unlink(),
    )
    made = fork_run(old, 3, tmp_path / "new")
    assert made.as_now and files_of(tmp_path / "new/work") == {"1.txt": "1", "2.txt": "2"}
    fork.main([str(old), "--at", "3", "--to", str(tmp_path / "other")])
    assert "no snapshot of step 3" in capsys.readouterr().out
    assert not fork_run(old, 2, tmp_path / "before").as_now
    assert files_of(tmp_path / "before/work") == {"0.txt": "0", "1.txt": "1"}
    assert not fork_run(old, 4, tmp_path / "after").as_now


def test_without_a_snapshot_pipes_and_sockets_are_skipped_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def add_special_files(work: Path) -> None:
        (work / "folder").mkdir()
        os.mkfifo(work / "folder/pipe")
        os.mknod(work / "socket", stat.S_IFSOCK)
        (work / "link").symlink_to("socket")

    old = run_that_writes(tmp_path / "old", write("a", "1"), add_special_files, snapshot_mb=0)
    made = fork_run(old, 1, tmp_path / "new")
    assert (made.lost, made.files) == (("folder/pipe", "socket"), 1)
    assert files_of(tmp_path / "new/work") == {"a": "1", "link": "socket"}
    assert fork.main([str(old), "--at", "1", "--to", str(tmp_path / "other")]) == 0
    assert "not copied: 'folder/pipe', 'socket'\n" in capsys.readouterr().out


def test_snapshots_can_be_switched_off(tmp_path: Path) -> None:
    old = run_that_writes(tmp_path / "old", write("a", "1"), write("b", "2"), snapshot_mb=0)
    assert not (old / "blobs").exists()
    assert "files" not in {event["kind"] for event in _events(old)}
    assert fork_run(old, 1, tmp_path / "new").as_now
    assert files_of(tmp_path / "new/work") == {"a": "1", "b": "2"}


def test_links_do_not_lead_a_snapshot_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("PLANTED")
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").symlink_to(secret / "key")
    (work / "folder").symlink_to(secret)
    (work / "loop").symlink_to(".")
    os.mkfifo(work / "pipe")
    (Path(os.fsdecode(bytes(work) + b"/\xff"))).write_text("odd name")
    stored: list[bytes] = []

    def put(content: bytes, ext: str) -> str:
        stored.append(content)
        return "0" * 64 + f".{ext}"

    changed = (FileSnapshots(work, put, 1000).take() or {})["changed"]
    assert set(changed) == {"file", "folder", "loop", "\\xff"} and stored == [b"odd name"]
    json.dumps(changed).encode()


@pytest.mark.parametrize("path", ["../out", "/tmp/ck-out", "a/../../out", "", "a//b", "link/x"])
def test_a_damaged_snapshot_restores_nothing_outside(tmp_path: Path, path: str) -> None:
    to = tmp_path / "to"
    to.mkdir()
    files = {"link": {"link": str(tmp_path)}, path: {"size": 1, "mtime": 1, "blob": "b"}}
    with suppress(OSError):
        snapshots.restore_files(files, to, lambda name: b"x", tmp_path / "now")
    assert {p.name for p in tmp_path.iterdir()} == {"to"}
    assert not Path("/tmp/ck-out").exists()


def _restored(work: Path, to: Path, *, limit: int = 1 << 20) -> Callable[[], list[str]]:
    """Take a snapshot of a folder; return a function that restores it."""
    blobs: dict[str, bytes] = {}

    def put(content: bytes, extension: str) -> str:
        name = f"{len(blobs)}.{extension}"
        blobs[name] = content
        return name

    taken = FileSnapshots(work, put, limit).take()
    assert taken is not None
    to.mkdir()
    return lambda: snapshots.restore_files(taken["changed"], to, blobs.get, work)


@pytest.mark.parametrize("first", ["folder", "link"])
def test_similar_names_do_not_restore_links_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    outside, work, to = tmp_path / "outside", tmp_path / "work", tmp_path / "to"
    outside.mkdir()
    (work / os.fsdecode(b"\xff")).mkdir(parents=True)
    (work / os.fsdecode(b"\xff") / "planted").symlink_to("/etc/passwd")
    (work / "\\xff").symlink_to(outside)
    walk = snapshots._walk

    def ordered(folder: Path) -> list[snapshots._Entry]:
        entries = [e._replace(folder=os.dup(e.folder)) for e in walk(folder)]
        return sorted(entries, key=lambda e: ("/" in e.path) == (first == "link"))

    monkeypatch.setattr(snapshots, "_walk", ordered)
    lost = _restored(work, to)()
    assert list(outside.iterdir()) == []
    assert len(lost) == 1


def test_a_large_file_is_not_restored_through_a_folder_that_became_a_link(tmp_path: Path) -> None:
    outside, work, to = tmp_path / "outside", tmp_path / "work", tmp_path / "to"
    outside.mkdir()
    (work / "data").mkdir(parents=True)
    (outside / "secret").write_text("secret!")
    (work / "data" / "secret").write_text("guessed")
    shutil.copystat(outside / "secret", work / "data" / "secret")
    restore = _restored(work, to, limit=1)
    shutil.rmtree(work / "data")
    (work / "data").symlink_to(outside)
    assert restore() == ["data/secret"]
    assert not (to / "data" / "secret").exists()


def test_holes_of_a_large_file_stay_holes_when_it_is_restored(tmp_path: Path) -> None:
    work, to = tmp_path / "work", tmp_path / "to"
    work.mkdir()
    with (work / "huge").open("wb") as file:
        file.write(b"head")
        file.seek(1 << 29)
        file.write(b"tail")
        file.truncate(1 << 30)
    assert _restored(work, to)() == []
    copy = to / "huge"
    assert copy.stat().st_size == 1 << 30
    assert copy.stat().st_blocks * 512 < 1 << 20
    with copy.open("rb") as file:
        assert file.read(5) == b"head\0"
        file.seek(1 << 29)
        assert file.read(5) == b"tail\0"
