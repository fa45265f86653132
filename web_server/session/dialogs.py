"""Answer a page's dialogs by policy, so that none blocks it, and report them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from playwright.async_api import Dialog, Error, Page

from web_server.quoting import quoted
from web_server.session.pending_events import PendingEvents

MAX_DIALOGS = 20
"""Dialogs that a page may show during one action."""


class Dialogs:
    """The dialogs of one page.

    Alerts are accepted. Questions are dismissed, unless the client queued an answer. A client that
    does not follow tabs may not know of answers, so its pages may be left without one.

    Args:
        page: the page.
        pending: where dialogs are reported, and where answers are queued.
        may_leave: whether to accept "leave this page?" without a queued answer.
        on_excess: called when the page shows too many dialogs.

    Attributes:
        stays: how often the page asked whether to leave it, and was not left.
        stayed: set when that happens.
    """

    def __init__(
        self,
        page: Page,
        pending: PendingEvents,
        may_leave: Callable[[], bool],
        on_excess: Callable[[], None],
    ) -> None:
        self._pending = pending
        self._may_leave = may_leave
        self._on_excess = on_excess
        self._count = 0
        self.stays = 0
        self.stayed = asyncio.Event()
        page.on("dialog", self._on_dialog)

    def begin_action(self) -> None:
        """Count dialogs from zero."""
        self._count = 0

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._count += 1
        # An alert asks nothing: a queued answer is for a question.
        queued = None if dialog.type == "alert" else self._pending.take_answer()
        accept, text = queued or (self._is_accepted(dialog.type), None)
        if dialog.type == "prompt" and text is None:
            text = dialog.default_value
        if dialog.type == "beforeunload" and not accept:
            self.stays += 1
            self.stayed.set()
        if self._count >= MAX_DIALOGS:
            # An answer would only bring the next dialog.
            self._pending.note(f"the page showed {MAX_DIALOGS} dialogs in a row", in_tree=True)
            self._on_excess()
            return
        self._pending.note_dialog(_report(dialog, accept, text, queued=queued is not None))
        try:
            if not accept:
                await dialog.dismiss()
            elif dialog.type == "prompt":
                await dialog.accept(text)
            else:
                await dialog.accept()
        except Error:
            pass  # the page closed

    def _is_accepted(self, kind: str) -> bool:
        return kind == "alert" or (kind == "beforeunload" and self._may_leave())


def _report(dialog: Any, accepted: bool, text: str | None, *, queued: bool) -> str:
    """Return the line that reports a dialog, its answer, and how to answer it differently."""
    message = quoted(dialog.message, 500)
    leaving = dialog.type == "beforeunload"
    if not accepted and not queued:
        asked = "whether to leave it" if leaving else f"{message} ({dialog.type})"
        result = "it was not left" if leaving else "it was dismissed"
        answer = "answer_dialog with a text" if dialog.type == "prompt" else "answer_dialog"
        return f"the page asked {asked}: {result}; to accept, {answer} first, then act again"
    if leaving:
        return f"the page asked whether to leave it: {'yes' if accepted else 'no'}"
    answer = "accepted" if accepted else "dismissed"
    if accepted and dialog.type == "prompt":
        answer += f" with {quoted(text or '', 200)}"
    return f"{dialog.type} {message} was {answer}"
