"""`ck_pro.terminal`: lines from pipes and streams, one reader at a time."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

from ck_pro.exceptions import Cancelled, InputError
from ck_pro.terminal import asking_for, read_line, terminal_turn


@contextmanager
def pipe() -> Iterator[tuple[TextIO, TextIO]]:
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as stdin, os.fdopen(write, "w") as writer:
        yield stdin, writer


def test_lines_of_a_pipe_are_read_one_by_one() -> None:
    with pipe() as (stdin, writer):
        writer.write("one\r\ntwo\nno end")
        writer.close()
        assert [read_line(stdin) for _ in range(4)] == ["one\n", "two\n", "no end", ""]


def test_a_stream_in_memory_is_read_with_readline() -> None:
    stream = io.StringIO("one\ntwo\n")
    assert read_line(stream) == "one\n" and stream.readline() == "two\n"


def test_input_read_ahead_belongs_to_its_own_stream() -> None:
    with pipe() as (first, writer):
        writer.write("one\nleft over\n")
        writer.flush()
        assert read_line(first) == "one\n"
    with pipe() as (second, writer):  # usually the same file descriptor
        writer.write("two\n")
        writer.flush()
        assert read_line(second) == "two\n"


def test_a_line_that_exceeds_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ck_pro.terminal.LONGEST_LINE", 100)
    with pipe() as (stdin, writer):
        writer.write("short\n" + "x" * 200)
        writer.flush()
        assert read_line(stdin) == "short\n"
        with pytest.raises(InputError, match="a line exceeds"):
            read_line(stdin)


@pytest.mark.parametrize("own", [True, False])
def test_a_cancelled_run_stops_reading_an_open_pipe(own: bool) -> None:
    cancel, ended = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            with asking_for(cancel, "main/helper"), terminal_turn():
                read_line(stdin, cancel if own else None)
        except Cancelled as e:
            errors.append(e)
        ended.set()

    with pipe() as (stdin, writer):
        threading.Thread(target=ask, daemon=True).start()
        writer.write("half a line")
        writer.flush()
        cancel.set()
        stopped = ended.wait(20)
        if not stopped:
            writer.close()  # so that the thread ends before its stream is closed
            ended.wait(20)
        assert stopped and len(errors) == 1
