"""The file chooser that a page opened, to be answered by an upload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Error

from web_server.session.pending_events import PendingEvents
from web_server.settle.activity import Activity

_NO_FIELD = "the page asks for a file by a picker without a field, which Chromium cannot answer"


@dataclass(frozen=True)
class Chooser:
    """A file chooser that a page opened.

    Attributes:
        node_id: DevTools id (`backendNodeId`) of its file field.
        several: the field accepts several files.
        commits: number of documents that the main frame had shown.
    """

    node_id: int
    several: bool
    commits: int


class FileChoosers:
    """Intercept the file choosers of one page.

    Args:
        activity: the page's events and DevTools session.
        pending: where choosers are reported.
    """

    def __init__(self, activity: Activity, pending: PendingEvents) -> None:
        self._activity = activity
        self._pending = pending
        self._last: Chooser | None = None

    async def attach(self) -> None:
        """Start intercepting. Call once, before the first navigation."""
        cdp = self._activity.cdp
        # Playwright reports a chooser only after it has resolved the element.
        cdp.on("Page.fileChooserOpened", self._on_chooser)
        await cdp.send("Page.setInterceptFileChooserDialog", {"enabled": True})

    @property
    def open(self) -> Chooser | None:
        """The last chooser of the present document that has no answer yet."""
        chooser = self._last
        stays = chooser is not None and chooser.commits == self._activity.commits
        return chooser if stays else None

    async def answer(self, chooser: Chooser, files: list[Path]) -> bool:
        """Give files to a chooser; return False if its field was removed."""
        self._last = None
        arguments = {"files": [str(file) for file in files], "backendNodeId": chooser.node_id}
        try:
            await self._activity.cdp.send("DOM.setFileInputFiles", arguments)
        except Error:
            return False
        return True

    def _on_chooser(self, event: dict[str, Any]) -> None:
        node_id = event.get("backendNodeId", 0)
        if not node_id:
            self._pending.note(_NO_FIELD, in_tree=True)
            return
        several = event["mode"] == "selectMultiple"
        self._last = Chooser(node_id, several, self._activity.commits)
        self._pending.note("the page asks for a file: use the action upload", in_tree=True)
