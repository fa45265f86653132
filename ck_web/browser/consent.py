"""`Consent`: what is done about the cookie banners of one browser's pages."""

from __future__ import annotations

from collections.abc import Callable

from ck_pro.events import BrowserAction
from ck_web.browser.browser import Browser
from ck_web.browser.client import RequestRefused
from ck_web.page.banners import find_banner
from ck_web.page.page_text import one_line
from ck_web.page.state import WebState, is_other_page

_BANNERS_PER_SITE = 2


class Consent:
    """Answers cookie banners with as little consent as they offer, or tells of them.

    One that comes back after it was answered, or is none after all, is left to the model, and so
    is one that an action of the model opened.

    Args:
        browser: whose pages.
        mode: `WebEnvConfig.cookie_banners`.
        approved: a click as it was approved, or None.
    """

    def __init__(
        self,
        browser: Browser,
        mode: str,
        approved: Callable[[BrowserAction], BrowserAction | None],
    ):
        self._browser = browser
        self._approved = approved
        self._mode = mode
        self._answered: dict[str, int] = {}  # site -> banners answered there

    def answer(self) -> bool:
        """Answer the banner of the page as it is known; whether there was one to answer."""
        if self._mode != "dismiss":
            return False
        state = self._browser.state
        site = _site(state.step_url)
        banner = find_banner(state.current_accessibility_tree)
        if not banner or not banner.answer or self._answered.get(site, 0) >= _BANNERS_PER_SITE:
            return False
        self._answered[site] = self._answered.get(site, 0) + 1
        button = banner.answer
        click = self._approved(BrowserAction(name="click", target=button.id))
        if click is None:
            return False
        try:
            self._browser.send(click)
        except RequestRefused:
            return False
        self._browser.pending.append(
            f"a cookie banner was answered by {button.role} {one_line(button.name)!r}"
        )
        return True

    def answer_late(self, before: WebState) -> bool:
        """Answer a banner that came by itself since the last action, as many do after a second.

        Args:
            before: the page as that action left it.
        """
        if find_banner(before.current_accessibility_tree):
            return False
        return not is_other_page(before, self._browser.state) and self.answer()

    def notice(self) -> list[str]:
        """The line for the model on a banner that is still there; none, or one."""
        if self._mode == "off":
            return []
        banner = find_banner(self._browser.state.current_accessibility_tree)
        if banner is None:
            return []
        buttons = [banner.answer] if banner.answer else banner.buttons
        named = " or ".join(f"[{b.id}] {b.role} {one_line(b.name)!r}" for b in buttons[:4])
        return [f"a cookie banner is shown; answer it by {named}"]


def _site(url: str) -> str:
    return "/".join(url.split("/")[:3])
