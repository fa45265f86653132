"""The viewer follows runs in progress, and survives what happens to their files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from viewer_runs import RunWriter, output_with, small_run

from ck_main.runner.task_folder import claimed
from ck_main.viewer.live import Follower
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_main.viewer.search.indexer import Indexer
from ck_pro.journal import compress_journal

pytestmark = pytest.mark.integration
_WRITER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from viewer_runs import RunWriter
run = RunWriter(Path({folder!r}), "live")
for i in range(10_000):
    run.step(i, observation="x" * 3000)
    if i == 5:
        print("going", flush=True)
"""


def test_a_run_appears_grows_and_gets_its_row(tmp_path: Path, viewers: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "status.json").write_text("{}")
    client = viewers(tmp_path / "a.jsonl")
    assert client.rows() == []
    run = RunWriter(tmp_path / "a" / "task1", "task1")
    [row] = client.until(lambda rows: len(rows) == 1 and rows[0]["status"])
    assert (row["id"], row["live"], row["status"]) == ("task1", True, "in_progress")
    for i in range(3):
        run.step(i, thought=f"Now thinking of walrus {i}.")
    [row] = client.until(lambda rows: rows[0]["steps"] == 3)
    assert len(client.get(f"run/{row['key']}")["sessions"][0]["steps"]) == 3
    finished = run.finish(i=2)
    (tmp_path / "a.jsonl").write_text(json.dumps(finished) + "\n")
    [done] = client.until(lambda rows: rows[0]["score"] == 1)
    assert (done["key"], done["live"], done["status"]) == (row["key"], False, "done")
    client.until(lambda rows: len(client.search("walrus")) == 3)
    assert client.get(f"run/{row['key']}")["journal"].endswith("task1")


def test_a_run_whose_command_was_killed_is_no_longer_live(tmp_path: Path, viewers: Any) -> None:
    folder = tmp_path / "a" / "task1"
    with claimed(folder):
        RunWriter(folder, "task1").step(0)
        client = viewers(tmp_path / "a")
        [row] = client.until(lambda rows: len(rows) == 1 and rows[0]["steps"] == 1)
        assert row["live"]
        before = client.get("runs")["version"]
    # its journal does not change, but pages that wait for changes learn it
    changed = client.get(f"changes?since={before}")
    while row["key"] not in changed["keys"]:
        changed = client.get(f"changes?since={changed['version']}")
    [row] = client.rows()
    assert (row["live"], row["status"]) == (False, "in_progress")


def test_later_tries_take_the_place_of_the_first_when_the_row_comes(
    tmp_path: Path, viewers: Any
) -> None:
    task = tmp_path / "a" / "one"
    first = RunWriter(task / "try-1", "one")
    first.step(0)
    first.finish("wrong")
    client = viewers(tmp_path / "a")
    client.until(lambda rows: len(rows) == 1 and rows[0]["score"] == 0)
    second = RunWriter(task / "try-2", "one")
    second.sid = "second"
    second.session("second", "ck_agent", "q")
    client.until(lambda rows: len(rows) == 2)
    second.step(0, sid="main-one")
    second.journal.close()
    row = small_run(tmp_path / "elsewhere", "one")
    row["session"]["info"]["try"] = {"number": 2}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    [shown] = client.until(lambda rows: len(rows) == 1)
    assert (shown["try"], shown["score"]) == ("2", 1)
    tries = client.get(f"run/{shown['key']}")["tries"]
    assert {t["try"] for t in tries} >= {"1", "2"}


def test_a_killed_writer_leaves_a_run_that_can_be_read(tmp_path: Path, viewers: Any) -> None:
    folder = tmp_path / "a" / "live"
    folder.mkdir(parents=True)
    code = _WRITER.format(path=sys.path, folder=str(folder))
    client = None
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        client = viewers(tmp_path / "a")
        [row] = client.until(lambda rows: rows and (rows[0]["steps"] or 0) > 5)
        for _ in range(20):
            run = client.get(f"run/{row['key']}")
            last = run["sessions"][0]["steps"][-1]["i"]
            client.get(f"run/{row['key']}/step/main-live/{last}")
        os.kill(process.pid, signal.SIGKILL)
    run = client.get(f"run/{row['key']}")
    assert run["problems"] == []
    assert len(run["sessions"][0]["steps"]) > 5


def test_rows_that_are_replaced_truncated_or_removed_are_read_again(
    tmp_path: Path, viewers: Any
) -> None:
    rows = output_with(tmp_path, "one", "two", "three", journals=False)
    client = viewers(rows)
    client.until(lambda found: len(found) == 3)
    lines = rows.read_bytes().splitlines(keepends=True)
    with rows.open("r+b") as file:
        file.truncate(len(lines[0]) + 100)
    [one] = client.until(lambda found: len(found) == 1)
    assert one["id"] == "one"
    assert any("incomplete" in problem for problem in client.get("info")["problems"])
    other = tmp_path / "new"
    other.write_bytes(lines[1] + lines[2])
    other.replace(rows)
    found = client.until(lambda found: [row["id"] for row in found] == ["two", "three"])
    assert client.get(f"run/{found[0]['key']}")["output"] == "42"
    with rows.open("ab") as file:
        file.write(lines[0][:50])
        file.flush()
        file.write(lines[0][50:])
    client.until(lambda found: len(found) == 3)
    rows.unlink()
    assert client.get(f"run/{one['key']}", 400)["error"]


def test_a_journal_that_is_compressed_stays_open(tmp_path: Path, viewers: Any) -> None:
    pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")
    output_with(tmp_path, "one")
    (tmp_path / "a.jsonl").unlink()
    client = viewers(tmp_path / "a")
    [row] = client.read()
    before = client.get(f"run/{row['key']}")
    compress_journal(tmp_path / "a" / "one")
    assert client.get(f"run/{row['key']}") == before
    assert client.get(f"run/{row['key']}/call/main-one/1/0")["messages"]
    again = viewers(tmp_path / "a")
    assert again.read()[0]["key"] == row["key"]


def test_the_index_is_used_again_and_two_viewers_can_share_a_source(
    tmp_path: Path, viewers: Any
) -> None:
    rows = output_with(tmp_path, "one", "two", journals=False)
    first = viewers(rows)
    first.read()
    second = viewers(rows)  # the first has the database
    second.read()
    assert len(second.search("zebra")) == len(first.search("zebra")) == 2
    third_source = rows.read_text().splitlines()[0]
    first.stop()
    second.stop()
    rows.write_text(third_source + "\n")
    again = viewers(rows)
    again.until(lambda found: len(found) == 1 and found[0]["steps"] is not None)
    again.until(lambda found: len(again.search("zebra")) == 1)


def test_a_damaged_index_is_made_again(tmp_path: Path, viewers: Any) -> None:
    rows = output_with(tmp_path, "one")
    client = viewers(rows)
    client.read()
    client.stop()
    client.app.ended.wait()
    [database] = (tmp_path / "cache").glob("*.sqlite")
    database.write_bytes(b"not a database" * 1000)
    again = viewers(rows)
    again.read()
    assert len(again.search("zebra")) == 1


def test_known_rows_are_not_scanned_again_and_new_ones_are_found(tmp_path: Path) -> None:
    rows = output_with(tmp_path, "one", "two", "three", journals=False)
    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[:2]))
    library, indexer = _read_all(rows, tmp_path)
    before = {entry.key: entry.summary for entry in library.entries()}
    indexer.close()

    def restored() -> Library:
        again = Library(sources_of([rows]))
        with closing(Indexer(again, tmp_path / "cache")) as indexer:
            indexer.restore()
        return again

    assert {e.key: e.summary for e in restored().entries()} == before
    assert all(entry.complete for entry in restored().entries())
    with rows.open("ab") as file:
        file.write(lines[2])
    grown = restored()
    assert len(grown.entries()) == 2
    grown.scan()
    assert [entry.task_id for entry in grown.entries()] == ["one", "two", "three"]
    rows.write_bytes(lines[0] + lines[1].replace(b"zebra", b"horse"))
    assert restored().entries() == []


def _read_all(rows: Path, folder: Path) -> tuple[Library, Indexer]:
    library = Library(sources_of([rows]))
    indexer = Indexer(library, folder / "cache")
    Follower(library, indexer, threading.Event(), str).look()
    return library, indexer
