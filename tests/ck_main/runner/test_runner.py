"""The runner: folders, resuming, failures, stopping, several at once."""

import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent, make_task
from runner_bench import Bench

from ck_main.output.row import row_from_events, row_line
from ck_pro.exceptions import BrowserServerError, JournalError, OutputError
from ck_pro.journal import read_events
from ck_pro.session import StopReason


def test_each_task_gives_a_row_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    task = make_task(
        "a/b",
        "hello",
        answer="Hello",
        files={"data.csv": tmp_path / "data.csv"},
        file_name="data.csv",
    )

    def behaviour(call: Call) -> str:
        assert [p.name for p in call.workdir.iterdir()] == ["data.csv"]
        return call.task

    bench = Bench(tmp_path, behaviour)
    (row,) = bench.run(task)
    assert (row["id"], row["task"], row["file"], row["answer"]) == (
        "a/b",
        "hello",
        "data.csv",
        "Hello",
    )
    assert row["_orig"] == {"question": "hello"} and row["skip_hard"] is False
    assert row["eval"] == {"pred": "hello", "gold": "Hello", "corr": 1}
    folder = tmp_path / "out" / task.folder
    again = row_line(row_from_events(read_events(folder)))
    assert again == bench.rows.path.read_bytes()
    (outcome,) = bench.watching.outcomes
    assert (outcome.steps, outcome.tokens, outcome.money, outcome.status) == (1, 7, 0.25, "done")
    assert bench.watching.events[0][0] == "a/b"


def test_tasks_with_a_row_are_not_run_again(tmp_path: Path) -> None:
    tasks = [make_task(n) for n in "abc"]
    Bench(tmp_path).run(*tasks[:2])
    second = Bench(tmp_path)
    rows = second.run(*tasks)
    assert second.watching.started_ids == ["c"] and [r["id"] for r in rows] == ["a", "b", "c"]


def test_the_failure_of_one_task_is_a_row_and_the_others_run(tmp_path: Path) -> None:
    def behaviour(call: Call) -> Any:
        if call.task == "bad":
            raise RuntimeError("broken\nbadly")
        return StopReason.TIME if call.task == "slow" else "fine"

    rows = Bench(tmp_path, behaviour).run(
        make_task("a", "bad"), make_task("b", "slow"), make_task("c")
    )
    ends = [(r["session"]["info"]["status"], r["session"]["info"]["stop_reason"]) for r in rows]
    assert ends == [("problem", "internal_error"), ("problem", "time"), ("done", "finished")]
    assert all(r["session"]["steps"] for r in rows)
    assert "RuntimeError" in rows[0]["session"]["info"]["message"]


def test_an_agent_that_raises_before_its_first_event_gives_a_complete_row(
    tmp_path: Path,
) -> None:
    class Broken(FakeAgent):
        def run(self, task: str, **kwargs: Any) -> Any:
            raise ValueError("at once")

    bench = Bench(tmp_path)
    bench.runner.agent = Broken()
    (row,) = bench.run(make_task("a", answer="x"))
    assert len(row["session"]["steps"]) == 1 and row["eval"]["corr"] == 0
    assert row["session"]["info"]["final_results"]["log"] == "ValueError: at once"


def _stopped(bench: Bench) -> None:
    def behaviour(call: Call) -> StopReason:
        (call.workdir / "left").write_text("x")
        bench.stop.set()
        assert call.cancel.is_set()
        return StopReason.CANCELLED

    bench.runner.agent.behaviour = behaviour  # type: ignore[attr-defined]
    assert bench.run(make_task("a"), make_task("b")) == []
    assert bench.watching.started_ids == ["a"]
    assert "stopped before it ended" in bench.watching.notes[0]


def test_a_stopped_task_has_no_row_and_is_resumed(tmp_path: Path) -> None:
    _stopped(Bench(tmp_path))
    rows = Bench(tmp_path).run(make_task("a"), make_task("b"))
    assert [r["id"] for r in rows] == ["a", "b"]
    assert [len(r["session"]["steps"]) for r in rows] == [2, 1]
    assert rows[0]["session"]["info"]["resumed"] == 1
    folder = tmp_path / "out" / "a"
    assert (folder / "work" / "left").exists() and not (folder / "attempt-1").exists()


def test_a_stopped_task_that_changed_starts_over(tmp_path: Path) -> None:
    _stopped(Bench(tmp_path))
    again = Bench(tmp_path)
    (row,) = again.run(make_task("a", "another question"))
    (note,) = again.watching.notes
    assert "changed since it was started (_orig, task)" in note and note.endswith("attempt-1")
    assert len(row["session"]["steps"]) == 1 and "resumed" not in row["session"]["info"]
    folder = tmp_path / "out" / "a"
    assert (folder / "attempt-1" / "work" / "left").exists()
    assert (folder / "attempt-1" / "events.jsonl").exists()
    assert list((folder / "work").iterdir()) == []


def test_a_row_that_only_the_journal_has_is_written_without_a_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.rows.append = lambda row: _raise(KeyboardInterrupt())  # type: ignore[method-assign]
    task = make_task("a", "hello", answer="HELLO")
    with pytest.raises(KeyboardInterrupt):
        bench.run(task)
    assert bench.written() == []
    again = Bench(tmp_path)
    (row,) = again.run(task)
    assert again.watching.started_ids == [] and len(again.watching.outcomes) == 1
    assert row["eval"] == {"pred": "HELLO", "gold": "HELLO", "corr": 1}
    assert row_line(row_from_events(read_events(tmp_path / "out" / "a"))) == row_line(row)


@pytest.mark.parametrize("change", ["line removed", "task changed", "journal broken"])
def test_a_recorded_row_is_used_only_for_the_same_task(tmp_path: Path, change: str) -> None:
    Bench(tmp_path).run(make_task("a"))
    (tmp_path / "out.jsonl").write_text("")
    journal = tmp_path / "out" / "a" / "events.jsonl"
    *lines, last = journal.read_text().splitlines(keepends=True)
    assert '"kind":"row"' in last
    if change == "task changed":
        journal.write_text("".join(lines))
    elif change == "journal broken":
        journal.write_text("".join([*lines[:2], "}\n", *lines[2:]]))
    again = Bench(tmp_path)
    assert again.run(make_task("a", answer="new" if change == "task changed" else None))
    assert again.watching.started_ids == ["a"] and (tmp_path / "out" / "a" / "attempt-1").is_dir()
    expected = {"task changed": ["answer"], "journal broken": ["not usable"]}.get(change, [])
    assert len(again.watching.notes) == len(expected)
    assert all(part in note for part, note in zip(expected, again.watching.notes, strict=True))


def test_an_interrupt_passes_through_and_leaves_no_row(tmp_path: Path) -> None:
    def behaviour(call: Call) -> Any:
        raise KeyboardInterrupt

    bench = Bench(tmp_path, behaviour)
    with pytest.raises(KeyboardInterrupt):
        bench.run(make_task("a"))
    assert bench.written() == []


@pytest.mark.parametrize("error", [JournalError("full"), OutputError("full")])
def test_a_store_that_fails_ends_the_run(tmp_path: Path, error: Exception) -> None:
    bench = Bench(tmp_path)

    def behaviour(call: Call) -> Any:
        if call.task == "second":
            if isinstance(error, OutputError):
                bench.rows.append = lambda row: _raise(error)  # type: ignore[method-assign]
            else:
                raise error
        return "x"

    bench.runner.agent.behaviour = behaviour  # type: ignore[attr-defined]
    tasks = [make_task("a"), make_task("b", "second"), make_task("c")]
    with pytest.raises(OutputError, match="full"):
        bench.run(*tasks)
    assert [r["id"] for r in bench.written()] == ["a"]
    assert bench.watching.started_ids == ["a", "b"]


def _raise(error: BaseException) -> None:
    raise error


def test_an_outage_ends_the_run_and_a_transient_failure_does_not(tmp_path: Path) -> None:
    probes: list[str] = []

    def probe() -> None:
        probes.append("asked")
        if len(probes) == 2:
            raise BrowserServerError("gone")

    bench = Bench(tmp_path, lambda call: StopReason.ENVIRONMENT_FAILURE, probe=probe)
    with pytest.raises(BrowserServerError, match="gone"):
        bench.run(*[make_task(n) for n in "abc"])
    assert [r["id"] for r in bench.written()] == ["a"]


def test_a_task_in_progress_in_another_run_is_skipped(tmp_path: Path) -> None:
    inner: list[Bench] = []

    def behaviour(call: Call) -> str:
        if not inner:
            inner.append(Bench(tmp_path, lambda call: "other run"))
            inner[0].run(make_task("a"), make_task("b"))
        return "this run"

    bench = Bench(tmp_path, behaviour)
    rows = bench.run(make_task("a"), make_task("b"))
    assert [(r["id"], r["eval"]["pred"]) for r in rows] == [("b", "other run"), ("a", "this run")]
    assert inner[0].watching.notes == ["a: skipped: in progress in another run"]
    assert bench.watching.started_ids == ["a"]


def test_workers_run_in_parallel(tmp_path: Path) -> None:
    meeting = threading.Barrier(4)

    def behaviour(call: Call) -> str:
        meeting.wait(60)  # passes only if four tasks run in parallel
        return call.task

    rows = Bench(tmp_path, behaviour, workers=4).run(*[make_task(f"t{n}") for n in range(8)])
    assert sorted(r["id"] for r in rows) == [f"t{n}" for n in range(8)]


def test_every_task_has_a_separate_budget(tmp_path: Path) -> None:
    budgets: list[Any] = []
    limits = {"max_steps": 3, "max_seconds": 60.0, "max_tokens": 100, "max_money": 1.0}
    bench = Bench(tmp_path, lambda call: budgets.append(call.budget), **limits)
    bench.run(make_task("a"), make_task("b"))
    one, two = (b.snapshot() for b in budgets)
    assert {k: one[k] for k in limits} == limits and one["steps"] == two["steps"] == 1


def test_a_folder_that_cannot_be_created_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(OutputError, match="but a file has that name; move it"):
        Bench(tmp_path)
