"""A person's Chromium, for tests of local pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

from web_server.chromium.chromium import find_chromium

SECONDS = 30_000.0  # Playwright counts milliseconds


@contextmanager
def opened_page(url: str, allowed: tuple[str, ...] = (), **options: Any) -> Iterator[Page]:
    """Open a local page in a private Chromium; errors of its scripts fail the test.

    Args:
        url: the address.
        allowed: parts of messages on the console that are not errors.
        options: of the browser context, such as `viewport`.
    """
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium("")))
        try:
            context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
            page = context.new_page()
            page.set_default_timeout(SECONDS)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "console", lambda said: problems.append(said.text) if said.type == "error" else None
            )
            page.goto(url)
            yield page
        finally:
            browser.close()
    assert [p for p in problems if not any(part in p for part in allowed)] == []
