"""Collecting the output of a step, whatever bytes arrive."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.executor.results import OutputCollector
from ck_pro.executor.worker.code.printing import LENGTHS, MAX_BLOCK, SPAN, make_mark, print_blocks

MARK = make_mark("0123456789abcdef")


def printed(*args: str, handle: int | None = None, end: str = "\n") -> bytes:
    spans, text = [], b""
    for index, arg in enumerate(args):
        text += b" " * bool(index)
        spans.append((len(text), len(arg.encode()), 1 if index == handle else 0))
        text += arg.encode()
    return b"".join(print_blocks(MARK, text + end.encode(), spans))


def collect(data: bytes, limit: int = 1 << 20, size: int = 1 << 16, **handles: object):
    collector = OutputCollector(MARK, limit, handles)
    for at in range(0, len(data), size):
        collector.feed(data[at : at + size])
    return collector.finish()


pieces = st.lists(
    st.tuples(st.just("print"), st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
    | st.tuples(st.just("raw"), st.text(st.characters(codec="utf-8", exclude_characters="\0")))
    | st.tuples(st.just("print"), st.lists(st.sampled_from(["é" * 3000, "", "x" * 9000]))),
    max_size=8,
)


@given(pieces, st.integers(min_value=1, max_value=40))
def test_output_in_any_pieces(parts, size):
    data, text, entries = b"", "", []
    for kind, what in parts:
        if kind == "print":
            data += printed(*what)
            text += " ".join(what) + "\n"
            entries += what
        else:
            data += what.encode()
            text += what
    assert collect(data, size=size) == (text, entries, [text] if text else [], 0)


@given(pieces, st.integers(min_value=1, max_value=9999))
def test_long_output_keeps_head_and_tail_and_counts_the_rest(parts, limit):
    data, text = b"", ""
    for kind, what in parts:
        data += printed(*what) if kind == "print" else "".join(what).encode()
        text += " ".join(what) + "\n" if kind == "print" else "".join(what)
    output, _, _, cut = collect(data, limit)
    assert len(output) <= limit + 80
    if cut:
        head, number, tail = re.split(
            r"\n\[\.\.\. (\d+) bytes of output omitted \.\.\.\]\n", output
        )
        assert text.startswith(head) and text.endswith(tail) and int(number) == cut
    else:
        assert output == text


@given(st.lists(st.sampled_from([MARK, MARK[:5], b"\xff" * 4, b"\0\2\0\3", b"\0\1", b"x", b""])))
def test_hostile_output_is_text(parts):
    output, entries, shown, _ = collect(b"".join(parts), 50, r1=object())
    assert len(output) < 200 and isinstance(entries, list) and isinstance(shown, list)


@given(
    st.lists(
        st.tuples(*[st.integers(0, 2**16 - 1)] * 2, st.integers(0, 3), st.integers(0, 255))
        | st.tuples(*[st.integers(0, 9)] * 2, st.integers(0, 3), st.integers(0, 1)),
        max_size=20,
    ),
    st.binary(max_size=20),
    st.integers(1, 60),
)
def test_forged_spans_lose_no_text_but_that_of_objects(spans, text, limit):
    block = MARK + LENGTHS.pack(len(spans), len(text)) + b"".join(SPAN.pack(*s) for s in spans)
    things = {"r1": object(), "r2": object()}
    output, entries, shown, cut = collect(
        b"before" + (block + text) * 3 + b"after", limit, **things
    )
    assert all(type(one) is str or one in things.values() for one in (*entries, *shown))
    # characters may lie across two blocks
    assert cut or output == (b"before" + 3 * text + b"after").decode("utf-8", "replace")
    assert cut or (str(shown[0]).startswith("before") and str(shown[-1]).endswith("after"))


def test_a_printed_object_replaces_its_text_and_nothing_else():
    thing = object()
    data = b"raw " + printed("it is", "<thing>", "!", handle=1, end="; ") + b"sub\n" + printed("x")
    output, entries, shown, _ = collect(data, r1=thing)
    assert output == "raw it is <thing> !; sub\nx\n"
    assert entries == ["it is", thing, "!", "x"]
    assert shown == ["raw it is ", thing, " !; sub\nx\n"]


@pytest.mark.parametrize("limit", [20, 1000, 20_000, 1 << 20])
def test_a_long_object_stays_one_object_amid_other_output(limit):
    thing = object()
    first, *rest = print_blocks(MARK, ("é" * 10_000 + "\n").encode(), [(0, 20_000, 1)])
    assert all(len(block) <= MAX_BLOCK for block in (first, *rest)) and rest
    data = b"begin\n" + first + b"(other)" + b"".join(rest) + b"end\n"
    _, entries, shown, cut = collect(data, limit, r1=thing)
    assert [one for one in shown if one is thing] == [thing] == entries
    assert shown[0].startswith("begi") and shown[-1].endswith("end\n")
    if not cut:
        assert shown == ["begin\n", thing, "(other)\nend\n"]


def test_many_arguments_are_printed_like_few():
    many = [str(n) for n in range(3000)]
    output, entries, _, _ = collect(printed(*many))
    assert output == " ".join(many) + "\n" and entries == many


def test_objects_at_both_ends_of_long_output_survive():
    one, other = object(), object()
    data = printed("<one>", handle=0) + b"x" * 100_000
    data += b"".join(print_blocks(MARK, b"<other>\n", [(0, 7, 2)]))
    _, entries, shown, cut = collect(data, 100, r1=one, r2=other)
    assert entries == [one, other] and shown[0] is one and shown[2] is other
    assert f"{cut} bytes of output omitted" in shown[1]


def test_a_flood_of_prints_costs_bounded_memory():
    collector = OutputCollector(MARK, 1000, {"r1": object()})
    block = MARK + LENGTHS.pack(400, 1) + SPAN.pack(0, 1, 1, 0) * 200 + SPAN.pack(0, 0, 0, 0) * 200
    for _ in range(500):
        collector.feed(block + b"x")
    assert len(collector._first) + len(collector._last) < 4000
    assert collector.finish()[0] == "x" * 500
