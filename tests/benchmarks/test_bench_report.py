"""Counting what an observation lets a model use, and reading a soak."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_pages import PAGES, interactive
from web_report import plot, table, usable

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("contender", "text"),
    [
        ("ours", "[3] button 'Count'\n\t[4] textbox 'Field 0' value: x\n\t[5] StaticText 'Save'"),
        ("browsergym", "[a3] button 'Count'\n\t[4] textbox 'Field 0', focused\nStaticText 'Save'"),
        ("playwright-mcp", '- button "Count" [ref=e2]\n- textbox "Field 0" [active] [ref=e7]: x'),
        (
            "browser-use",
            "[24]<button id=b />\n\tCount\n[37]<label />\n\tField 0\n\t[2]<input name=f />\nSave",
        ),
    ],
)
def test_what_is_usable_by_id_is_counted(contender: str, text: str) -> None:
    found = usable(contender, text, "form", ["Count", "Field 0", "Cancel", "not interactive"])
    wanted = 3 if contender == "ours" else 2  # a text of ours has an id too, and can be clicked
    assert found == {"sight": 2, "in_sight": 3, "page": wanted, "all": 25}


def test_boxes_of_browser_use_are_named_after_them() -> None:
    text = "[7]<label />\n\t[1]<input type=radio name=r />\n\tRadio 3\n[9]<button />\n\tSave"
    found = usable("browser-use", text, "form", ["Radio 3", "Save", "Help"])
    assert found["sight"] == 2


def test_the_pages_have_what_is_said_of_them() -> None:
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
        "ours": [30.0, 30.0],
        "slow": [],
    }
    page = {
        "click": click,
        "failures": {"slow": ["slow: Timeout\nlog"]},
        "tokens": {"ours": 100, "slow": None},
        "usable": {
            name: {"sight": 1, "in_sight": 1, "page": 1, "all": 1} for name in ("ours", "slow")
        },
    }
    opening = {name: [5.0] for name in click}
    return {"rounds": 2, "pages": {"tiny": page}, "opening": opening, "memory": {"ours": {1: 99.6}}}


def test_the_table_tells_ratios_and_failures(measured: dict[str, object]) -> None:
    told = table(measured)
    assert "ours / floor: click + walk: tiny 1.50" in told
    assert "failed on tiny: 1 x slow: Timeout" in told
    assert "100 1/1 1/1" in told and "1: 100" in told


@pytest.mark.slow
def test_the_plot_is_drawn(measured: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot(measured, str(tmp_path / "plot.svg"))
    assert "<svg" in (tmp_path / "plot.svg").read_text()
