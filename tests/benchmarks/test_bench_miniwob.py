"""The conformance suite: its table, and two of its tasks in a real browser."""

from __future__ import annotations

import importlib.metadata

import pytest


def test_the_table_counts_full_rewards_only() -> None:
    from benchmarks.miniwob import suite

    task = suite.Result("drag", [suite.Episode(1, 1.0, 3), suite.Episode(2, 0.9, 5, 0.0, "near")])
    lines = suite.table([task]).split("\n")
    assert "1/2" in lines[1] and "0.95" in lines[1] and "near (seed 2)" in lines[1]
    assert lines[-1] == "1/2 episodes (50.0%), 0/1 tasks without a failure"


def test_more_than_a_hundred_tasks_have_a_documented_policy() -> None:
    from benchmarks.miniwob import suite

    assert len(suite.POLICIES) >= 100
    assert all(function.__doc__ for function in suite.POLICIES.values())


@pytest.mark.browser
@pytest.mark.slow
def test_policies_succeed_in_a_real_browser() -> None:
    from benchmarks.miniwob import suite

    try:
        importlib.metadata.distribution("miniwob")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the pages of MiniWoB++ are not installed")
    results = suite.run(["click-tab-2", "read-table"], range(1, 2), at_once=1)
    assert [(r.task, r.successes) for r in results] == [("click-tab-2", 1), ("read-table", 1)]


@pytest.mark.browser
@pytest.mark.slow
def test_the_result_shows_a_wrong_policy_and_an_error_in_a_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from benchmarks.miniwob import suite

    try:
        importlib.metadata.distribution("miniwob")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the pages of MiniWoB++ are not installed")

    def wrong(world: suite.World) -> None:
        world.click_named("TWO" if "ONE" in world.task else "ONE", "button")

    def broken(world: suite.World) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setitem(suite.POLICIES, "click-test-2", wrong)
    monkeypatch.setitem(suite.POLICIES, "click-test", broken)
    first, second = suite.run(["click-test-2", "click-test"], range(1, 2), at_once=1)
    assert first.episodes[0].reward == -1 and first.successes == 0
    assert second.episodes[0].reward is None
    assert second.episodes[0].problem == "error in the policy: ZeroDivisionError: no"
