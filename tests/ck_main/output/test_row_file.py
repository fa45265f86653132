"""The output file: appended to, repaired, never truncated; rows made again from journals."""

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import FakeAgent, make_task
from hypothesis import given
from hypothesis import strategies as st
from output_rows import make_row
from paths import SUPPORT

from ck_main.output.output_files import folder_of, superseded_path
from ck_main.output.row import (
    build_row,
    count_steps,
    examine,
    row_from_events,
    row_line,
    task_facts,
)
from ck_main.output.row_file import RowFile
from ck_pro.events import EventKind
from ck_pro.exceptions import OutputError
from ck_pro.journal import Journal, read_events
from ck_pro.model import Budget
from ck_pro.session import AgentSession


def test_rows_are_appended_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.jsonl"
    with RowFile(path) as rows:
        rows.append(make_row("a"))
        rows.append(make_row("é", "y"))
        assert rows.has("a") and rows.has("é") and not rows.has("b")
    with RowFile(path) as rows:
        assert {k: o.corr for k, o in rows.done.items()} == {"a": 1, "é": 0}
        assert all(o.earlier for o in rows.done.values())
        rows.append(make_row("b"))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "é", "b"]


@pytest.mark.parametrize("keep", [1, 20, -1])
def test_a_torn_last_line_is_moved_and_reported(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "out.jsonl"
    whole = row_line(make_row("a"))
    torn = row_line(make_row("b"))[: keep - 1 if keep < 0 else keep]
    path.write_bytes(whole + torn)
    with RowFile(path) as rows:
        assert rows.repaired == len(torn) and list(rows.done) == ["a"]
        rows.append(make_row("c"))
    assert [json.loads(x)["id"] for x in path.read_bytes().splitlines()] == ["a", "c"]
    assert (tmp_path / "out.jsonl.torn").read_bytes() == torn + b"\n"


def test_a_whole_row_without_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(row_line(make_row("a"))[:-1])
    with RowFile(path) as rows:
        assert rows.repaired == 0 and rows.has("a")
        rows.append(make_row("b"))
    assert [json.loads(x)["id"] for x in path.read_bytes().splitlines()] == ["a", "b"]


@pytest.mark.parametrize("content", ["hello\n", '{"id": 1}\n', "[]\n", '{"a": 1}\n{"torn'])
def test_a_file_with_other_content_is_not_changed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(content)
    with pytest.raises(OutputError, match=r"notes\.jsonl, line 1: is not an output row"):
        RowFile(path)
    assert path.read_text() == content and not (tmp_path / "notes.jsonl.torn").exists()


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "out.jsonl", Path("/dev/null")):
        with pytest.raises(OutputError) as caught:
            RowFile(path)
        assert str(path) in str(caught.value)


@pytest.mark.worker
def test_a_full_disk_leaves_no_partial_row(tmp_path: Path) -> None:
    # a limit on file sizes instead of a full disk; it needs a separate process
    code = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from output_rows import make_row
from ck_main.output.row_file import RowFile
from ck_pro.exceptions import OutputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
rows = RowFile(Path(sys.argv[1]))
rows.append(make_row("a"))
size = rows.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
try:
    rows.append(make_row("b"))
except OutputError as e:
    assert "cannot write the output" in str(e), e
    assert rows.path.stat().st_size == size and not rows.has("b")
    print("refused")
"""
    command = [
        sys.executable,
        "-c",
        code,
        str(tmp_path / "o.jsonl"),
        str(SUPPORT / "runs"),
        str(SUPPORT / "agents"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\n", done.stderr


def test_a_closed_file_refuses_rows(tmp_path: Path) -> None:
    rows = RowFile(tmp_path / "out.jsonl")
    rows.close()
    rows.close()
    with pytest.raises(OutputError, match="is closed"):
        rows.append(make_row("a"))


def test_the_folder_is_never_the_file() -> None:
    for name, folder in (("a.jsonl", "a"), ("a", "a.d"), ("a.b.c", "a.b")):
        assert folder_of(Path(name)) == Path(folder)


def test_many_threads_and_files_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    files = [RowFile(path), RowFile(path)]

    def write(n: int) -> None:
        for i in range(5):
            files[n % 2].append(make_row(f"{n}-{i}", "x" * 5000))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file in files:
        file.refresh()
        assert len(file.done) == 30
        file.close()
    assert len(path.read_bytes().splitlines()) == 30


def test_a_lone_surrogate_can_be_written(tmp_path: Path) -> None:
    with RowFile(tmp_path / "out.jsonl") as rows:
        rows.append(make_row("a", "\ud800"))
        assert rows.done["a"].answer == "\ud800"


@pytest.mark.parametrize("answer", [None, "A"])
def test_the_row_rebuilt_from_the_journal_has_the_same_bytes(
    tmp_path: Path, answer: str | None
) -> None:
    os.environ["CK_TEST_API_KEY"] = "very-secret-key"
    try:
        task = make_task("a", "a very-secret-key", answer=answer)
        with Journal(tmp_path / "j") as journal:
            session = AgentSession(task.question)
            facts = journal.append(EventKind.TASK, sid=session.id, data=task_facts(task))["data"]
            FakeAgent().run(
                task.question,
                session=session,
                workdir=tmp_path,
                journal=journal,
                budget=Budget(),
                cancel=threading.Event(),
                on_event=lambda event: None,
            )
    finally:
        del os.environ["CK_TEST_API_KEY"]
    row = build_row(facts, session)
    assert row_line(row_from_events(read_events(tmp_path / "j"))) == row_line(row)
    assert list(row) == ["id", "task", "file", "answer", "_orig", "skip_hard", "session", "eval"]
    assert b"very-secret-key" not in json.dumps([row["task"], row["_orig"]]).encode()
    assert row["eval"]["corr"] is (None if answer is None else 0)


def test_steps_of_the_whole_tree_are_counted() -> None:
    leaf = {"steps": [{"action": {}}, {"action": {}}]}
    tree = {"steps": [{"action": {"sub_sessions": [leaf, leaf]}}, {"action": {}}]}
    assert count_steps(tree) == 6


def content(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_rows_are_taken_out_and_put_in_order(tmp_path: Path) -> None:
    path, removed = tmp_path / "out.jsonl", superseded_path(tmp_path / "out.jsonl")
    with RowFile(path) as rows, RowFile(path) as other:
        written = {n: make_row(n) for n in "dabc"}
        for row in written.values():
            rows.append(row)
        assert rows.take_out({"a", "c", "none"}, removed) == 2
        assert (content(path), content(removed)) == (["d", "b"], ["a", "c"])
        assert removed.read_bytes() == row_line(written["a"]) + row_line(written["c"])
        assert not other.has("a") and other.has("b")  # it follows to the new file
        other.append(make_row("a"))
        rows.sort("abcd")
        other.append(make_row("e"))
        assert content(path) == ["a", "b", "d", "e"] and rows.has("e")
        assert rows.take_out((), removed) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl", "out.superseded.jsonl"]


def test_killed_between_the_two_files_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    path, other = tmp_path / "out.jsonl", tmp_path / "out.superseded.jsonl"
    with RowFile(path) as rows:
        rows.append(make_row("a"))
        rows.append(make_row("b"))
        rows._rewrite = lambda places: None  # type: ignore[method-assign]
        rows.take_out({"a"}, other)
    (tmp_path / ".out.jsonl.rewriting").write_text("half a")
    with other.open("a") as file:
        file.write('{"torn')
    with RowFile(path) as rows:
        assert list(rows.done) == ["a", "b"]
        assert rows.take_out({"a"}, other) == 1
    assert (content(path), content(other)) == (["b"], ["a"])
    assert not (tmp_path / ".out.jsonl.rewriting").exists()


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as rows:
        for name in "ba":
            rows.append(make_row(name))
        before = path.read_bytes()

        def full(fd: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="free disk space, then repeat the command"):
            rows.sort("ab")
        monkeypatch.undo()
        assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
        rows.append(make_row("c"))
        assert content(path) == ["b", "a", "c"]


def test_a_link_stays_a_link_and_a_removed_file_comes_back(tmp_path: Path) -> None:
    real, path = tmp_path / "real.jsonl", tmp_path / "out.jsonl"
    path.symlink_to(real)
    with RowFile(path) as rows:
        for name in "ba":
            rows.append(make_row(name))
        rows.sort("ab")
        assert path.is_symlink() and content(real) == ["a", "b"]
        real.unlink()
        rows.append(make_row("c"))
        assert content(real) == ["c"] and list(rows.done) == ["c"]


def test_threads_and_processes_append_while_the_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    files = [RowFile(path) for _ in range(3)]

    def write(n: int) -> None:
        for i in range(8):
            files[n].append(make_row(f"{n}-{i}", "x" * 500))
            files[n].sort([f"{a}-{b}" for b in range(8) for a in range(3)])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file in files:
        file.close()
    assert content(path) == [f"{a}-{b}" for b in range(8) for a in range(3)]


@given(st.binary(max_size=80))
def test_any_damaged_end_is_repaired(tmp_path_factory: Any, tail: bytes) -> None:
    tail = tail.replace(b"\n", b"")
    path = tmp_path_factory.getbasetemp() / "tail.jsonl"
    path.write_bytes(row_line(make_row("a")) + tail)
    with RowFile(path) as rows:
        rows.append(make_row("b"))
        assert list(rows.done) == ["a", "b"]


# --- an output that other programs change in place -----------------------------------------------


@pytest.mark.parametrize("rows_kept", [0, 0.5, 1, 1.5, 2.5, 3])
def test_a_file_that_is_truncated_in_place_gets_whole_rows(
    tmp_path: Path, rows_kept: float
) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as rows:
        for name in "abc":
            rows.append(make_row(name))
        os.truncate(path, int(rows_kept * len(row_line(make_row("a")))) - (rows_kept == 3))
        rows.append(make_row("d"))
        left = content(path)
        assert left == list(rows.done) and left[-1] == "d"
        assert rows.lost == set("abc") - set(left)
        assert rows.restore(make_row("c")) == ("c" not in left) and not rows.restore(make_row("d"))
    with RowFile(path) as rows:
        assert set(rows.done) == {*left, "c"}


def test_a_file_that_was_truncated_and_written_to_by_another_program(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as rows:
        for name in "abc":
            rows.append(make_row(name))
        os.truncate(path, 40)
        with path.open("ab") as other:  # longer than before, and glued to the torn row
            other.write(b"".join(row_line(make_row(name, "z" * 500)) for name in "de"))
        rows.append(make_row("f"))
        assert content(path) == ["d", "e", "f"] and rows.lost == set("abc")
        assert rows.torn == {"a"}
    assert (tmp_path / "out.jsonl.torn").read_bytes() == row_line(make_row("a"))[:40] + b"\n"


def test_a_file_that_is_truncated_while_a_row_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    write = os.write

    def truncated(fd: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", write)
        os.truncate(path, 50)
        return write(fd, data)

    with RowFile(path) as rows:
        rows.append(make_row("a"))
        monkeypatch.setattr(os, "write", truncated)
        rows.append(make_row("b"))
        assert content(path) == ["b"] and rows.lost == {"a"}


@pytest.mark.parametrize("size", [4096, 2**28])
def test_a_file_that_is_extended_with_a_hole_keeps_its_rows(tmp_path: Path, size: int) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as rows:
        rows.append(make_row("a"))
        os.truncate(path, path.stat().st_size + size)
        rows.append(make_row("b"))
        assert content(path) == ["a", "b"]
    os.truncate(path, path.stat().st_size + size)
    with RowFile(path) as rows:
        assert list(rows.done) == ["a", "b"] and content(path) == ["a", "b"]


def test_a_torn_line_in_the_middle_is_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    a, b, c = (row_line(make_row(name)) for name in "abc")
    path.write_bytes(a + b[:60] + c + b"\0" * 30 + b"\n" + b"\0" * 9 + b)
    with RowFile(path) as rows:
        assert list(rows.done) == ["a", "c", "b"] and rows.torn == {"b"}
    assert path.read_bytes() == a + c + b
    assert (tmp_path / "out.jsonl.torn").read_bytes() == b[:60] + b"\n"


def test_rows_of_a_replaced_file_that_is_truncated_at_once_are_known_to_be_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as one, RowFile(path) as two:
        for name in "abc":
            one.append(make_row(name))
        two.refresh()
        one.sort("cba")  # replaces the file
        os.truncate(path, path.stat().st_size // 3)
        two.refresh()
        assert content(path) == ["c"]
        assert two.lost == set("ab")


def test_rows_that_another_process_took_out_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path) as one, RowFile(path) as two:
        for name in "abc":
            one.append(make_row(name))
        two.refresh()
        one.take_out(["b"], superseded_path(path))
        two.refresh()
        assert two.lost == set() and set(two.done) == set("ac")


def test_rows_survive_a_program_that_keeps_truncating_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    files = [RowFile(path) for _ in range(3)]
    ids = [[f"{n}-{i}" for i in range(20)] for n in range(3)]
    rng, stop = random.Random(7), threading.Event()

    def truncate() -> None:
        while not stop.wait(rng.random() / 100):
            os.truncate(path, rng.randrange(path.stat().st_size + 1))

    def write(n: int) -> None:
        for name in ids[n]:
            files[n].append(make_row(name, "x" * (len(name) * 400)))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    other = threading.Thread(target=truncate)
    for thread in (other, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    other.join()
    for file, written in zip(files, ids, strict=True):
        file.refresh()
        assert {*file.done, *file.lost} >= set(written), "each row is there, or known to be lost"
        for name in written:
            file.restore(make_row(name))
        file.close()
    assert sorted(content(path)) == sorted(name for written in ids for name in written)


def test_a_huge_torn_row_with_many_ids_in_it_is_examined_quickly() -> None:
    calls = [{"id": f"c{n}", "type": "function"} for n in range(20_000)]
    line = row_line({**make_row("big"), "calls": calls})[:-10]
    damage = examine(line + row_line(make_row("b")))
    assert damage is not None and damage.torn == ("big",) and damage.size == len(line)
    assert damage.outcome is not None and damage.outcome.id == "b"
