"""Summaries and comparisons of outputs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from analysis_rows import row, session, step, write_rows
from hypothesis import given
from hypothesis import strategies as st

from ck_main.analysis.comparison import Comparison, compare
from ck_main.analysis.facts import DEFAULT_BY, read_runs
from ck_main.analysis.summary import Summary, analyse


def summary(tmp_path: Path, rows: list[Any], by: tuple[str, ...] = DEFAULT_BY) -> Summary:
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
    return analyse("x", read_runs([write_rows(file, rows)], by))


def compared(tmp_path: Path, a: list[Any], b: list[Any]) -> Comparison:
    return compare(summary(tmp_path, a), summary(tmp_path, b))


def test_scores_are_given_overall_and_by_level_agent_and_tag(tmp_path: Path) -> None:
    sub = session([step()], agent="web_agent")
    rows = [
        row("a", 1, original={"Level": 1, "tags": ["web", "long"]}),
        row("b", 0, original={"info": {"level": 2}, "tags": ["web"]}),
        row("c", None, original={"Level": "1"}, gold=None),
        row("d", 1, original={"Level": 10}, made=session([step(sub_sessions=[sub])], output="x")),
    ]
    found = summary(tmp_path, rows)
    assert (found.overall.tasks, found.overall.scored, found.overall.right) == (4, 3, 2)
    assert found.overall.interval is not None and found.overall.interval.method == "wilson"
    groups = {(g.name, g.label): (g.tasks, g.right) for g in found.groups}
    assert groups == {
        **{("level", "1"): (2, 1), ("level", "2"): (1, 0), ("level", "10"): (1, 1)},
        **{("agent", "ck_agent"): (4, 2), ("sub_agent", "web_agent"): (1, 1)},
        **{("sub_agent", "(none)"): (3, 1), ("tag", "web"): (2, 1), ("tag", "long"): (1, 1)},
        ("tag", "(none)"): (2, 1),
    }
    assert [g.label for g in found.groups if g.name == "level"] == ["1", "2", "10"]


def test_any_field_of_the_task_or_path_of_the_row_is_a_group(tmp_path: Path) -> None:
    rows = [row("a", 1, original={"Source": "x"}), row("b", 0, original={"Source": "y"})]
    found = summary(tmp_path, rows, ("source", "session.info.status", "missing"))
    assert [(g.name, g.label) for g in found.groups] == [
        *(("source", "x"), ("source", "y"), ("session.info.status", "done"))
    ]


def test_partial_scores_get_a_bootstrap_interval(tmp_path: Path) -> None:
    found = summary(tmp_path, [row(str(n), n / 10) for n in range(11)])
    interval = found.overall.interval
    assert interval is not None and interval.method == "bootstrap"
    assert interval.value == pytest.approx(0.5)
    assert interval.low < 0.4 and interval.high > 0.6
    assert found.overall.right == 1


def test_costs_are_summed_over_all_agents_and_tries(tmp_path: Path) -> None:
    sub = session([step(tokens=40)], agent="web_agent")
    one = row("a", 1, made=session([step(sub_sessions=[sub, sub]), step()], output="x"))
    failed = session([step(tokens=1000)], output="no", key="first")
    one["previous_failed_sessions"] = [{"session": failed, "eval": {"corr": 0}}]
    found = summary(tmp_path, [one])
    totals = {name: d.total for name, d in found.distributions.items()}
    assert totals["steps"] == 4 and totals["calls"] == 4
    assert totals["tokens"] == 110 + 110 + 50 + 1010
    assert totals["money"] == pytest.approx(0.004)
    assert totals["seconds"] == 4.0
    assert totals["cached_tokens"] == 50 + 50 + 20 + 500
    assert found.cached_share == 0.5


def test_what_is_unknown_for_a_call_is_unknown_for_the_task(tmp_path: Path) -> None:
    guessed = step(llm_info={"usage": {"prompt_tokens": 9, "cached_tokens": 0, "estimated": True}})
    rows = [row("a", made=session([step(), guessed])), row("b", made=session([step()]))]
    found = summary(tmp_path, rows)
    assert found.distributions["money"].n == found.distributions["cached_tokens"].n == 1
    assert found.cached_share == 0.5


def test_the_tries_of_a_row_give_pass_at_k(tmp_path: Path) -> None:
    rows = []
    for name, scores in (("a", [1, 0, 0]), ("b", [1, 1, 1]), ("c", [0, 0, 0])):
        cands = [{"corr": s, "steps": 2, "tokens": 10, "seconds": 1.0} for s in scores]
        rows.append(row(name, scores[0], sel_cands=cands, sel_aggr="vote", sel_idx=0))
    found = summary(tmp_path, rows)
    assert [t.k for t in found.tries] == [1, 2, 3]
    assert found.tries[0].any_right == pytest.approx(4 / 9)
    assert found.tries[0].all_right == pytest.approx(4 / 9)
    assert found.tries[1].any_right == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.tries[2].all_right == pytest.approx(1 / 3)
    assert found.distributions["tokens"].total == 90
    assert "calls" not in found.distributions  # unknown for the other tries


def test_tries_that_end_at_success_are_no_sample_of_equal_tries(tmp_path: Path) -> None:
    rows = []
    for name, scores in (("a", [1]), ("b", [0, 1]), ("c", [0, 0, 0])):
        cands = [{"corr": s, "steps": 1, "tokens": 1, "seconds": 1.0} for s in scores]
        rows.append(row(name, scores[-1], sel_cands=cands, sel_aggr="em"))
    found = summary(tmp_path, rows)
    assert found.stopped_early
    assert [t.any_right for t in found.tries] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert {t.all_right for t in found.tries} == {None}


def test_rows_with_one_id_are_tries_of_one_task(tmp_path: Path) -> None:
    rows = [row("a", 1), row("a", 0), row("b", 0), row("b", 0)]
    rows[1]["id"] = "a/try-2-0123abcd"
    found = summary(tmp_path, rows)
    assert len(found.tasks) == 2
    assert [t.score for t in found.tasks] == [0.5, 0.0]
    assert found.tries[1].any_right == 0.5


def test_a_clear_difference_is_not_noise(tmp_path: Path) -> None:
    a = [row(str(n), int(n < 4)) for n in range(30)]
    b = [row(str(n), int(n < 18)) for n in range(30)]
    found = compared(tmp_path, a, b)
    assert (found.only_a_right, found.only_b_right) == (0, 14)
    assert found.p == pytest.approx(2 * 0.5**14) and found.significant
    assert found.sentence == (
        "B is 46.7 points better than A (13.3 % -> 60.0 % on 30 tasks; 95 % interval +25.5 to "
        "+62.0; exact McNemar test, p < 0.001): the difference is probably not noise."
    )


def test_a_small_difference_may_be_noise_and_few_tasks_cannot_show_more(tmp_path: Path) -> None:
    a = [row(str(n), int(n < 6)) for n in range(10)]
    b = [row(str(n), int(n < 8)) for n in range(10)]
    sentence = compared(tmp_path, a, b).sentence
    assert "20.0 points better" in sentence and "p = 0.50" in sentence
    assert "may be noise; only 2 tasks differ, and below 6" in sentence


def test_gains_and_losses_that_cancel_are_named(tmp_path: Path) -> None:
    a = [row(str(n), int(n < 5)) for n in range(10)]
    b = [row(str(n), int(0 < n < 6)) for n in range(10)]
    sentence = compared(tmp_path, a, b).sentence
    assert sentence.startswith("A and B have the same mean score, although 2 tasks differ (50.0 %")


def test_equal_scores_do_not_prove_equality(tmp_path: Path) -> None:
    rows = [row(str(n), 1) for n in range(10)]
    found = compared(tmp_path, rows, rows)
    assert "they may differ by up to about 16 points" in found.sentence
    assert all(r.interval and r.interval.value == 1 and not r.differs for r in found.ratios)


def test_partial_scores_are_compared_by_randomisation(tmp_path: Path) -> None:
    a = [row(str(n), 0.2 + n / 100) for n in range(20)]
    b = [row(str(n), 0.5 + n / 100) for n in range(20)]
    found = compared(tmp_path, a, b)
    assert found.test == "paired randomisation test" and found.significant
    assert found.adjusted is None and found.bootstrap is not None
    assert found.bootstrap.value == pytest.approx(0.3)


def test_only_common_tasks_are_compared(tmp_path: Path) -> None:
    a = [row("a", 1), row("b", 1), row("c", 0)]
    b = [row("b", 0), row("c", None, gold=None), row("d", 1)]
    found = compared(tmp_path, a, b)
    assert (found.tasks, found.scored) == (2, 1)
    assert (found.only_a, found.only_b) == (["a"], ["d"])
    none = compared(tmp_path, [row("a", 1)], [row("b", 1)])
    assert none.tasks == 0 and "no task in common" in none.sentence
    unscored = compared(tmp_path, [row("a", None, gold=None)], [row("a", 1)])
    assert "only the costs" in unscored.sentence


def test_tasks_without_a_common_id_are_matched_by_their_question(tmp_path: Path) -> None:
    a, b = row("a", 1), row("other", 0)
    b["task"] = a["task"]
    found = compared(tmp_path, [a], [b])
    assert (found.tasks, found.only_a_right) == (1, 1)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 1, 0.5, math.nan, math.inf]),
            st.sampled_from([None, 0, 3.5, math.nan, -1, 1e300]),
        ),
        max_size=6,
    )
)
def test_every_analysis_is_json(tmp_path_factory: pytest.TempPathFactory, cells: Any) -> None:
    folder = tmp_path_factory.mktemp("x")
    rows = [
        row(str(n), score, made=session(duration=seconds, key=str(n)))
        for n, (score, seconds) in enumerate(cells)
    ]
    found = summary(folder, rows)
    other = summary(folder, rows[1:])
    json.dumps([found.to_dict(), compare(found, other).to_dict()], allow_nan=False)
