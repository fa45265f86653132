"""Several tries of a task: until right, with advice, or a choice; stopped and resumed."""

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent, Watching, make_task
from hypothesis import given
from hypothesis import strategies as st

from ck_main.output.row_file import RowFile
from ck_main.runner.choosing import TryOptions, chosen, group_equal
from ck_main.runner.judging import with_advice
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.scoring.judge import parse_verdict
from ck_main.tasks.dataset import Task
from ck_pro.exceptions import ConfigError, ModelUnavailable, ParseError
from ck_pro.run.sampling import parse_choice
from ck_pro.session import StopReason
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory.reading.attempts import tries_of


class Bench:
    """A runner of several tries, whose agent answers by a script."""

    def __init__(self, folder: Path, answers: Any, model: Any = (), **options: Any):
        self.rows, self.folder = RowFile(folder / "out.jsonl"), folder
        self.watching, self.stop = Watching(), threading.Event()
        self.calls: list[Call] = []
        self.answers: Callable[[int], Any] = (
            answers if callable(answers) else lambda n: answers[n - 1]
        )
        self.model = ScriptedLLM(model)
        agent = FakeAgent(behaviour=self.behave, model=self.model)
        tries = TryOptions(**{"tries": 3, **options})
        self.runner = TaskRunner(
            agent, self.rows, RunOptions(tries=tries), self.watching, self.stop
        )

    def behave(self, call: Call) -> Any:
        self.calls.append(call)
        return self.answers(call.session.info["try"]["number"])

    def run(self, *tasks: Task) -> list[dict[str, Any]]:
        try:
            self.runner.run(tasks)
        finally:
            self.rows.close()
        return lines(self.rows.path)

    def others(self) -> list[dict[str, Any]]:
        return lines(self.folder / "out.tries.jsonl")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def task(answer: str | None = "right", name: str = "a") -> Task:
    return make_task(name, "What is it?", answer=answer)


def test_until_the_answer_is_right(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["wrong", StopReason.STEPS, "right"], until="em", seeds=(7, 8, 9))
    (row,) = bench.run(task())
    assert row["eval"] == {"pred": "right", "gold": "right", "corr": 1}
    assert (row["sel_aggr"], row["sel_idx"]) == ("em", 2)
    assert [c["seed"] for c in row["sel_cands"]] == [7, 8, 9]
    assert [c["output"] for c in row["sel_cands"]] == ["wrong", "", "right"]
    assert row["session"]["info"]["try"] == {"number": 3, "seed": 9}
    failed = row["previous_failed_sessions"]
    assert [f["eval"]["corr"] for f in failed] == [0, 0] and not bench.others()
    (outcome,) = bench.watching.outcomes
    assert (outcome.tries, outcome.tokens, outcome.money) == (3, 21, 0.75)
    assert [e["number"] for _, e in bench.watching.events if e["kind"] == "try_ended"] == [1, 2, 3]
    # what exports read of it
    assert [t.score for t in tries_of("", row)] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("until", "made"), [("em", 1), ("stop_with_answer", 2)])
def test_until_ends_the_tries(tmp_path: Path, until: str, made: int) -> None:
    answers = {"em": ["right"], "stop_with_answer": [StopReason.TIME, "any", "more"]}[until]
    bench = Bench(tmp_path, answers, until=until)
    (row,) = bench.run(task())
    assert len(row["sel_cands"]) == made == len(bench.calls)
    assert ("previous_failed_sessions" in row) is (made > 1)


def test_without_a_right_answer_em_accepts_any_answer(tmp_path: Path) -> None:
    (row,) = Bench(tmp_path, ["", "x"], until="em").run(task(answer=None))
    assert (row["sel_idx"], row["eval"]["corr"]) == (1, None)


def test_of_tries_that_all_fail_the_last_counts(tmp_path: Path) -> None:
    (row,) = Bench(tmp_path, ["a", "b", "c"], until="em").run(task())
    assert row["eval"]["pred"] == "c" and len(row["previous_failed_sessions"]) == 2


def test_a_judge_decides_and_its_calls_are_counted(tmp_path: Path) -> None:
    model = ["Not so. Verdict: wrong", "It is.\n**Verdict:** right"]
    bench = Bench(tmp_path, ["a", "b"], model, until="llm_judge")
    (row,) = bench.run(task())
    assert (row["eval"]["judge"], row["eval"]["judge_reason"]) == (1, "It is.")
    info = row["session"]["info"]
    assert info["call_stat"]["judge"]["__ALL__"]["llm_call"] == 1
    (call,) = row["session"]["steps"][-1]["action"]["model_calls"]
    assert call["phase"] == "tool:judge" and "right" in str(call["llm_input"])
    first = row["previous_failed_sessions"][0]
    assert first["eval"]["judge"] == 0 and first["eval"]["corr"] == 0
    assert bench.runner.budget.snapshot()["llm_call"] == 4


def test_advice_goes_into_the_next_try(tmp_path: Path) -> None:
    model = ["Count again.", "Look closer."]
    bench = Bench(tmp_path, ["a", "b", "right"], model, until="em", reflect=True)
    (row,) = bench.run(task())
    assert row["task"] == "What is it?" and row["feedback"] == "Count again.\nLook closer."
    asked = [c.task for c in bench.calls]
    assert asked[0] == "What is it?" and "Count again." in asked[1] and "'a'" in asked[1]
    assert "Count again." in asked[2] and "Look closer." in asked[2]
    assert row["session"]["task"] == asked[2]
    assert [f["eval"]["feedback"] for f in row["previous_failed_sessions"]] == model
    # the advice does not contain the right answer
    assert not any("right" in str(c.messages) for c in bench.model.calls)


@pytest.mark.parametrize(
    ("choose", "answers", "model", "taken", "how"),
    [
        ("first", ["", "b", "c"], [], 1, "first"),
        ("vote", ["x", "1,000", "1000"], [], 1, "vote"),
        ("vote", ["x", "y", "z"], [], 0, "vote"),
        ("vote", [StopReason.STEPS] * 3, [], 0, "vote"),
        ("judge", ["x", "y", "X"], ["Better. Choice: 2"], 1, "judge"),
        ("judge", ["x", "y", "X"], ["I cannot say"], 0, "vote"),
        ("judge", ["x", "X", "x."], [], 0, "judge"),
    ],
)
def test_a_choice(
    tmp_path: Path, choose: str, answers: list[Any], model: list[str], taken: int, how: str
) -> None:
    bench = Bench(tmp_path, answers, model, choose=choose)
    (row,) = bench.run(task())
    assert (row["sel_idx"], row["sel_aggr"]) == (taken, how)
    others = bench.others()
    assert len(others) == 2 and "previous_failed_sessions" not in row
    ids = [f"a/try-{n}-{row['sel_cands'][n - 1]['session'][:8]}" for n in (1, 2, 3)]
    assert [o["id"] for o in others] == [i for n, i in enumerate(ids) if n != taken]
    assert all(t.group == tries_of("", row)[0].group for o in others for t in tries_of("", o))
    assert len(bench.model.calls) == len(model)


def test_unreadable_replies_of_all_tries_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["right"] * 3, choose="first")
    answer = bench.answers

    def unreadable_once(number: int) -> Any:
        bench.calls[-1].record("unreadable", {"error": "no code"}, "plan")
        return answer(number)

    bench.answers = unreadable_once
    (row,) = bench.run(task())
    assert [c["unreadable"] for c in row["sel_cands"]] == [{"plan": 1}] * 3
    assert row["session"]["info"]["unreadable"] == {"plan": 1}
    (outcome,) = bench.watching.outcomes
    assert outcome.unreadable == {"plan": 3}


def test_a_stopped_task_resumes_with_the_remaining_tries(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda n: _stop(bench) if n == 2 else "x", choose="vote")
    assert bench.run(task()) == []
    again = Bench(tmp_path, ["no", "y", "y"], choose="vote")
    (row,) = again.run(task())
    assert [c["output"] for c in row["sel_cands"]] == ["x", "y", "y"]
    assert len(again.calls) == 2 and row["eval"]["pred"] == "y"
    assert lines(tmp_path / "out" / "a" / "try-1" / "events.jsonl")[-1]["kind"] == "row"


def _stop(bench: Bench) -> StopReason:
    bench.stop.set()
    return StopReason.CANCELLED


@pytest.mark.parametrize("seed", [2, 5])
def test_an_interrupted_try_is_resumed_if_it_is_still_needed(tmp_path: Path, seed: int) -> None:
    how: dict[str, Any] = {"tries": 2, "choose": "vote"}
    bench = Bench(tmp_path, lambda n: _stop(bench) if n == 2 else "x", seeds=(1, 2), **how)
    assert bench.run(task()) == []
    (row,) = Bench(tmp_path, ["x", "x"], seeds=(1, seed), **how).run(task())
    second = tmp_path / "out" / "a" / "try-2"
    assert (second / "attempt-1").exists() is (seed == 5)
    assert row["sel_cands"][1]["seed"] == seed


def test_killed_before_the_row_nothing_is_tried_again(tmp_path: Path) -> None:
    def killed(row: Any) -> None:
        raise KeyboardInterrupt

    bench = Bench(tmp_path, ["x", "y", "y"], choose="vote")
    bench.rows.append = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.run(task())
    again = Bench(tmp_path, [], choose="vote")
    (row,) = again.run(task())
    assert not again.calls and row["sel_idx"] == 1 and len(again.others()) == 2


@pytest.mark.parametrize("change", ["seeds", "row removed", "fewer"])
def test_tries_that_do_not_belong_to_the_run_are_moved_aside(tmp_path: Path, change: str) -> None:
    def killed(row: Any) -> None:
        raise KeyboardInterrupt

    bench = Bench(tmp_path, ["x", "y", "y"], choose="vote", seeds=(1, 2, 3))
    if change != "row removed":
        bench.rows.append = killed  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            bench.run(task())
    else:
        bench.run(task())
        bench.rows.path.write_text("")
    options: dict[str, Any] = {"seeds": (1, 2, 3)}
    if change == "seeds":
        options = {"seeds": (1, 5, 3)}
    elif change == "fewer":
        options = {"tries": 2, "seeds": (1, 2)}
    again = Bench(tmp_path, ["z", "z", "z"], choose="vote", **options)
    (row,) = again.run(task())
    made = {"seeds": [2, 3], "row removed": [1, 2, 3], "fewer": []}[change]
    assert [c.info["try"]["number"] for c in again.calls if c.info] == made
    left = {p.name for p in (tmp_path / "out" / "a").iterdir()}
    assert left >= {"attempt-1", "try-1", "try-2"} and len(row["sel_cands"]) == (
        2 if change == "fewer" else 3
    )


def test_an_unreachable_judge_ends_the_run_without_a_row(tmp_path: Path) -> None:
    def probe() -> None:
        raise ModelUnavailable("the judge is unreachable")

    bench = Bench(tmp_path, ["a", "b"], [ModelUnavailable("gone")], until="llm_judge")
    bench.runner.options = RunOptions(tries=bench.runner.options.tries, probe=probe)
    with pytest.raises(ModelUnavailable):
        bench.run(task())
    assert bench.rows.done == {}


def test_failed_advice_leaves_the_verdict(tmp_path: Path) -> None:
    model = ["No. Verdict: wrong", ModelUnavailable("busy"), "Yes. Verdict: right"]
    bench = Bench(tmp_path, ["a", "b"], model, until="llm_judge", reflect=True)
    (row,) = bench.run(task())
    first = row["previous_failed_sessions"][0]["eval"]
    assert (first["judge"], first["judge_reason"]) == (0, "No.") and "feedback" not in first
    assert "feedback" not in row and row["eval"]["judge"] == 1


def test_an_unreadable_verdict_does_not_end_the_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["a", "b", "c"], ["hm", "hm", "hm"], until="llm_judge")
    (row,) = bench.run(task())
    assert "judge" not in row["eval"] and row["eval"]["judge_reason"].startswith("not judged: ")
    assert [c["judge"] for c in row["sel_cands"]] == [None] * 3


def test_advice_follows_an_unreadable_verdict(tmp_path: Path) -> None:
    model = ["hm", "Look again.", "Yes. Verdict: right"]
    bench = Bench(tmp_path, ["a", "b"], model, until="llm_judge", reflect=True)
    (row,) = bench.run(task())
    assert row["feedback"] == "Look again." and row["eval"]["judge"] == 1


@given(st.text(), st.integers(1, 9))
def test_any_reply_of_a_judge_is_parsed_or_refused(text: str, number: int) -> None:
    for read in (lambda: parse_verdict(text), lambda: parse_choice(text, number)):
        with contextlib.suppress(ParseError):
            read()
    assert parse_verdict(f"{text}\nVerdict: wrong")[0] is False
    assert parse_choice(f"{text}\nChoice: {number}", number)[0] == number - 1


@given(st.lists(st.text(max_size=5), max_size=8))
def test_every_answer_is_in_one_group(answers: list[str]) -> None:
    groups = group_equal(answers, range(len(answers)))
    assert sorted(i for group in groups for i in group) == list(range(len(answers)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tries": 0}, "at least 1"),
        ({"tries": 3, "seeds": (1, 2)}, "2 for 3 tries"),
        ({"tries": 2, "seeds": (1, 1)}, "duplicate seed"),
        ({"tries": 2, "until": "luck"}, "not one of em"),
        ({"tries": 2, "choose": "luck"}, "not one of first"),
        ({"tries": 2, "until": "em", "choose": "vote"}, "give until or choose, not both"),
        ({"tries": 1, "until": "em"}, "more than one try"),
        ({"tries": 2, "reflect": True}, "needs until"),
    ],
)
def test_contradicting_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TryOptions(**options)


def test_reading_what_models_reply() -> None:
    assert parse_verdict("Verdict: wrong at first.\nverdict - RIGHT") == (
        True,
        "Verdict: wrong at first.",
    )
    assert parse_choice("Choice: 9, no.\nChoice: **2**", 3)[0] == 1
    for reply in ("", "Verdict: maybe", "right"):
        with pytest.raises(ParseError):
            parse_verdict(reply)
    for reply in ("", "Choice: 0", "Choice: 4", "Choice: 99999999999"):
        with pytest.raises(ParseError):
            parse_choice(reply, 3)
    assert with_advice("q", [("a", ""), ("b", "")]) == "q"
    assert group_equal(["1", "x", "1.0", "X"], [0, 1, 2, 3]) == [[0, 2], [1, 3]]
    with_text_choice = {
        "session": {"info": {"status": "done"}},
        "eval": {"pred": "x", "choice": "7"},
    }
    assert chosen([with_text_choice], TryOptions(tries=2, choose="judge")) == ("judge", 0)
