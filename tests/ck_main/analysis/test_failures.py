"""The kind of a run's ending, and the step at which it went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from analysis_rows import row, session, step, write_rows
from hypothesis import given
from hypothesis import strategies as st

from ck_main.analysis.facts import RunFacts, read_runs
from ck_main.analysis.failures import KINDS
from ck_main.analysis.giving_up import gives_up


def run_of(
    tmp_path: Path, made: Any, score: float | None = 0, gold: str | None = "1984"
) -> RunFacts:
    file = write_rows(tmp_path / "a.jsonl", [row("t", score, gold=gold, made=made)])
    (found,) = read_runs([file])
    return found


@pytest.mark.parametrize(
    ("info", "score", "kind", "detail"),
    [
        ({}, 1, "right", ""),
        ({}, None, "no score", ""),
        ({}, 0, "wrong", ""),
        ({"output": ""}, 0, "gave up", "no answer"),
        ({"output": "Not available."}, 0, "gave up", "says so"),
        ({"output": "I could not find the year"}, 0, "gave up", "says so"),
        ({"status": "problem", "stop_reason": "rejected"}, 0, "gave up", "rejected"),
        ({"status": "problem", "stop_reason": "steps"}, 0, "limit", "steps"),
        ({"status": "problem", "stop_reason": "money"}, None, "limit", "money"),
        ({"status": "problem", "stop_reason": "stuck"}, 0, "limit", "stuck"),
        ({"status": "problem", "stop_reason": "model_failure"}, 0, "error", "model_failure"),
        (
            {"status": "problem", "stop_reason": "page_refused"},
            0,
            "blocked by page",
            "page_refused",
        ),
        ({"status": "human-intervention", "stop_reason": "human"}, 0, "person needed", "human"),
        ({"status": "sensitive-action", "stop_reason": "guard"}, 0, "person needed", "guard"),
        ({"status": "in_progress", "stop_reason": "cancelled"}, 0, "interrupted", "cancelled"),
        ({"status": "problem", "stop_reason": "new in a later version"}, 0, "error", None),
    ],
)
def test_the_kind_follows_from_score_status_and_stop_reason(
    tmp_path: Path, info: dict[str, Any], score: float | None, kind: str, detail: str | None
) -> None:
    ending = run_of(tmp_path, session(**{"output": "1983", **info}), score).ending
    assert ending.kind == kind
    assert detail is None or ending.detail == detail
    assert (ending.wrong is not None) == ending.failed


@pytest.mark.parametrize(
    "sign",
    [
        "HTTP status 403 at https://x.example",
        "the page shows a captcha or a similar test",
        "Access denied",
    ],
)
def test_a_page_that_blocks_the_last_steps_is_the_reason(tmp_path: Path, sign: str) -> None:
    stuck = session([step(), step(f"click: {sign}")], status="problem", stop_reason="steps")
    ending = run_of(tmp_path, stuck).ending
    assert (ending.kind, ending.detail) == ("blocked by page", "steps")
    assert sign.lower() in ending.evidence.lower()
    later = [step(sign), *(step(f"ok {n}") for n in range(4))]
    assert run_of(tmp_path, session(later, status="problem", stop_reason="steps")).ending.kind == (
        "limit"
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[0] alert 'HTTP status 403 at http://x.example/'", "blocked by page"),
        ("[3] heading 'Access Denied' level: 1", "blocked by page"),
        ("[1] RootWebArea 'Too many requests'", "blocked by page"),
        ("[0] alert 'HTTP status 404 at http://x.example/'", "gave up"),
        ("[4] StaticText 'HTTP status 403 means forbidden, access denied'", "gave up"),
    ],
)
def test_a_page_that_blocks_is_the_reason_of_giving_up(
    tmp_path: Path, line: str, kind: str
) -> None:
    page = f"Tab 0 (current): x\n[1] RootWebArea ''\n\t{line}"
    last = step("Part 1 of 1", web_state_before={"current_accessibility_tree": page})
    assert run_of(tmp_path, session([last], output="Not available.")).ending.kind == kind


def test_a_page_that_the_browser_refused_to_a_sub_agent_is_the_reason(tmp_path: Path) -> None:
    sub = session([step("a")], agent="web_agent", status="problem", stop_reason="page_refused")
    steps = [step("no result", sub_sessions=[sub]), step("done")]
    ending = run_of(tmp_path, session(steps, output="unknown")).ending
    assert (ending.kind, ending.detail) == ("blocked by page", "says so")


def test_an_article_about_a_block_is_not_a_block(tmp_path: Path) -> None:
    line = "In 2019 the ministry wrote that access denied to reporters had become the rule, and "
    stuck = session([step(line + "x" * 80)], status="problem", stop_reason="steps")
    assert run_of(tmp_path, stuck).ending.kind == "limit"


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "Not enough information to answer",
        "The information is not available on the site.",
        "Unfortunately, I couldn\u2019t find the year on any page.",
        "The site requires a login, so the task could not be completed.",
        "unknown (page not reachable)",
        "**N/A**",
        "The file does not contain this information.",
        "It is not possible to determine the number.",
        "-",
    ],
)
def test_an_answer_that_there_is_none_gives_up(answer: str) -> None:
    assert gives_up(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "No",
        "0",
        "",
        "None of the above",
        "The Unknown Soldier",
        "I can't dance",
        "could not be happier",
        "Cannot Buy Me Love",
        "It was not until 1985",
        "Available since 2009",
        "I could not find it at first; then the table showed that the year is 1984. " * 3,
    ],
)
def test_other_answers_do_not_give_up(answer: str) -> None:
    assert not gives_up(answer)


@given(st.text(alphabet=" thenoIis'fd.,()?-abc", max_size=250))
def test_any_answer_is_checked(answer: str) -> None:
    assert gives_up(answer) in (True, False)


def test_a_login_on_the_last_page_is_the_reason(tmp_path: Path) -> None:
    page = "[1] RootWebArea 'Log in'\n\t[2] heading 'Log in' level: 1\n\t[3] textbox 'Password'"
    last = step("clicked", web_state_before={"current_accessibility_tree": page})
    ending = run_of(tmp_path, session([last], output="no idea")).ending
    assert ending.kind == "blocked by page" and "login" in ending.evidence


def test_the_run_went_wrong_where_trouble_started_that_never_ended(tmp_path: Path) -> None:
    steps = [
        step("Traceback\nKeyError: 'a'", error="KeyError"),
        step("fine"),
        step("Traceback\nNameError: name 'y' is not defined", error="NameError"),
        step("nothing", code="look('x')"),
        step("nothing", code="look('x')"),
    ]
    steps[3]["action"]["unreadable"] = "no code block"
    stuck = session(steps, status="problem", stop_reason="steps")
    wrong = run_of(tmp_path, stuck).ending.wrong
    assert wrong is not None
    assert (wrong.step, wrong.sign) == (2, "trouble until the end")
    assert wrong.evidence == "NameError: name 'y' is not defined"


def test_the_step_that_answers_does_not_end_the_trouble(tmp_path: Path) -> None:
    steps = [step("fine"), step("x", error="ValueError"), step("done", code="stop('1983')")]
    wrong = run_of(tmp_path, session(steps, output="1983")).ending.wrong
    assert wrong is not None and (wrong.step, wrong.sign) == (1, "trouble until the end")


def test_a_failed_sub_agent_is_trouble_of_its_caller(tmp_path: Path) -> None:
    sub = session([step("a"), step("b")], agent="web_agent", status="problem", stop_reason="steps")
    steps = [step("fine"), step("no result", sub_sessions=[sub])]
    wrong = run_of(tmp_path, session(steps, status="problem", stop_reason="rejected")).ending.wrong
    assert wrong is not None
    assert (wrong.agent, wrong.step) == ("ck_agent", 1)
    assert wrong.evidence.startswith("web_agent ended with steps")


def test_a_right_answer_that_the_run_saw_is_found(tmp_path: Path) -> None:
    steps = [step("fine"), step("table\nOrwell: 1984\nend"), step("other"), step("done")]
    wrong = run_of(tmp_path, session(steps, output="1948")).ending.wrong
    assert wrong is not None
    assert (wrong.step, wrong.sign) == (1, "right answer seen")
    assert "Orwell: 1984" in wrong.evidence
    # part of another word or number does not count
    near = run_of(tmp_path, session([step("19845"), step("x")], output="1948")).ending.wrong
    assert near is not None and near.sign == "no sign"


def test_a_wrong_answer_without_trouble_has_no_sign(tmp_path: Path) -> None:
    wrong = run_of(tmp_path, session([step("a"), step("b")], output="1")).ending.wrong
    assert wrong is not None and (wrong.step, wrong.sign) == (1, "no sign")


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "observation": st.text(max_size=30) | st.none() | st.lists(st.text(max_size=5)),
                "code": st.text(max_size=10) | st.none() | st.integers(),
                "error": st.text(max_size=5) | st.none() | st.dictionaries(st.text(), st.text()),
                "unreadable": st.text(max_size=5),
                "llm_info": st.none() | st.dictionaries(st.text(max_size=5), st.integers()),
            },
        ),
        max_size=4,
    ),
    st.sampled_from(["done", "problem", "in_progress", "", "other"]),
    st.none() | st.floats() | st.integers() | st.text(max_size=3),
)
def test_rows_of_any_content_are_classified_or_reported(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any], status: str, score: Any
) -> None:
    made = session([{"action": a} for a in actions], status=status)
    file = write_rows(tmp_path_factory.mktemp("x") / "a.jsonl", [row("t", score, made=made)])
    problems: list[Any] = []
    for run in read_runs([file], on_problem=problems.append):
        assert run.ending.kind in KINDS
    assert len(problems) <= 1
