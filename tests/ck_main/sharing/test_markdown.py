"""The Markdown summary of a run: what it says, and that texts of models and pages stay inert."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from viewer_runs import RunWriter, small_run

from ck_main.sharing.frames import one_line
from ck_main.sharing.markdown import plain, summary_of
from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.outline import TITLE_CHARS

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = [*"\\`*_{}[]()#+-.!|<>~&@:$=^\"'/ 1a\n", "](", "<b>", "http://x.y", "www.", "1. ", "&lt;"]
HOSTILE = (
    "<img src=x onerror=alert(1)> [a](javascript:alert(1)) ![p](http://evil.test/p.png) "
    "http://evil.test www.evil.test @someone #12 <!-- x --> | a |"
)


def reader_of(folder: Path) -> JournalRun:
    reader = JournalRun(folder)
    assert reader.refresh()
    return reader


def text_in(tokens: list[Any]) -> str:
    """Return the text of inline tokens; anything but text is an error."""
    assert {t.type for t in tokens} <= {"text", "text_special"}, tokens
    return "".join(t.content for t in tokens).replace("\u2060", "")


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(MARKS), max_size=20).map("".join)))
def test_a_line_of_markdown_shows_exactly_the_text(text: str) -> None:
    line = one_line(text)
    for markdown in (plain(text), f"1. {plain(text)}", f"# {plain(text)}"):
        inline = [t for t in PARSER.parse(markdown + "\n") if t.type == "inline"]
        if line.strip():
            assert len(inline) == 1, (markdown, inline)
            shown = text_in(inline[0].children or [])
            assert shown.strip() == line.replace("\u2060", "").strip()


def test_the_summary_has_task_answer_score_costs_and_a_line_per_step(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    text = summary_of(reader_of(tmp_path / "one"), "out/one run.gif")
    assert text.startswith("# one\n")
    assert "| Score | 1 |" in text and "| Cost | 1 USD |" in text
    assert "| Tokens | 220 (50% of the prompt cached) |" in text
    assert "![The steps in the browser](<out/one run.gif>)" in text
    assert "```text\nWhat is the answer of one?\n```" in text
    assert "## Answer\n\n```text\n42\n```" in text
    assert "0. Ask. (1 call" in text and "1. The zebra crossing is the answer." in text
    assert "#### ck\\_agent / web\\_agent" in text and "Task: look" in text


@pytest.mark.parametrize("shown", [3, 4, 11, 12])
def test_the_beginning_of_a_secret_at_the_end_of_a_short_text_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: int
) -> None:
    run = RunWriter(tmp_path / "cut", "cut")
    run.step(0, thought="x" * (TITLE_CHARS - shown) + "hunter2-PASS")
    run.finish()
    monkeypatch.setenv("SITE_PASSWORD", "hunter2-PASS")  # unknown to the run, which masks its own
    text = summary_of(reader_of(tmp_path / "cut"))
    assert "xxx" in text and "hunt" not in text


def test_hostile_texts_become_no_html_no_link_and_no_image(tmp_path: Path) -> None:
    run = RunWriter(tmp_path / "bad", HOSTILE, answer=HOSTILE)
    run.step(0, thought=HOSTILE, code="print(1)")
    run.finish(f"```\n{HOSTILE}\n````", i=0)
    text = summary_of(reader_of(tmp_path / "bad"))
    kinds = {t.type for top in PARSER.parse(text) for t in (top, *(top.children or []))}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline"}
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)<|https?://|www\.|@\w|#\d", outside), outside


def test_a_secret_of_the_environment_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunWriter(tmp_path / "run", "secret")
    run.step(0, thought="The key is sk-0123456789.")
    run.finish("sk-0123456789")
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")
    text = summary_of(reader_of(tmp_path / "run"))
    assert "sk-0123456789" not in text and "***" in text
