"""Texts ranked by the words of a query, in all their forms."""

from __future__ import annotations

import pytest

from ck_pro.ranking import Ranking, stems


@pytest.mark.parametrize(
    "forms",
    [
        "stop stops stopped stopping",
        "price prices priced pricing",
        "run runs runner running",
        "file files filed filing",
        "city cities",
        "class classes",
        "install installs installed installation",
        "box boxes",
        "house houses",
        "happy happiness",
        "address addresses addressed",
        "Release releases RELEASED releasing",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len(set(stems(forms))) == 1


def test_different_words_stay_different() -> None:
    words = "lamp lame camp red read need new knew bus but one on caring car glass gas"
    assert len(set(stems(words))) >= len(words.split()) - 1
    assert list(stems("x2 2026 Straße")) == ["x2", "2026", "strass"]


def test_rare_words_count_more_and_short_texts_win() -> None:
    texts = [
        "the lamp is red",
        "the lamp was ordered with the kettle, the table, the chair and the lamp shade",
        "the kettle is green",
        "nothing",
    ]
    assert Ranking(texts).best("ordering kettles") == [1, 2]
    assert Ranking(texts).best("lamps") == [0, 1]
    assert Ranking(texts).best("window") == [] and Ranking([]).best("x") == []
    assert Ranking(["a b", "b a"]).best("a") == [0, 1]
