"""Which tasks a command runs: shards, reruns; the order of rows; limits of the run, at the end."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent, make_task
from hypothesis import given
from hypothesis import strategies as st
from job_desk import Desk
from main_command import run

from ck_main.cli.job import Job
from ck_main.output.row_file import RowFile
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.runner.task_folder import claimed
from ck_pro.command_line import ExitCode
from ck_pro.exceptions import OutputError
from ck_pro.session import StopReason

pytestmark = pytest.mark.integration

FOUR = [{"id": n, "question": n, "answer": n.upper()} for n in "abcd"]


@pytest.fixture
def agent(tmp_path: Path) -> FakeAgent:
    (tmp_path / "replies.jsonl").write_text("")
    return FakeAgent(model=f"replay:{tmp_path / 'replies.jsonl'}")


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


@given(st.integers(0, 12), st.integers(1, 5), st.one_of(st.none(), st.integers(1, 9)))
def test_shards_are_disjoint_and_together_all(number: int, of: int, limit: int | None) -> None:
    tasks = [make_task(f"t{n}") for n in range(number)]
    shards = [
        [t.id for t in Job(Path("o"), limit=limit, shard=(i, of)).selected(iter(tasks))]
        for i in range(1, of + 1)
    ]
    together = [name for shard in shards for name in shard]
    assert len(together) == len(set(together)) and max(map(len, shards)) - min(map(len, shards)) < 2
    assert sorted(together) == sorted(t.id for t in tasks[:limit])


def test_two_shards_into_one_output(tmp_path: Path, agent: FakeAgent) -> None:
    desk = Desk(tmp_path, FOUR)
    assert desk.run(agent, shard=(2, 2)) is ExitCode.DONE
    assert desk.ids() == ["b", "d"] and "2 tasks, 2 of 2 scored" in desk.table()
    desk.run(agent, shard=(1, 2), in_order=True)
    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert [status[k] for k in ("total", "earlier", "done", "left")] == [2, 0, 2, 0]
    assert desk.ids() == ["a", "c", "b", "d"]  # its own in order, the others after them
    desk.run(agent, in_order=True)
    assert desk.ids() == ["a", "b", "c", "d"]


def test_rows_in_the_order_of_the_file(tmp_path: Path, agent: FakeAgent) -> None:
    first = threading.Event()

    def behaviour(call: Call) -> str:
        if call.task == "a":
            assert first.wait(60)
        elif call.task == "d":
            first.set()
        return call.task.upper()

    agent.behaviour = behaviour
    desk = Desk(tmp_path, FOUR)
    code = desk.run(agent, in_order=True, options=RunOptions(workers=2))
    assert code is ExitCode.DONE and desk.ids() == ["a", "b", "c", "d"]


def wrong_and_failed(call: Call) -> Any:
    return {"b": "wrong", "c": StopReason.STEPS}.get(call.task, call.task.upper())


@pytest.mark.parametrize(
    ("kinds", "again"), [({"failed"}, "c"), ({"wrong"}, "bc"), ({"failed", "wrong"}, "bc")]
)
def test_a_rerun(tmp_path: Path, agent: FakeAgent, kinds: set[str], again: str) -> None:
    agent.behaviour = wrong_and_failed
    Desk(tmp_path, FOUR).run(agent)
    old = tmp_path / "out.superseded.jsonl"
    before = {json.loads(x)["id"]: x for x in (tmp_path / "out.jsonl").read_text().splitlines()}
    agent.behaviour = None
    desk = Desk(tmp_path, FOUR)
    desk.run(agent, rerun=frozenset(kinds))
    assert f"{len(again)} rows moved to {old}" in desk.said()
    assert old.read_text().splitlines() == [before[i] for i in again]
    assert desk.ids() == [i for i in "abcd" if i not in again] + list(again)
    assert all((tmp_path / "out" / i / "attempt-1" / "events.jsonl").exists() for i in again)
    desk.run(agent, rerun=frozenset(kinds))  # nothing of that kind is left, or it was judged again
    assert sorted(desk.ids()) == list("abcd")


def test_a_stopped_rerun_is_resumed(tmp_path: Path, agent: FakeAgent) -> None:
    agent.behaviour = lambda call: "wrong"
    Desk(tmp_path, FOUR).run(agent)

    def stopped(call: Call) -> Any:
        if call.task == "c":
            raise KeyboardInterrupt
        return "still wrong"

    agent.behaviour = stopped
    desk = Desk(tmp_path, FOUR)
    assert desk.run(agent, rerun=frozenset({"wrong"})) is ExitCode.STOPPED
    assert desk.ids() == ["a", "b"]
    ran: list[str] = []
    agent.behaviour = lambda call: ran.append(call.task) or "still wrong"
    assert desk.run(agent, rerun=frozenset({"wrong"})) is ExitCode.DONE
    assert "2 tasks of an earlier --rerun have no row yet; resuming it" in desk.said()
    assert ran == ["c", "d"] and desk.ids() == ["a", "b", "c", "d"]
    assert ids(tmp_path / "out.superseded.jsonl") == ["a", "b", "c", "d"]


def test_a_rerun_that_cannot_start_moves_no_rows(tmp_path: Path, agent: FakeAgent) -> None:
    agent.behaviour = lambda call: "wrong"
    Desk(tmp_path, FOUR).run(agent)
    (tmp_path / "replies.jsonl").unlink()
    with pytest.raises(Exception, match="cannot read the recording"):
        Desk(tmp_path, FOUR).run(agent, rerun=frozenset({"wrong"}))
    assert Desk(tmp_path, FOUR).ids() == list("abcd")


def test_a_rerun_leaves_tasks_in_progress_in_another_run(tmp_path: Path, agent: FakeAgent) -> None:
    agent.behaviour = lambda call: "wrong"
    Desk(tmp_path, FOUR).run(agent)
    desk = Desk(tmp_path, FOUR)
    with claimed(tmp_path / "out" / "b") as locked:
        assert locked
        desk.run(agent, rerun=frozenset({"wrong"}))
    assert desk.ids() == ["b", "a", "c", "d"]


def test_a_rerun_that_cannot_write_the_old_rows_keeps_them(
    tmp_path: Path, agent: FakeAgent
) -> None:
    agent.behaviour = lambda call: "wrong"
    Desk(tmp_path, FOUR).run(agent)
    (tmp_path / "out.superseded.jsonl").write_text("no row\n")
    with pytest.raises(OutputError, match="is not an output row"):
        Desk(tmp_path, FOUR).run(agent, rerun=frozenset({"wrong"}))
    assert Desk(tmp_path, FOUR).ids() == list("abcd")


def test_a_limit_of_the_run_is_reported_and_repeating_the_command_resumes(
    tmp_path: Path, agent: FakeAgent
) -> None:
    desk, options = Desk(tmp_path, FOUR), RunOptions(run=RunLimits(max_tokens=14))
    assert desk.run(agent, options=options) is ExitCode.LIMIT
    assert "a limit of the whole run is reached (14 tokens, --run-max-tokens is 14)" in desk.said()
    assert "2 of 4 tasks, 2 not run" in desk.table()
    assert json.loads((tmp_path / "out" / "status.json").read_text())["state"] == "limit"
    assert desk.run(agent, options=options) is ExitCode.DONE
    assert desk.ids() == list("abcd")
    assert json.loads((tmp_path / "out" / "status.json").read_text())["state"] == "done"


def test_two_runs_and_a_sort_lose_nothing(tmp_path: Path, agent: FakeAgent) -> None:
    rows = [{"id": f"t{n}", "question": f"t{n}"} for n in range(12)]
    desks = [Desk(tmp_path, rows) for _ in range(2)]

    def work(desk: Desk) -> None:
        desk.run(agent, in_order=True, options=RunOptions(workers=2))

    threads = [threading.Thread(target=work, args=(desk,)) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with RowFile(tmp_path / "out.jsonl") as file:
        assert sorted(file.done) == sorted(r["id"] for r in rows)
    assert len(ids(tmp_path / "out.jsonl")) == 12


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--shard", "0/4"], "'0/4' is not a shard"),
        (["--shard", "5/4"], "'5/4' is not a shard"),
        (["--shard", "x"], "'x' is not a shard"),
        (["--shard", "\u0661/\u0662"], "is not a shard"),
        (["--seeds", "1,,2"], "not a list of whole numbers"),
        (["--seeds", "-1"], "not a list of whole numbers"),
        (["--tries", "3", "--seeds", "1,2"], "--seeds: give 3 different seeds"),
        (["--tries", "2", "--seeds", "1,1"], "--seeds: give 2 different seeds"),
        (["--until", "em"], "need --tries K"),
        (["--tries", "2", "--until", "luck"], "'luck' is not one of"),
        (["--tries", "2", "--reflect"], "--reflect needs --until"),
        (
            ["--tries", "2", "--until", "em", "--choose", "vote"],
            "give --until or --choose, not both",
        ),
        (
            ["--tries", "2", "--choose", "judge", "--judge-model", "gtp:x"],
            "--judge-model: call_target 'gtp:x'",
        ),
        (["--judge-model", "gpt:x"], "--judge-model is unused: add --until llm_judge"),
        (["--tries", "2", "--choose", "vote", "--judge-model", "gpt:x"], "--judge-model is unused"),
        (["--run-max-money", "nan"], "not a finite number"),
        (["--retries", "-1"], "--retries"),
        (["--metrics", "99999"], "--metrics"),
        (["--rerun", "right"], "'right' is not one of"),
    ],
)
def test_contradicting_options_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    files = ["-i", tmp_path / "t", "-o", tmp_path / "o", "-m", "replay:x"]
    code, out, err = run(capsys, *files, *args)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1


def test_options_of_files_need_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    given_ = ["--shard", "1/2", "--rerun", "wrong", "--run-max-tokens", "5", "--order", "input"]
    code, _, err = run(capsys, "-t", "x", *given_)
    assert code == 2
    assert "--shard, --rerun, --order, --run-max-tokens: need --input, a file of tasks" in err
