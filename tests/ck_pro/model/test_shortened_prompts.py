"""Prompts that exceed `max_prompt_tokens`."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ModelRefused
from ck_pro.model import estimate_tokens
from ck_pro.model.shorten import cut_middle, fit

SYSTEM = "You are an agent. " * 20
INSTRUCTION = "\n\nNow write the code. END OF INSTRUCTIONS"


def image():
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def conversation(turns, size, observation):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "# Task\nGo"}]
    for i in range(turns):
        messages.append({"role": "assistant", "content": f"turn {i} " + "x" * size})
        seen = [{"type": "text", "text": f"seen {i}"}, image()] if i % 2 else f"seen {i}"
        messages.append({"role": "user", "content": seen})
    messages.append({"role": "user", "content": "o" * observation + INSTRUCTION})
    return messages


def test_short_prompts_are_unchanged():
    messages = conversation(3, 10, 10)
    assert fit(messages, None) == (messages, False)
    assert fit(messages, 100_000) == (messages, False)


@given(st.integers(0, 12), st.integers(0, 3000), st.integers(0, 30_000), st.integers(1500, 20_000))
def test_shortened_prompts_keep_system_text_and_instructions(turns, size, observation, limit):
    messages = conversation(turns, size, observation)
    before = copy.deepcopy(messages)
    sent, shortened = fit(messages, limit)
    assert messages == before
    assert estimate_tokens(sent) <= limit
    assert shortened == (estimate_tokens(messages) > limit)
    assert sent[0] == messages[0]
    assert sent[1]["content"].startswith("# Task")
    assert sent[-1]["content"].endswith(INSTRUCTION)
    kept = [m["content"] for m in sent if m["role"] == "assistant"]
    written = [m["content"] for m in messages if m["role"] == "assistant"]
    # at most one reply is shortened; the others are the latest, unchanged
    assert len(written) == 0 or kept == written[len(written) - len(kept) :] or len(kept) <= 1


def test_the_oldest_turns_are_omitted_first_with_a_note():
    messages = conversation(10, 700, 10)
    sent, _ = fit(messages, estimate_tokens(messages) - 5 * 1105 - 500)
    assert "earlier messages omitted" in sent[1]["content"]
    assert [m["role"] for m in sent[1:4]] == ["user", "assistant", "user"]
    assert sent[-3]["content"].startswith("turn 9")


def test_images_of_the_history_are_omitted_before_its_texts():
    messages = conversation(4, 50, 10)
    sent, _ = fit(messages, estimate_tokens(messages) - 1)
    assert len(sent) == len(messages)
    images = [p["type"] for m in sent if isinstance(m["content"], list) for p in m["content"]]
    assert images.count("image_url") == 1


def test_a_final_tool_result_keeps_its_call():
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "task"},
        {"role": "assistant", "content": "y" * 9000},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "z" * 9000},
    ]
    sent, _ = fit(messages, 1500)
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool"]
    assert sent[2]["tool_calls"] == [call]


def test_fixed_parts_that_exceed_the_limit_raise():
    messages = [{"role": "system", "content": "s" * 9000}, {"role": "user", "content": "q"}]
    with pytest.raises(ModelRefused, match="max_prompt_tokens=100"):
        fit(messages, 100)


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_cut_middle_keeps_both_ends(text, head, tail):
    cut = cut_middle(text, head, tail)
    if len(text) <= head + tail:
        assert cut == text
    else:
        assert cut.startswith(text[:head]) and cut.endswith(text[len(text) - tail :])
