"""Limits of a whole run, and further attempts after faults of the infrastructure."""

import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, make_task
from runner_bench import Bench

from ck_main.runner.limits import RunBudget, RunLimits, TaskBudget
from ck_pro import MultiStepAgent
from ck_pro.exceptions import Cancelled
from ck_pro.model import Budget, Usage
from ck_pro.session import Status, StopReason
from ck_pro.testing import ScriptedLLM

ABC = [make_task(n) for n in "abc"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (RunLimits(max_steps=2), "2 steps, --run-max-steps is 2"),
        (RunLimits(max_tokens=10), "14 tokens, --run-max-tokens is 10"),
        (RunLimits(max_money=0.5), "0.5000 USD, --run-max-money is 0.5"),
    ],
)
def test_a_run_at_its_limit_starts_no_new_task(
    tmp_path: Path, limits: RunLimits, said: str
) -> None:
    bench = Bench(tmp_path, run=limits)
    assert [r["id"] for r in bench.run(*ABC)] == ["a", "b"]
    assert bench.runner.limit == f"a limit of the whole run is reached ({said})"
    again = Bench(tmp_path, run=limits)
    assert [r["id"] for r in again.run(*ABC)] == ["a", "b", "c"]


def test_a_task_in_progress_is_cancelled_without_a_row() -> None:
    budget = RunBudget(RunLimits(max_tokens=100))
    task = Budget(max_tokens=1000, parent=budget)
    task.charge(Usage(99, 0, 0), 0.0)
    task.check()
    task.charge(Usage(1, 0, 0), 0.0)
    with pytest.raises(Cancelled, match="--run-max-tokens is 100"):
        task.check()
    assert RunBudget().used_up() is None


def test_usage_of_an_earlier_command_counts_only_for_the_task() -> None:
    run = RunBudget(RunLimits(max_tokens=100))
    task = TaskBudget(parent=run)
    attempt = TaskBudget(max_tokens=1000, parent=task)
    attempt.carry(3, 60.0, iter([(Usage(500, 0, 0), 0.5)]))
    attempt.charge(Usage(10, 0, 0), 0.25)
    attempt.check()
    assert [b.snapshot()["tokens"] for b in (attempt, task, run)] == [510, 510, 10]
    assert [b.snapshot()["steps"] for b in (attempt, task, run)] == [3, 3, 0]


def test_the_time_limit_of_the_run_is_not_a_timeout_of_a_call() -> None:
    clock, stop = Clock(), threading.Event()
    budget = RunBudget(RunLimits(max_seconds=50), clock)
    assert Budget(parent=budget).remaining_seconds() is None and budget.used_up() is None
    clock.now = 50.0
    assert "50.0 s, --run-max-seconds is 50" in (budget.used_up() or "")
    with budget.stopping(stop):
        assert stop.wait(60)


def test_the_time_limit_of_the_run_leaves_the_task_in_progress(tmp_path: Path) -> None:
    def behaviour(call: Call) -> StopReason:
        assert call.cancel.wait(60)
        clock.now = 1.0
        return StopReason.CANCELLED

    bench, clock = Bench(tmp_path, behaviour), Clock()
    bench.runner.budget = RunBudget(RunLimits(max_seconds=0.05), clock)
    assert bench.run(*ABC) == [] and bench.watching.started_ids == ["a"]
    assert "--run-max-seconds is 0.05" in (bench.runner.limit or "")


def test_a_real_agent_stays_in_progress(tmp_path: Path) -> None:
    model = ScriptedLLM(["Thought: no code.", "Thought: no code."])
    agent = MultiStepAgent(name="plain", model=model, templates={"plan": None})
    budget = Budget(parent=RunBudget(RunLimits(max_steps=1)))
    session = agent.run("x", budget=budget, workdir=tmp_path)
    assert session.status is Status.IN_PROGRESS and len(session.steps) == 1
    assert session.stop_reason is StopReason.CANCELLED and "--run-max-steps" in session.message


def failing(*ends: Any) -> Any:
    left = list(ends)
    return lambda call: left.pop(0)


def test_an_infrastructure_failure_is_retried(tmp_path: Path) -> None:
    ends = failing(StopReason.ENVIRONMENT_FAILURE, StopReason.INTERNAL_ERROR, "fine")
    bench = Bench(tmp_path, ends, retries=2)
    (row,) = bench.run(make_task("a"))
    info = row["session"]["info"]
    assert info["attempts"] == 3 and row["eval"]["pred"] == "fine"
    assert info["earlier_faults"] == [
        "environment_failure: it was environment_failure",
        "internal_error: it was internal_error",
    ]
    assert [n.partition("; ")[2] for n in bench.watching.notes] == [
        "retrying (attempt 2 of 3)",
        "retrying (attempt 3 of 3)",
    ]
    folder = tmp_path / "out" / "a"
    assert (folder / "attempt-1").is_dir() and (folder / "attempt-2").is_dir()
    assert bench.watching.outcomes[0].money == 0.75  # of all attempts


@pytest.mark.parametrize(
    "reason", [StopReason.STEPS, StopReason.STUCK, StopReason.MODEL_FAILURE, StopReason.REJECTED]
)
def test_other_failures_are_not_retried(tmp_path: Path, reason: StopReason) -> None:
    bench = Bench(tmp_path, failing(reason), retries=2)
    (row,) = bench.run(make_task("a"))
    assert row["session"]["info"]["attempts"] == 1 and not bench.watching.notes


@pytest.mark.parametrize(
    ("error", "attempts"),
    [("ModelUnavailable: 503", 2), ("ModelRefused: key", 1), ("ReplayError: none", 1)],
)
def test_a_model_that_could_not_be_reached(tmp_path: Path, error: str, attempts: int) -> None:
    def behaviour(call: Call) -> Any:
        if call.info and call.info["attempts"] > 1:
            return "fine"
        call.record("model_failed", {"error": error}, "action")
        return StopReason.MODEL_FAILURE

    bench = Bench(tmp_path, behaviour, retries=2, probe=lambda: None)
    (row,) = bench.run(make_task("a"))
    assert row["session"]["info"]["attempts"] == attempts


def test_the_row_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda call: StopReason.ENVIRONMENT_FAILURE, retries=1)
    (row,) = bench.run(make_task("a"))
    assert row["session"]["info"]["stop_reason"] == "environment_failure"
    assert row["session"]["info"]["attempts"] == 2


def test_no_further_attempt_while_stopping(tmp_path: Path) -> None:
    bench = Bench(tmp_path, retries=3)

    def behaviour(call: Call) -> StopReason:
        bench.stop.set()
        return StopReason.ENVIRONMENT_FAILURE

    bench.runner.agent.behaviour = behaviour  # type: ignore[attr-defined]
    assert bench.run(make_task("a")) == []
    assert bench.watching.notes == ["a: stopped before it ended; repeat the command to resume it"]
