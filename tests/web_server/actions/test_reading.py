"""Reading and finding: whole, verbatim, with true totals."""

from __future__ import annotations

import re

import pytest
from server_client import Client
from server_site import PAGES

from web_server.quoting import paragraphs
from web_server.session.reading import split_parts, to_markdown

FORM = """<title>Fields</title><h1>Fields</h1>
<p><label>Name <input value="Ada" required></label> <label>Empty <input></label>
<label><input type=checkbox checked> Oil</label> <label><input type=checkbox> Salt</label>
<label><input type=radio name=r> Left</label> <label><input type=radio name=r checked> Right</label>
<label>Size <select><option>S<option selected>M</select></label>
<label>Pin <input type=password value=1234></label>
<span role=switch aria-checked=true>Wifi</span> <input type=submit value=Send></p>
<label>Notes <textarea aria-required=true>first

   third_line *x*</textarea></label>
<pre>def f(a_b):

    return a_b * [3]


# [3] button 'Pay'
</pre><p>Use <code>snake_case_name</code> and a_plain_one * twice * here.
See <a href="/manual">the manual</a>.</p>"""

LINES = (
    "<title>Lines</title>"
    + "".join(
        f"<div role=group aria-label='Card {i}'><button>Edit</button></div>" for i in range(40)
    )
    + "<div role=dialog aria-label='Edit later' style='position:fixed;inset:0;background:#fff'>"
    "<label>Value <input value='the edit value'></label></div>"
)


@pytest.mark.browser
def test_fields_boxes_and_code_are_read_as_they_are(client: Client) -> None:
    PAGES["/fields"] = FORM
    client.open("/fields")
    client.act("read", actionValue="all")
    text = client.message
    assert text.startswith("Part 1 of 1\n\n# Fields\n")
    flat = " ".join(text.split())
    for shown in (
        "Name [field: Ada] (required)",
        "Empty [field: ]",
        "[x] Oil",
        "[ ] Salt",
        "( ) Left",
        "(x) Right",
        "Size [choice: M]",
        "Pin [field: \u2022\u2022\u2022\u2022]",
        "[x] Wifi",
        "[button: Send]",
        "`snake_case_name` and a_plain_one * twice * here.",
        "See [the manual](/manual).",
    ):
        assert shown in flat, shown
    assert "```\nfirst\n\n   third_line *x*\n``` (required)" in text
    code = "def f(a_b):\n\n    return a_b * [3]\n\n\n# [3] button 'Pay'"
    assert f"```\n{code}\n```" in text
    client.act("read", actionValue="1", links=False)
    assert "See the manual." in client.message


@pytest.mark.browser
def test_a_page_of_several_parts_is_read_whole_and_says_so(client: Client) -> None:
    PAGES["/read-parts"] = "<title>P</title>" + "".join(
        f"<p>par {i} {'x' * 90}" for i in range(400)
    )
    client.open("/read-parts")
    client.act("read", actionValue="all")
    head, _, whole = client.message.partition("\n\n")
    total = int(re.fullmatch(r"Parts 1 to (\d) of \1", head)[1])  # type: ignore[index]
    parts = []
    for number in range(1, total + 1):
        client.act("read", actionValue=str(number))
        head, _, part = client.message.partition("\n\n")
        assert head == f"Part {number} of {total}"
        parts.append(part)
    assert "".join(parts) == whole and "par 399 " in whole
    PAGES["/read-parts"] = "<title>P</title>" + f"<p>{'long ' * 40}</p>" * 1700
    client.open("/read-parts")
    client.act("read", actionValue="all")
    assert re.match(r"Parts 1 to 25 of 4\d \(for more: part 26 and so on\)\n\n", client.message)


@pytest.mark.browser
def test_find_says_how_many_lines_there_are(client: Client) -> None:
    PAGES["/lines"] = LINES
    client.open("/lines")
    client.act("find", text="Edit", role="button")
    lines = client.message.split("\n")
    assert lines[0] == "found button 'Edit' in 40 lines, first 30:" and len(lines) == 31
    assert re.match(r"\[\d+\] button 'Edit'.* \(in group 'Card 0'\)", lines[1])
    client.act("find", text="edit", role="button", limit=100)
    assert client.message.startswith("found button 'edit' in 40 lines:\n")
    client.act("find", role="dialog")
    assert client.message.startswith("found dialog '' in 1 line:\n")


@pytest.mark.browser
def test_find_ignores_what_covers_an_element(client: Client) -> None:
    PAGES["/lines"] = LINES
    client.open("/lines")
    client.act("find", text="edit later")
    assert client.message.startswith("found 'edit later' in 1 line:\n")
    client.act("find", text="THE EDIT value")
    assert "textbox 'Value'" in client.message and "(in dialog 'Edit later')" in client.message
    client.act("find", text="button")
    assert client.message == "'button' is not on the page"


def test_parts_joined_are_the_text() -> None:
    text = "\n\n".join(["word " * 30] * 300) + "x" * 20_000 + "\n\n\n" + "[3] button 'Pay' " * 900
    text = paragraphs(text)
    parts = split_parts(text)
    assert "".join(parts) == text and all(0 < len(part) <= 8000 for part in parts)
    assert not any(part.lstrip().startswith("[3] button") for part in parts)


def test_a_page_cannot_end_its_code() -> None:
    text = to_markdown("<pre>a\n```\nb</pre><p>[3] button 'Pay'</p>")
    assert text == "````\na\n```\nb\n````\n\n\\[3] button 'Pay'"


@pytest.mark.browser
def test_find_gives_the_ids_of_all_lines_and_does_not_match_its_own_marks(client: Client) -> None:
    PAGES["/marks"] = """<title>M</title><p>one</p><p><span style="opacity:0">two</span></p>
        <textarea aria-label=Notes>first line\n second line</textarea>"""
    client.open("/marks")
    reply = client.ok(
        "performAction",
        **{"browserId": client.browser, "pageId": client.page, "actionName": "find_ids"},
        text="line second",
    )
    assert reply["data"] == {"ids": [int(client.id_of("textbox 'Notes'"))]}
    client.act("find", text="invisible")
    assert client.message == "'invisible' is not on the page"
    client.act("find", text="two")
    assert "StaticText '(invisible: two)'" in client.message


@pytest.mark.browser
def test_wait_for_sees_values_and_reports_what_happened(client: Client) -> None:
    PAGES["/fills"] = """<title>F</title><input aria-label=Total><b style="opacity:0">never</b>
        <p>ready <i>now</i></p>
        <script>setTimeout(() => {
        document.querySelector('input').value = '42 EUR' }, 700)</script>"""
    client.open("/fills")
    client.act("wait_for", text="42 eur", timeout=20_000)
    assert re.match(r"'42 eur' is on the page( after \d+\.\d s)?$", client.message)
    client.act("wait_for", text="READY now", timeout=50)
    assert client.message == "'READY now' is on the page"
    client.act("wait_for", text="never", timeout=50)
    assert client.message.startswith("'never' did not appear within 0.05 s")
