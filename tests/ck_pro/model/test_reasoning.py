"""Reasoning in replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.model.types import split_reasoning


@pytest.mark.parametrize(
    ("text", "reply", "reasoning"),
    [
        ("plain", "plain", ""),
        ("<think>a</think>\n\nb", "b", "a"),
        (" <think>a</think><thinking>c</thinking> b", "b", "a\nc"),
        ("<think>never closed ```x```", "", "never closed ```x```"),
        ("no opening\n</think>\nb", "b", "no opening"),
        ("```python\nx = '</think>'\n```", "```python\nx = '</think>'\n```", ""),
        ("the tag `</think>` ends it", "the tag `</think>` ends it", ""),
        ("say <think> here", "say <think> here", ""),
    ],
)
def test_reasoning_is_separated_from_the_reply(text, reply, reasoning):
    assert split_reasoning(text) == (reply, reasoning)


_NO_TAGS = st.text().filter(lambda s: "<" not in s)


@given(_NO_TAGS, _NO_TAGS)
def test_tagged_reasoning_is_separated_from_any_reply(reasoning, reply):
    assert split_reasoning(f"<think>{reasoning}</think>{reply}") == (
        reply.strip(),
        reasoning.strip(),
    )
    assert split_reasoning(reply) == (reply, "")


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "```", "a", " ", "\n"]), max_size=20).map(
        "".join
    )
)
def test_separation_loses_and_adds_no_text(text):
    reply, reasoning = split_reasoning(text)
    assert reply.count("a") + reasoning.count("a") == text.count("a")
