"""The exact content of fields and editors, and edits that leave the rest as it is."""

from __future__ import annotations

from typing import Any

import pytest
from server_client import LEAN, Client
from server_site import PAGES

pytestmark = pytest.mark.browser

TEXT = "one\n\n  two  three\t\nend\n"
FIELDS = """<title>Fields</title><label>Notes <textarea id=area></textarea></label>
<label>Name <input value="Ada  L"></label><label>Count <input type=number value=12></label>
<label>Day <input type=date value=2024-05-06></label><label>Pin <input type=password value=s3cret>
</label><label><input type=checkbox checked> Agree</label><label>Size <select><option>S
<option selected>M M</select></label><select multiple aria-label=Tags><option selected>a<option>b
<option selected>c</select><input aria-label=Fixed readonly value=" x ">
<div id=rich role=textbox contenteditable aria-label=Rich><p>alpha</p><p><br></p>
<p>be<b>ta</b>&nbsp; gamma<br>delta</p></div><p id=log></p><p>plain</p><script>
area.value = 'one\\n\\n  two  three\\t\\nend\\n';
for (const type of ['beforeinput', 'input']) addEventListener(type, (e) => {
  log.textContent += ` ${type} ${e.isTrusted}` }, true)</script>"""
# An editor like CodeMirror 5: it draws lines, has a hidden field and a script, and adds brackets.
DRAWN = """<title>Code</title><div class="%s" id=box style="position:relative;width:400px;
height:100px"><textarea style="position:absolute;width:1px;height:1em;padding:0;border:0">
</textarea>
<pre id=lines style="position:relative;background:#eee"></pre></div><p id=log></p><script>
let text = Array.from({length: 300}, (_, i) => `line ${i}\\n`).join(''), from = 0, to = 0;
const area = document.querySelector('textarea');
const draw = () => { lines.textContent = text.slice(0, 60); area.value = '' };
const put = (words) => {
  text = text.slice(0, from) + words + text.slice(to); to = from += words.length;
  log.textContent += ' put'; draw() };
area.oninput = () => { const typed = area.value; put(typed === '(' ? '()' : typed) };
area.onkeydown = (e) => { if (e.ctrlKey && e.key === 'a') { from = 0; to = text.length }
  if (e.key === 'Delete') put('') };
area.oncopy = (e) => { e.clipboardData.setData('text', text.slice(from, to)); e.preventDefault() };
area.onpaste = (e) => { put(e.clipboardData.getData('text')); e.preventDefault() };
if (%s) box.CodeMirror = {getValue: () => text, getOption: () => %s, focus: () => area.focus(),
  posFromIndex: (i) => i, setSelection: (a, b) => { from = a; to = b },
  replaceRange: (words, a, b) => { from = a; to = b; put(words) }};
draw()</script>"""
LINES = "".join(f"line {i}\n" for i in range(300))


def value(client: Client, name: str) -> Any:
    where = {"browserId": client.browser, "pageId": client.page, "actionName": "value"}
    reply = client.ok("performAction", **{**LEAN, **where, "targetId": name})
    return reply["data"]["value"]


def edit(client: Client, name: str, old: str, new: str, status: int = 200) -> str:
    return client.act("edit", targetId=name, actionValue=old, text=new, status=status)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("'Notes'", TEXT),
        ("'Name'", "Ada  L"),
        ("'Count'", "12"),
        ("'Day'", "2024-05-06"),
        ("'Agree'", True),
        ("'Size'", "M M"),
        ("'Tags'", ["a", "c"]),
        ("'Fixed'", " x "),
        ("'Rich'", "alpha\n\nbeta  gamma\ndelta"),
    ],
)
def test_a_value_is_exact_and_whole(client: Client, name: str, held: object) -> None:
    PAGES["/value-fields"] = FIELDS
    client.open("/value-fields")
    assert value(client, name) == held


def test_a_password_and_elements_without_a_value_are_errors(client: Client) -> None:
    PAGES["/value-fields"] = FIELDS
    client.open("/value-fields")
    client.act("value", targetId="'Pin'", status=409)
    assert "is a password field" in client.message and "s3cret" not in client.message
    client.act("value", targetId="'plain'", status=409)
    assert "is not a field: read() and find()" in client.message
    edit(client, "'Pin'", "s3cret", "x", status=409)
    assert "has no text to edit" in client.message


def test_an_edit_replaces_a_part_and_fires_the_events_of_a_user(client: Client) -> None:
    PAGES["/value-fields"] = FIELDS
    client.open("/value-fields")
    tree = edit(client, "'Notes'", "  two  three\t\n", "2\n\n")
    assert value(client, "'Notes'") == "one\n\n2\n\nend\n"
    assert client.message == "edited textbox 'Notes'; the page changed"
    assert "beforeinput true input true" in tree
    edit(client, "'Name'", "  L", "")
    assert value(client, "'Name'") == "Ada"
    edit(client, "'Count'", "2", "34")
    assert value(client, "'Count'") == "134"
    edit(client, "'Day'", "05", "06")
    assert value(client, "'Day'") == "2024-06-06"
    edit(client, "'Rich'", "a\n\nbeta", "A\nB")
    assert value(client, "'Rich'") == "alphA\nB  gamma\ndelta"


def test_a_text_that_is_missing_or_ambiguous_changes_nothing(client: Client) -> None:
    PAGES["/value-fields"] = FIELDS
    client.open("/value-fields")
    for name, old, new, why in (
        ("'Notes'", "zero", "x", "'zero' is not in [3] textbox 'Notes'"),
        ("'Notes'", "one two", "x", "these words with other white space"),
        ("'Notes'", "e", "x", "'e' is 4 times in [3] textbox 'Notes'"),
        ("'Name'", "Ada", "a\nb", "takes one line"),
        ("'Fixed'", "x", "y", "is read-only"),
        ("'Size'", "M", "S", "has no text to edit"),
    ):
        edit(client, name, old, new, status=409)
        assert why in client.message, client.message
    edit(client, "'Notes'", "", "x", status=400)
    assert value(client, "'Notes'") == TEXT
    assert "input true" not in client.tree()["yaml"]


@pytest.mark.parametrize(("style", "script"), [("CodeMirror", 1), ("unknown", 0)])
def test_an_editor_that_draws_its_text_is_read_and_edited_whole(
    client: Client, style: str, script: int
) -> None:
    PAGES["/drawn"] = DRAWN % (style, script, "false")
    client.open("/drawn")
    field = client.id_of("textbox")
    assert value(client, field) == LINES
    tree = edit(client, field, "line 298\nline", "(")
    assert value(client, field) == LINES.replace("line 298\nline", "(")
    assert "StaticText 'put" in tree
    edit(client, field, "line 7\n", "")
    assert "line 6\nline 8\n" in value(client, field)


def test_an_editable_document_in_a_frame_is_edited(client: Client) -> None:
    PAGES["/editable-body"] = "<body contenteditable><p>one</p><p>two <b>bold</b></p></body>"
    PAGES["/frames-editable"] = "<title>F</title><iframe src=/editable-body></iframe>"
    client.open("/frames-editable")
    body = client.id_of("generic '' value: one")
    edit(client, body, "one\ntwo", "1\n2")
    assert value(client, body) == "1\n2 bold"


def test_an_editor_without_a_text_is_an_error(client: Client) -> None:
    PAGES["/drawn"] = (DRAWN % ("CodeMirror", 1, "false")).replace("() => text,", "() => ({}),")
    client.open("/drawn")
    client.act("value", targetId=client.id_of("textbox"), status=409)
    assert "returns no text" in client.message


def test_a_read_only_editor_is_not_edited(client: Client) -> None:
    PAGES["/drawn"] = DRAWN % ("CodeMirror", 1, "true")
    client.open("/drawn")
    edit(client, client.id_of("textbox"), "line 7\n", "", status=409)
    assert "is read-only" in client.message


def test_an_edit_that_the_page_changes_says_so(client: Client) -> None:
    PAGES["/upper"] = """<title>U</title><input aria-label=Code value="abc def"
        oninput="this.value = this.value.toUpperCase()">"""
    client.open("/upper")
    edit(client, "'Code'", "def", "xyz")
    assert "; the page changed the text, which has 'ABC XYZ' there" in client.message
