"""The report of `web.py`: usable elements, table, plot."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_pages import PAGES, interactive
from web_report import plot, table, usable

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("contender", "text"),
    [
        (
            "web_server",
            "[3] button 'Count'\n\t[4] textbox 'Field 0' value: x\n\t[5] StaticText 'Save'",
        ),
        ("browsergym", "[a3] button 'Count'\n\t[4] textbox 'Field 0', focused\nStaticText 'Save'"),
        ("playwright-mcp", '- button "Count" [ref=e2]\n- textbox "Field 0" [active] [ref=e7]: x'),
        (
            "browser-use",
            "[24]<button id=b />\n\tCount\n[37]<label />\n\tField 0\n\t[2]<input name=f />\nSave",
        ),
    ],
)
def test_elements_that_are_usable_by_id_are_counted(contender: str, text: str) -> None:
    found = usable(contender, text, "form", ["Count", "Field 0", "Cancel", "not interactive"])
    on_page = 3 if contender == "web_server" else 2  # its texts have ids, too
    assert found == {"view": 2, "in_view": 3, "page": on_page, "all": 25}


def test_labels_of_radio_buttons_of_browser_use_are_found() -> None:
    text = "[7]<label />\n\t[1]<input type=radio name=r />\n\tRadio 3\n[9]<button />\n\tSave"
    found = usable("browser-use", text, "form", ["Radio 3", "Save", "Help"])
    assert found["view"] == 2


def test_the_pages_contain_their_interactive_elements() -> None:
    found = {page: interactive(page) for page in PAGES}
    for page, html in PAGES.items():
        for name in found[page]:
            last = name if page == "table" else name.rpartition(" ")[2]
            assert last in html
    assert [len(names) for names in found.values()] == [1, 25, 381, 1668]
    assert 3400 < PAGES["article"].count("<") - PAGES["article"].count("</") < 3600
    assert 10_000 < PAGES["table"].count("<") - PAGES["table"].count("</") < 10_020


@pytest.fixture
def measured() -> dict[str, object]:
    click = {
        "floor: click + walk": [20.0],
        "floor: mouse + walk": [10.0],
        "web_server": [30.0, 30.0],
        "slow": [],
    }
    page = {
        "click": click,
        "failures": {"slow": ["slow: Timeout\nlog"]},
        "tokens": {"web_server": 100, "slow": None},
        "usable": {
            name: {"view": 1, "in_view": 1, "page": 1, "all": 1} for name in ("web_server", "slow")
        },
    }
    opening = {name: [5.0] for name in click}
    return {
        "rounds": 2,
        "pages": {"tiny": page},
        "opening": opening,
        "memory": {"web_server": {1: 99.6}},
    }


def test_the_table_shows_ratios_and_failures(measured: dict[str, object]) -> None:
    text = table(measured)
    assert "web_server / floor: click + walk: tiny 1.50" in text
    assert "failed on tiny: 1 x slow: Timeout" in text
    assert "100 1/1 1/1" in text and "1: 100" in text


@pytest.mark.slow
def test_the_plot_is_drawn(measured: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot(measured, str(tmp_path / "plot.svg"))
    assert "<svg" in (tmp_path / "plot.svg").read_text()
