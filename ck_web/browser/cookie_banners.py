"""`BannerPolicy`: answers or reports the cookie banners of one browser's pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ck_pro.events import BrowserAction
from ck_web.browser.client import RequestRefused
from ck_web.page.banners import find_banner
from ck_web.page.changes import is_other_page
from ck_web.page.page_text import one_line
from ck_web.page.state import WebState

_MAX_ANSWERS_PER_SITE = 2


class BannerPage(Protocol):
    """The browser, as this module uses it."""

    state: WebState
    pending: list[str]

    def send(self, action: BrowserAction) -> str:
        """Send an action to the server; return its message."""
        ...


class BannerPolicy:
    """Answers cookie banners with the least consent that they offer, or reports them.

    A banner that returns after an answer, or that an action of the model opened, is left to the
    model.

    Args:
        browser: the browser.
        mode: `WebEnvConfig.cookie_banners`.
        approve: returns a click as approved, or None.
    """

    def __init__(
        self,
        browser: BannerPage,
        mode: str,
        approve: Callable[[BrowserAction], BrowserAction | None],
    ):
        self._browser = browser
        self._approve = approve
        self._mode = mode
        self._answers: dict[str, int] = {}  # site -> answered banners

    def answer(self) -> bool:
        """Answer the banner of the page as last observed; return whether it was answered."""
        if self._mode != "dismiss":
            return False
        state = self._browser.state
        site = "/".join(state.step_url.split("/")[:3])
        banner = find_banner(state.current_accessibility_tree)
        if not banner or not banner.answer or self._answers.get(site, 0) >= _MAX_ANSWERS_PER_SITE:
            return False
        self._answers[site] = self._answers.get(site, 0) + 1
        button = banner.answer
        click = self._approve(BrowserAction(name="click", target=button.id))
        if click is None:
            return False
        try:
            self._browser.send(click)
        except RequestRefused:
            return False
        self._browser.pending.append(
            f"a cookie banner was answered with {button.role} {one_line(button.name)!r}"
        )
        return True

    def answer_late(self, before: WebState) -> bool:
        """Answer a banner that appeared since the last action, as many do after a second.

        Args:
            before: the state after that action.
        """
        if find_banner(before.current_accessibility_tree):
            return False
        return not is_other_page(before, self._browser.state) and self.answer()

    def notice(self) -> str:
        """Return the line for the model about a banner on the page; empty if there is none."""
        if self._mode == "off":
            return ""
        banner = find_banner(self._browser.state.current_accessibility_tree)
        if banner is None:
            return ""
        buttons = [banner.answer] if banner.answer else banner.buttons
        named = " or ".join(f"[{b.id}] {b.role} {one_line(b.name)!r}" for b in buttons[:4])
        return f"the page shows a cookie banner; answer it with {named}"
