"""The pure parts: usage, budgets, prices, reasoning, shortening, Retry-After."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ConfigError, LimitReached, ModelRefused
from ck_pro.model import Budget, Reply, Usage, estimate_tokens, price_of
from ck_pro.model.backends.service_errors import retry_after_seconds
from ck_pro.model.reasoning import split_reasoning
from ck_pro.model.shorten import cut_middle, fit

# --- reply and usage -------------------------------------------------------------------------


def test_a_reply_is_a_text_that_copies_whole():
    reply = Reply("hi", reasoning="r", usage=Usage(1, 0, 2), params={"a": 1})
    for twin in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert twin == "hi" and twin.reasoning == "r" and twin.usage.total_tokens == 3
    assert reply.upper() == "HI"


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans())))
def test_usage_adds_up(rows):
    total = sum((Usage(p, 0, c, estimated=e) for p, c, e in rows), Usage())
    assert total.total_tokens == sum(p + c for p, c, _ in rows)
    assert total.estimated == any(e for *_, e in rows)


# --- budget ----------------------------------------------------------------------------------


def test_each_limit_has_its_reason():
    now = [0.0]
    cases = {
        "steps": (Budget(max_steps=1), lambda b: b.charge_step()),
        "tokens": (Budget(max_tokens=10), lambda b: b.charge(Usage(6, 0, 4))),
        "money": (Budget(max_money=0.5), lambda b: b.charge(Usage(), 0.5)),
        "time": (Budget(max_seconds=5, clock=lambda: now[0]), lambda b: now.__setitem__(0, 5.0)),
    }
    for reason, (budget, use) in cases.items():
        budget.check()
        use(budget)
        with pytest.raises(
            LimitReached, match=f"raise `max_{'seconds' if reason == 'time' else reason}`"
        ) as e:
            budget.check()
        assert e.value.reason == reason
    cases["steps"][0].check(steps=False)


@pytest.mark.parametrize("limit", ["10", -1, math.nan, True])
def test_a_limit_is_a_number_from_zero_on(limit):
    with pytest.raises(ConfigError, match="Budget: max_seconds must be a number"):
        Budget(max_seconds=limit)


def test_a_free_model_works_under_a_limit_of_no_money():
    budget = Budget(max_money=0)
    budget.charge(Usage(5, 0, 5), 0.0)
    budget.check()


def test_nested_budgets_charge_their_parents():
    now = [0.0]
    root = Budget(max_tokens=100, max_seconds=10, clock=lambda: now[0])
    child = Budget(max_seconds=30, parent=root, clock=lambda: now[0])
    grandchild = Budget(max_tokens=1000, parent=child)
    grandchild.charge(Usage(60, 0, 40), None)
    now[0] = 4.0
    assert grandchild.remaining_seconds() == 6
    assert root.snapshot()["unpriced_calls"] == 1
    with pytest.raises(LimitReached) as e:
        grandchild.check()
    assert e.value.reason == "tokens"
    assert not grandchild.limits_money and Budget(parent=Budget(max_money=1)).limits_money


def test_budget_counts_from_many_threads():
    root = Budget()

    def work():
        mine = Budget(parent=root)
        for _ in range(200):
            mine.charge(Usage(1, 0, 1), 0.25)
            mine.charge_step()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    snapshot = root.snapshot()
    assert (snapshot["steps"], snapshot["tokens"], snapshot["money"]) == (1600, 3200, 400.0)


# --- prices ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("gpt-4o", 2.5),
        ("gpt-4o-2024-08-06", 2.5),
        ("openai/gpt-4o-mini", 0.15),
        ("gpt-5-2025-08-07", 1.25),
        ("gpt-5-chat-latest", 1.25),
        ("gpt-5-pro", None),
        ("gpt-4o-realtime-preview", None),
        ("qwen", None),
    ],
)
def test_prices_by_name(name, prompt):
    price = price_of(name)
    assert (price.prompt if price else None) == prompt


def test_a_price_of_ones_own():
    price = price_of("anything", {"prompt": 2, "completion": 4})
    assert price.cost(Usage(1_000_000, 500_000, 1_000_000)) == 6
    for wrong in (
        {"prompt": 1},
        {"prompt": 1, "completion": 1, "x": 1},
        {"prompt": -1, "completion": 1},
    ):
        with pytest.raises(ConfigError, match="price"):
            price_of("x", wrong)


# --- reasoning -------------------------------------------------------------------------------


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
def test_reasoning_is_split_off(text, reply, reasoning):
    assert split_reasoning(text) == (reply, reasoning)


_NO_TAGS = st.text().filter(lambda s: "<" not in s)


@given(_NO_TAGS, _NO_TAGS)
def test_reasoning_in_tags_comes_apart_from_any_reply(reasoning, reply):
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
def test_no_text_gets_lost_or_made_up(text):
    reply, reasoning = split_reasoning(text)
    assert reply.count("a") + reasoning.count("a") == text.count("a")


# --- shortening ------------------------------------------------------------------------------

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


def test_short_prompts_stay():
    messages = conversation(3, 10, 10)
    assert fit(messages, None) == (messages, False)
    assert fit(messages, 100_000) == (messages, False)


@given(st.integers(0, 12), st.integers(0, 3000), st.integers(0, 30_000), st.integers(1500, 20_000))
def test_shortened_prompts_fit_and_keep_what_counts(turns, size, observation, limit):
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
    # at most one reply is cut; the others are the latest, whole
    assert len(written) == 0 or kept == written[len(written) - len(kept) :] or len(kept) <= 1


def test_the_oldest_goes_first_and_a_note_says_so():
    messages = conversation(10, 700, 10)
    sent, _ = fit(messages, estimate_tokens(messages) - 5 * 1105 - 500)
    assert "earlier messages omitted" in sent[1]["content"]
    assert [m["role"] for m in sent[1:4]] == ["user", "assistant", "user"]
    assert sent[-3]["content"].startswith("turn 9")


def test_images_of_the_history_go_before_its_words():
    messages = conversation(4, 50, 10)
    sent, _ = fit(messages, estimate_tokens(messages) - 1)
    assert len(sent) == len(messages)
    images = [p["type"] for m in sent if isinstance(m["content"], list) for p in m["content"]]
    assert images.count("image_url") == 1


def test_a_tool_result_keeps_its_call():
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


def test_what_must_not_be_cut_can_be_too_long():
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


# --- Retry-After -----------------------------------------------------------------------------


def test_retry_after_in_all_forms():
    now = 1_000_000.0
    later = formatdate(now + 30, usegmt=True)
    assert retry_after_seconds({"Retry-After": "5"}) == 5
    assert retry_after_seconds({"retry-after-ms": "1500", "Retry-After": "9"}) == 1.5
    assert retry_after_seconds({"Retry-After": later}, lambda: now) == 30
    assert retry_after_seconds({"Retry-After": later}, lambda: now + 99) == 0
    assert retry_after_seconds({"Retry-After": "-5"}) == 0
    for nothing in ({}, {"Retry-After": "soon"}, {"Retry-After": "nan"}, {"Retry-After": "inf"}):
        assert retry_after_seconds(nothing) is None


@given(st.text(max_size=40))
def test_any_retry_after_is_read_or_ignored(value):
    seconds = retry_after_seconds({"Retry-After": value})
    assert seconds is None or seconds >= 0
