"""A person's Chromium, for tests of local pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from web_server.chromium.chromium import find_chromium, launch_flags

LIMIT = 60_000.0  # in milliseconds: on a loaded machine Playwright's 5 s are not enough
expect.set_options(timeout=LIMIT)
# the server's too: without them each window costs half a second of processor time more
FLAGS = [flag for flag in launch_flags() if flag.startswith("--disable-features=")]


@contextmanager
def person_chromium() -> Iterator[Browser]:
    """Start a Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, chromium_sandbox=False
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(
    url: str, allowed: tuple[str, ...] = (), browser: Browser | None = None, **options: Any
) -> Iterator[Page]:
    """Open a local page in a new context; errors of its scripts fail the test.

    Args:
        url: the address.
        allowed: parts of messages on the console that are no errors.
        browser: the Chromium; a new one by default.
        options: of the browser context, such as `viewport`.
    """
    if browser is None:
        with person_chromium() as new, opened_page(url, allowed, new, **options) as page:
            yield page
        return
    problems: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    try:
        page = context.new_page()
        page.set_default_timeout(LIMIT)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        page.goto(url)
        yield page
    finally:
        context.close()
    unexpected = [p for p in problems if not any(part in p for part in allowed)]
    assert not unexpected, unexpected
