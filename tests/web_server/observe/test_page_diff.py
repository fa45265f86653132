"""Deltas between observations: create and apply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web_server.observe.page_diff import REMEMBERED, History, apply, difference

HEAD = "Tab 0 (current): Shop\n[1] RootWebArea 'Shop'\n\t[2] scrollbar 'the whole page is in view'"
OLD = f"{HEAD}\n\t[3] button 'A'\n\t[4] list ''\n\t\t[5] link 'x'\n\t\t[6] link 'y'\n\t[9] link 'z'"


@pytest.mark.parametrize(
    ("new", "parts"),
    [
        (OLD, ["nothing else"]),
        (OLD.replace("'A'", "'A' focused: true"), ["changed:", "\t[3] button 'A' focused: true"]),
        (OLD.replace("\n\t\t[6] link 'y'", ""), ["gone: 6"]),
        (HEAD + "\n\t[9] link 'z'", ["gone: 3-6"]),
        (
            OLD.replace("\n\t[9]", "\n\t\t[10] link 'w'\n\t\t[11] link 'v'\n\t[9]"),
            ["new after [6]:", "\t\t[10] link 'w'", "\t\t[11] link 'v'"],
        ),
        (
            OLD.replace("\n\t[3] button 'A'", "") + "\n\t[3] button 'A'",
            ["gone: 3", "new after [9]:", "\t[3] button 'A'"],
        ),
        (
            OLD.replace("\n\t[3]", "\n\t[0] alert 'HTTP status 404'\n\t[3]"),
            ["\t[0] alert 'HTTP status 404'", "nothing else"],
        ),
    ],
)
def test_a_delta_contains_only_the_changes(new: str, parts: list[str]) -> None:
    delta = difference(OLD, new, 7)
    assert delta.split("\n") == ["Tab 0 (current): Shop", "since observation 7:", *parts]
    assert apply(OLD, delta) == new


NAMES = st.sampled_from(["", "a", "gone: 3", "new after [4]:", "x' [9] link 'y"])
LINES = st.lists(
    st.tuples(st.integers(3, 60), st.integers(1, 4), NAMES), unique_by=lambda line: line[0]
)
TABS = st.lists(st.sampled_from(["A", "since observation 1:", "changed:"]), min_size=1, max_size=3)
NOTICES = st.lists(NAMES, max_size=2)


def tree(tabs: list[str], notices: list[str], lines: list[tuple[int, int, str]]) -> str:
    text = [f"Tab {number}: {title}" for number, title in enumerate(tabs)]
    text += ["[1] RootWebArea 'T'", f"\t[2] scrollbar '{len(lines)} px'"]
    text += [f"\t[0] alert '{notice}'" for notice in notices]
    text += [f"{depth * chr(9)}[{number}] link '{name}'" for number, depth, name in lines]
    return "\n".join(text)


TREES = st.builds(tree, TABS, NOTICES, LINES)


@given(TREES, TREES)
def test_a_delta_turns_the_old_observation_into_the_new_one(old: str, new: str) -> None:
    assert apply(old, difference(old, new, 1)) == new


@given(LINES, st.randoms(use_true_random=False))
def test_a_delta_contains_as_few_moved_lines_as_possible(
    lines: list[tuple[int, int, str]], chance: object
) -> None:
    if len(lines) < 2:
        return
    moved = [*lines[1:], lines[0]]
    delta = difference(tree(["A"], [], lines), tree(["A"], [], moved), 1)
    assert sum(line.strip().startswith("[") for line in delta.split("\n")) == 1


def test_a_history_stores_the_last_observations() -> None:
    history = History()
    numbers = [history.add(OLD, None) for _ in range(REMEMBERED + 1)]
    assert numbers[0] == (1, "") and numbers[-1] == (REMEMBERED + 1, "")
    number, delta = history.add(OLD, 1)
    assert delta == "", "the first one is forgotten"
    assert "nothing else" in history.add(OLD, number)[1]
    assert history.add(OLD, 99)[1] == ""


def test_the_delta_of_a_new_page_is_empty() -> None:
    history = History()
    history.add(OLD, None)
    other = "\n".join([HEAD, *(f"\t[{n}] link 'other'" for n in range(20, 25))])
    assert history.add(other, 1) == (2, "")
