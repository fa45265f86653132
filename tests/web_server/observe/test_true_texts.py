"""The text of an observation means what a person sees: superscripts, struck text, table cells."""

from __future__ import annotations

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
