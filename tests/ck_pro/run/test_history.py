"""Sessions, observations and files as prompts show them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ck_pro.run.history import Window, shortened
from ck_pro.run.working_folder import WorkingFolder
from ck_pro.session.observed import combine_observations, observation_text


@pytest.mark.parametrize(
    ("sizes", "budget", "start"),
    [([], 10, 0), ([5, 5], 10, 0), ([5, 5, 1], 10, 2), ([50], 10, 0), ([4] * 10, 10, 8)],
)
def test_the_window_drops_its_older_half(sizes: list[int], budget: int, start: int) -> None:
    window = Window(budget)
    for size in sizes:
        window.add(size)
        window.condense()
    assert window.first == start


def test_an_observation_has_each_action_on_its_own_lines() -> None:
    one, other = {"repr": "<1>"}, {"repr": "<2>"}
    assert observation_text(["a ", one, " b"]) == "a <1> b"
    assert observation_text([one, "", other]) == "<1><2>"
    for observed, text in [
        (["a", "b"], "a\nb"),
        (["a", one, "b", other, one], "a\n<1>\nb\n<2>\n<1>"),
        ([one, ["a ", other], "b"], "<1>\na <2>\nb"),
        (["a"], "a"),
        ([one], "<1>"),
    ]:
        assert observation_text(combine_observations(observed)) == text


def test_long_observations_lose_their_middle() -> None:
    make: Callable[[int], str] = lambda n: shortened("a" * n + "b" * n, 10)  # noqa: E731
    assert make(5) == "aaaaabbbbb"
    assert make(10) == "aaaaa\n[... 10 characters omitted ...]\nbbbbb"


def test_prompts_list_files_and_large_trees_are_not_walked(tmp_path: Path) -> None:
    folder = WorkingFolder(tmp_path)
    assert folder.files() == []
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_text("x")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert folder.files() == ["a.txt", "b/x.txt"]
    for n in range(60):
        (tmp_path / "b" / f"n{n:03}").write_text("")
    assert folder.files()[-1] == "(and 12 more)" and len(folder.files()) == 51
