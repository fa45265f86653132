"""Forks: a new run from the middle of an old one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sample_runs import Samples, make_agent, read_lines, run_tasks

from ck_pro.exceptions import InputError, OutputError
from ck_pro.journal import FORKED, Journal, compress_journal, read_events
from ck_pro.trajectory import fork
from ck_pro.trajectory.fork import events_before, fork_run


@pytest.fixture
def origin(samples: Samples, tmp_path: Path) -> Path:
    """The run of a task with two steps; two web agents ran in its first."""
    folder = tmp_path / "old" / "capital"
    shutil.copytree(samples.journals(samples.good) / "capital", folder)
    (folder / "work" / "notes.txt").write_text("of the old run")
    return folder


def _events(folder: Path) -> list[dict[str, Any]]:
    return list(read_events(folder))


def test_the_steps_before_are_kept_whole(origin: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "capital"
    made = fork_run(origin, 1, new)
    old, events = _events(origin), _events(new)
    assert events[:-1] == old[: len(events) - 1]
    nxt = old[len(events) - 1]
    assert (nxt["kind"], nxt["i"], nxt["parent"]) == ("step", 1, None)
    assert {e["sid"] for e in events} == {e["sid"] for e in old}  # sub-agents of step 0 are in it
    assert (events[-1]["kind"], events[-1]["i"]) == (FORKED, 1)
    assert events[-1]["data"] == {"origin": str(origin.resolve()), "at": 1}
    assert (made.task_id, made.steps, made.events) == ("capital", 2, len(events) - 1)
    assert (new / "work" / "notes.txt").read_text() == "of the old run"
    assert {p.name for p in new.parent.iterdir()} == {"capital"}
    blobs = {p.name for p in (new / "blobs").iterdir()}
    assert blobs and blobs <= {p.name for p in (origin / "blobs").iterdir()}


def test_from_the_beginning_of_a_compressed_journal(origin: Path, tmp_path: Path) -> None:
    compress_journal(origin)
    before = {p.name for p in origin.iterdir()}
    fork_run(origin, 0, tmp_path / "new", work=False)
    assert [e["kind"] for e in _events(tmp_path / "new")] == ["task", "session", FORKED]
    assert not (tmp_path / "new" / "work").exists()
    assert {p.name for p in origin.iterdir()} == before


@pytest.mark.integration
@pytest.mark.parametrize(("reply", "answer"), [(None, "London"), ("It is Rome.", "It is Rome.")])
def test_the_runner_goes_on_with_a_fork(
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
    assert kinds.index(FORKED) < kinds.index("status", kinds.index(FORKED))


def test_the_command_says_how_to_go_on(
    origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reply.txt").write_text("It is Rome.")
    new = tmp_path / "new" / "capital"
    args = [str(origin), "--at", "1", "--to", str(new), "-m", "gpt:x"]
    assert fork.main([*args, "--reply", str(tmp_path / "reply.txt")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("step 1 of 2 comes next, with your reply")
    assert second == (
        f"go on: python -m ck_main.main -i TASKS --ids capital -o {tmp_path}/new.jsonl -m gpt:x"
    )
    assert _events(new)[-1]["data"]["reply"] == "It is Rome."
    assert fork.main(args) == 4
    assert "is there already; name another folder" in capsys.readouterr().err


def test_the_runner_looks_for_a_fork_by_its_name(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = tmp_path / "runs" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    shutil.copytree(origin, tmp_path / "sum" / "try-2")
    assert fork.main([str(tmp_path / "sum" / "try-2"), "--at", "1", "--to", "other"]) == 0
    _, rename, command = capsys.readouterr().out.splitlines()
    assert rename == "rename it to sum, where the runner looks for that task"
    assert command.endswith("--ids capital -o ../b.jsonl -m MODEL")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"--at": "7"}, "there is no step 7: its main session has steps 0 to 1"),
        ({"--reply": "nothing.txt"}, "cannot read the reply nothing.txt: No such file"),
        ({"--reply": "empty.txt"}, "the reply empty.txt is empty"),
        ({"-m": "gtp:x"}, "call_target 'gtp:x' is not known"),
        ({"--at": "-1"}, "--at"),
        ({"": "old"}, "old: no journal in it; name one of its journals, such as old/capital"),
        ({"": "odd", "--at": "0"}, "odd: not a journal of ours: KeyError('parent')"),
        ({"": "lost", "--at": "0"}, "cannot read lost/blobs/"),
        ({"": "missing"}, "cannot read missing: No such file or directory"),
        ({"": "empty.txt"}, "empty.txt is a file: name the folder of a run or of a task"),
    ],
)
def test_what_cannot_be_forked(
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
        journal.append("session", sid="s", data={"shown": "data:image/png;base64,AAAA"})
        journal.append("step", sid="s", i=0)
    shutil.rmtree("lost/blobs")
    given = {"": "old/capital", "--at": "1", "--to": "new/capital", **change}
    args = [a for k, v in given.items() for a in ((k, v) if k else (v,))]
    assert fork.main(args) == 2
    assert says in capsys.readouterr().err
    assert not Path("new").exists() and not list(tmp_path.glob(".*"))


def test_a_full_disk_leaves_nothing(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OutputError, match="No space left"):
        fork_run(origin, 1, tmp_path / "new")
    assert {p.name for p in tmp_path.iterdir()} == {"old"}


def test_a_step_of_a_sub_agent_is_no_step_of_the_run() -> None:
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
