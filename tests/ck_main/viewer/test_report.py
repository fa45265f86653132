"""The report as a page of the viewer, in Chromium: it shows plots, and links lead to runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from analysis_rows import row, session, step, write_rows
from axe import AXE, violations
from playwright.sync_api import Browser

from ck_main.viewer.app import create_app
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.local_page.app import LocalApp

pytestmark = [pytest.mark.integration, pytest.mark.browser]
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[LocalApp]:
    made = session([step(HOSTILE), step(HOSTILE, error="E")], output=HOSTILE)
    rows = [row("good", 1), row("bad", 0, gold=HOSTILE, made=made), row(HOSTILE, 0)]
    a = write_rows(tmp_path / "a.jsonl", rows)
    b = write_rows(tmp_path / "b.jsonl", [row("good", 1), row("bad", 1)])
    library = Library(sources_of([a, b]))
    found = create_app(library)
    library.scan()
    found.start()
    yield found
    found.stop()


def test_the_report_is_inert_styled_and_linked(app: LocalApp, chromium: Browser) -> None:
    errors: list[str] = []
    page = chromium.new_page(bypass_csp=AXE.exists())  # only axe needs it
    page.set_default_timeout(30_000)
    page.goto(app.url)
    page.get_by_role("link", name="Report", exact=True).wait_for()
    page.on("console", lambda message: errors.append(message.text))
    base = app.url.split("/?")[0]
    page.goto(f"{base}/report")
    assert page.title().startswith("Analysis of ")
    assert page.locator("figure svg").count() >= 6
    assert page.locator("p.verdict").inner_text().startswith("B is 50.0 points better than A")
    padding = "getComputedStyle(document.querySelector('.report .tile')).paddingLeft"
    assert page.evaluate(padding) == "14px"
    assert page.locator("script, img").count() == 0
    assert errors == []
    links = page.get_by_role("navigation").get_by_role("link")
    assert links.all_inner_texts() == ["All runs", "a.jsonl", "b.jsonl", "a.jsonl and b.jsonl"]
    if AXE.exists():
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert violations(page) == []
    page.get_by_role("link", name="bad", exact=True).first.click()
    page.wait_for_url(re.compile("/#/run/[0-9a-f]{12}/[^/]+/1$"))
    page.goto(f"{base}/report?a=7")
    assert "there is no source '7'" in page.content()
    page.close()
