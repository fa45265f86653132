"""The text of an observation means what a person sees: superscripts, struck text, table cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from observe_lab import Lab

from web_server.session.reading import to_markdown

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def read(lab: Lab, html: str) -> str:
    lab.show(html)
    return to_markdown(lab.run(lab.observer.readable()))


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("1250<sup>1</sup>", "1250^1"),
        ("10<sup>3</sup> kg", "10^3 kg"),
        ("10<sup>3</sup>5", "10^(3)5"),
        ("10<sup>3</sup><b>5</b>", "10^(3)5"),
        ("x<sup>n+1</sup>", "x^(n+1)"),
        ("310<span style='vertical-align: super'>1</span>", "310^1"),
        ("1<sup>st</sup> of May", "1st of May"),
        ("CO<sub>2</sub>", "CO2"),
        ("text<sup>[4]</sup>", "text[4]"),
        ("was <del>9</del> 7", "was ~~9~~ 7"),
        ("<i style='text-decoration: line-through'>9 <b>or 8</b></i>, 7", "~~9~~ ~~or 8~~, 7"),
    ],
)
def test_superscripts_and_struck_text_are_marked(lab: Lab, html: str, shown: str) -> None:
    assert lab.lines(f"<p>{html}</p>") == [f"StaticText '{shown}'"]
    assert read(lab, f"<p>{html}</p>").replace("*", "") == shown
    table = (
        f"<table border=1><tr><td>{html}</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
    )
    assert lab.lines(table)[1] == f"row '{shown} | b'"


def test_names_mark_superscripts_and_struck_text(lab: Lab) -> None:
    html = "<h2>m<sup>2</sup></h2><a href=x>Note 3<sup>1</sup></a> <button><s>9</s> 7</button>"
    assert lab.lines(html) == [
        "heading 'm^2' level: 2",
        "link 'Note 3^1'",
        "button '~~9~~ 7'",
    ]


def test_a_struck_row_and_its_links_are_marked(lab: Lab) -> None:
    cells = "<td><a href=x>Old offer</a></td><td>4</td>"
    html = (
        "<style>.old { text-decoration: line-through }</style>"
        f"<table border=1><tr class=old>{cells}</tr><tr>{cells}</tr></table>"
    )
    assert lab.lines(html)[1:] == [
        "row '~~Old offer~~ | ~~4~~'",
        "link 'Old offer' struck: true",
        "row 'Old offer | 4'",
        "link 'Old offer'",
    ]


def test_a_reference_keeps_its_link(lab: Lab) -> None:
    html = "<p>It is 310<sup><a href=#n>1</a></sup> at most</p>"
    assert lab.lines(html) == ["StaticText 'It is 310^1 at most'", "link '1'"]
    assert read(lab, html) == "It is 310^[1](#n) at most"


INVISIBLE = {
    "transparent": "<span style='opacity: 0'>x</span>",
    "inside a transparent box": "<span style='opacity: 0'><b>x</b></span>",
    "clipped": "<span style='position: absolute; width: 1px; height: 1px; overflow: hidden'>"
    "x</span>",
    "clipped by a path": "<span style='display: inline-block; clip-path: inset(50%)'>x</span>",
    "without ink": "<span style='color: transparent'>x</span>",
    "like the canvas": "<span style='color: #fff'>x</span>",
    "like its background": "<span style='background: #123; color: #123'>x</span>",
    "without size": "<span style='font-size: 0'>x</span>",
}
VISIBLE = {
    "on a dark box": "<span style='background: #000; color: #fff'>x</span>",
    "on a picture": "<div style='position: relative'><img width=99 height=20 src=x>"
    "<span style='position: absolute; left: 2px; color: #fff'>x</span></div>",
    "on a pseudo-element": "<style>i::before { content: ''; position: absolute; z-index: -1;"
    " background: #000; width: 9px; height: 9px }</style><i style='color: #fff'>x</i>",
    "with a shadow": "<span style='color: #fff; text-shadow: 1px 1px #000'>x</span>",
    "filled by a gradient": "<span style='background: linear-gradient(red, blue);"
    " color: transparent; -webkit-background-clip: text'>x</span>",
    "half transparent": "<span style='opacity: .5'>x</span>",
    "placed out of a flat box": "<div style='height: 0; overflow: hidden'>"
    "<span style='position: absolute'>x</span></div>",
}


@pytest.mark.parametrize("html", INVISIBLE.values(), ids=list(INVISIBLE))
def test_invisible_text_is_marked_everywhere(lab: Lab, html: str) -> None:
    page = f"<p>a {html} b</p>"
    seen = "".join(lab.lines(page, scope="page"))
    assert "(invisible: x)" in seen and "(invisible: x)" in read(lab, page)
    row = f"<table border=1><tr><td>{html}</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
    assert lab.lines(row)[1] == "row '(invisible: x) | b'"


def test_hidden_words_that_name_a_picture_are_its_text(lab: Lab) -> None:
    tiny = "position: absolute; width: 1px; height: 1px; overflow: hidden"
    icon = f"<svg width=9 height=9></svg><span style='{tiny}'>True</span>"
    assert lab.lines(f"<p>{icon}</p>") == ["StaticText 'True'"]
    assert read(lab, f"<p>{icon}</p>") == "True"
    html = f"<p>Price <svg width=9 height=9></svg><span style='{tiny}'>$1</span></p>"
    assert lab.lines(html) == ["StaticText 'Price'", "StaticText '(invisible: $1)'"]


@pytest.mark.parametrize("html", VISIBLE.values(), ids=list(VISIBLE))
def test_visible_text_is_not_marked(lab: Lab, html: str) -> None:
    assert "invisible" not in "".join(lab.lines(f"<div>a {html} b</div>"))


def test_text_outside_of_the_page_is_marked_but_not_what_was_scrolled_away(lab: Lab) -> None:
    far = (
        "<p style='position: absolute; left: -9999px'>far</p>"
        "<h2 style='margin-left: -9999px'>H</h2>"
    )
    assert lab.lines(far, scope="page")[0] == "StaticText '(invisible: far)'"
    assert "(invisible: far)" in read(lab, far) and "(invisible: H)" in read(lab, far)
    box = (
        "<div id=box style='height: 50px; overflow: auto'><p style='height: 400px'>top</p>"
        "<p>end</p></div><script>box.scrollTop = 9999</script>"
    )
    assert "invisible" not in "".join(lab.lines(box, scope="page")) + read(lab, box)


def test_a_text_that_contradicts_the_label_is_shown(lab: Lab) -> None:
    html = (
        "<button aria-label='Delete account'>Cancel</button><button aria-label='Close it'>Close"
        "</button><a href=x aria-label=Cart>Cart <b>3</b></a><h2 aria-label=New>Old</h2>"
        "<button aria-label=Menu><i aria-hidden=true>menu_icon</i></button>"
        "<button aria-label=Rate>\u2605\u2605</button>"
    )
    assert lab.lines(html) == [
        "button 'Delete account' text: Cancel",
        "button 'Close it'",
        "link 'Cart' text: Cart 3",
        "heading 'New' level: 2 text: Old",
        "button 'Menu'",
        "button 'Rate'",
    ]


def test_line_breaks_of_a_value_are_marked(lab: Lab) -> None:
    html = (
        "<textarea aria-label=A rows=9>one\n\ntwo</textarea>"
        "<div role=textbox aria-label=B contenteditable><div>x</div><div>y</div></div>"
    )
    lines = lab.lines(html)
    assert lines[0] == "textbox 'A' value: one \u21b5 \u21b5 two multiline: true"
    assert lines[1] == "textbox 'B' multiline: true value: x \u21b5 y"


def test_words_that_a_style_sheet_separates_are_not_glued_in_reading(lab: Lab) -> None:
    block = "<span style='display: block'>a</span><a href=x style='display: flex'>b</a>c"
    assert read(lab, f"<div>{block}</div>").split() == ["a", "[b](x)", "c"]
    inline = "x<span style='display: inline-block'>y</span>z <i>p</i>q"
    assert read(lab, f"<p>{inline}</p>") == "x y z *p*q"


def test_reading_has_the_text_of_style_sheets_and_of_pictures(lab: Lab) -> None:
    html = (
        "<style>.q::before { content: 'No. ' } .q::after { content: ' done' }"
        " .u { text-transform: uppercase }</style><p class=q>5</p><p class=u>loud</p>"
        "<p>Is <img src=y.svg alt=active width=9 height=9>, <i title=locked class=icon></i>"
        "<a href=x aria-label=Edit><svg width=9 height=9></svg></a></p>"
        "<svg width=99 height=20><title>Chart</title><text y=15>12 kg</text></svg>"
    )
    text = read(lab, html)
    assert "No. 5 done" in text and "LOUD" in text
    assert "Is [image: active], [image: locked]" in text and "[image: Edit]" in text
    assert "[image: Chart]" in text and "12 kg" in text


@pytest.mark.parametrize(
    ("html", "near"),
    [
        ("to <input>", "to"),
        ("<p>Owner: <input></p>", "Owner"),
        ("<div><span>Owner *</span><div><select></select></div></div>", "Owner"),
        ("<table border=1><tr><td>Owner:<td><input></table>", "Owner"),
        ("<input type=checkbox> Remember me", "Remember me"),
        ("<table border=1><tr><td>Agree<td><input type=radio></table>", "Agree"),
        ("Owner <button>Find</button><input>", ""),
        ("<label>Owner <input></label>", ""),
    ],
)
def test_a_field_without_a_name_has_the_text_beside_it(lab: Lab, html: str, near: str) -> None:
    lines = [line for line in lab.lines(html) if re.match("textbox|combobox|checkbox|radio", line)]
    assert re.findall(r" near: (.*?)(?= \w+: |$)", lines[0]) == ([near] if near else [])


DOTS = "<style>.dot { display: inline-block; width: 9px; height: 9px }</style>"


def dot(color: str) -> str:
    return f"<span class='dot' style='background: {color}'></span>"


def test_the_colour_of_a_dot_is_shown_where_colours_differ(lab: Lab) -> None:
    rows = f"<tr><td>{dot('#d22')}<td>north<tr><td>{dot('#2a4')}<td>south"
    shown = lab.lines(f"{DOTS}<table border=1>{rows}</table><p>{dot('orange')} east</p>")
    assert shown == [
        "table ''",
        "row '(red) | north'",
        "row '(green) | south'",
        "StaticText '(orange) east'",
    ]


def test_dots_of_one_colour_are_decoration(lab: Lab) -> None:
    rows = f"<tr><td>{dot('#d22')}<td>north<tr><td>{dot('#d22')}<td>south"
    assert lab.lines(f"{DOTS}<table border=1>{rows}</table>")[1] == "row '| north'"
