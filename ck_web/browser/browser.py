"""`Browser`: a leased browser with one current page: observe it and act on it."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ck_pro.events import BrowserAction
from ck_pro.exceptions import BrowserServerError, LeaseExpired, PageRefused, ToolError
from ck_pro.files.kinds import is_document
from ck_web.actions import ACTIONS
from ck_web.browser.client import LEAN, FoundTarget, RequestRefused
from ck_web.browser.config import Pictures, WebEnvConfig
from ck_web.browser.cookie_banners import BannerPolicy
from ck_web.browser.downloads import Downloads
from ck_web.browser.files import check_writable, upload_files, write_inside
from ck_web.browser.lease import BrowserLease
from ck_web.browser.screenshots import Screenshots
from ck_web.page.changes import PageChanges
from ck_web.page.notices import mostly_visual
from ck_web.page.page_text import find_line, lines_of, one_line
from ck_web.page.state import WebState, data_url, full_url
from web_server.contract import Observation, ObserveOptions, PerformAction

_log = logging.getLogger(__name__)
_MESSAGE_LENGTH = 300
_WEB_URL = re.compile(r"https?://", re.IGNORECASE)
_MAX_UNCHANGED = 3
_EXIT_SECONDS = 1.0  # how long to wait for the exit code of a server that does not reply
_NO_TARGET = "nothing"
"""The target of an action whose element is not on the page, for approvers."""
NOTHING_CHANGED = "; nothing changed"
"""How the server ends the message of an action without effect."""
_SAME_DOCUMENT = "; the page changed"
"""How the server ends the message of an action that changed the document but did not leave it."""
_OTHER_DOCUMENT = "; the page is now "
"""What the server's message contains after an action that led to another document."""

_WITH_ELEMENTS = LEAN.model_copy(update={"elements": True})


class Browser:
    """A leased browser with one current page. Not thread-safe, except `close`.

    The constructor opens the browser.

    Args:
        config: the settings.
        workdir: folder for downloads and uploads.
        target_url: the start page.
        pictures: when observations have a screenshot.
        suspended: from `suspend` of an earlier browser. That one is used again if it is still
            leased.
        keep_after_exit, setting: see `BrowserLease`.
        approve: returns a click on a cookie banner as approved, or None.

    Attributes:
        state: its last known state.
        pending: what happened since the last observation, one line each.
        unchanged: how many actions in a row had no effect.
        named: lines of the elements that the last request named.
        screenshots: when observations have a screenshot, and of what.
        reconnected: whether it is the suspended browser.

    Raises:
        BrowserServerError: no server, no free browser, or the server failed.
    """

    def __init__(
        self,
        config: WebEnvConfig,
        workdir: Path,
        target_url: str,
        *,
        pictures: Pictures,
        suspended: Mapping[str, Any] | None,
        keep_after_exit: bool,
        setting: str,
        approve: Callable[[BrowserAction], BrowserAction | None],
    ):
        self.config, self.workdir = config, workdir
        self.state = WebState(
            target_url=full_url(target_url), curr_screenshot_mode=config.use_screenshot
        )
        self.pending: list[str] = []
        self.unchanged = 0
        self.screenshots = Screenshots(config, pictures)
        self.lease = BrowserLease(config, keep_after_exit, setting)
        self.downloads = Downloads(workdir, self._download)
        self.banners = BannerPolicy(self, config.cookie_banners, approve)
        self._opened_page = False
        self._failure = ""  # of the last navigation
        self._data: Any = None  # of the reply to the last action
        self.named: dict[str, str] = {}
        self._changes = PageChanges()
        self._acted = ""  # line of the element of the last request, if it is out of view
        try:
            self.reconnected = suspended is not None and self._reconnect(suspended)
            if not self.reconnected:
                self._open()
        except BaseException:
            self.close()
            raise

    # --- the lease -------------------------------------------------------------------------

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Give the cause if the lease ended, or if a server that this process started exited.

        Raises:
            LeaseExpired: the server does not lend the browser any longer.
            BrowserServerError: the server exited, with its exit code and last output.
        """
        try:
            yield
        except RequestRefused as e:
            if not e.lease_ended:
                raise
            raise LeaseExpired(
                f"the lease of the browser {self.state.browser_id[:8]} ended: it was not used for "
                "too long, or its server was restarted; a resumed run opens a new browser at "
                f"{self.state.step_url or self.state.target_url}"
            ) from e
        except BrowserServerError as e:
            server = self.lease.server
            ended = server.exit_report(_EXIT_SECONDS) if server is not None else ""
            if not ended:
                raise
            raise BrowserServerError(f"the browser server exited: {ended}") from e

    def check_lease(self) -> None:
        """Renew the lease if it ends within a minute; see `BrowserLease.check`."""
        with self._explain_errors():
            self.lease.check()

    def suspend(self, after_exit: bool = True) -> dict[str, Any] | None:
        """Disconnect without closing the browser; see `BrowserLease.suspend`."""
        suspended = self.lease.suspend(after_exit)
        if suspended is None:
            return None
        facts = {"pageId": self.state.page_id, "url": self.state.step_url}
        return {**suspended, **facts, "downloads": self.downloads.known()}

    def facts_after_kill(self) -> dict[str, Any] | None:
        """Return what `suspended` needs if this process is killed; None if it has no browser then.

        It has no address of the page, because the killed run may act on until then.
        """
        facts = self.lease.facts() if self.lease.survives_kill else None
        return facts and {**facts, "pageId": "", "downloads": self.downloads.known()}

    def close(self) -> None:
        """Close the browser; see `BrowserLease.close`."""
        self.lease.close()

    def _open(self) -> None:
        with self._explain_errors():
            self.lease.open()
        sandbox = self.lease.sandbox
        assert sandbox is not None
        self.screenshots.set_scale(sandbox.features)
        if self.config.sandbox_id and self._open_current(sandbox.id):
            return
        with self._explain_errors():
            page_id, first = self.lease.client.open_page(sandbox.id, self.state.target_url)
        self.state = replace(self.state, browser_id=sandbox.id, page_id=page_id)
        seen = first or self.observe(LEAN)
        if seen.refused:
            raise PageRefused(self.lease.refusal(seen.refused))
        self.apply(seen)

    def _open_current(self, browser_id: str) -> bool:
        """Use the current page of a browser that another program leased.

        Returns:
            False if it has no page, or another page is to be opened.
        """
        if self.state.target_url != "about:blank":
            return False
        state, self.state = self.state, replace(self.state, browser_id=browser_id, page_id="")
        try:
            seen = self.observe(LEAN)
        except RequestRefused as e:
            if e.lease_ended or not e.is_action_failure:
                raise
            self.state = state
            return False
        self._opened_page = True
        self.apply(seen)
        return True

    def _reconnect(self, suspended: Mapping[str, Any]) -> bool:
        if not self.lease.reconnect(suspended):
            return False
        self.screenshots.set_scale(suspended.get("features") or ())
        ids = {"browser_id": suspended["browserId"], "page_id": suspended["pageId"]}
        state, self.state = self.state, replace(self.state, **ids)
        try:
            seen = self.observe(LEAN)
        except BrowserServerError:  # the page is closed
            self.state = state
            self.close()
            return False
        self._opened_page = True
        self.downloads.restore(suspended.get("downloads") or {})
        self.state = replace(self.state, downloaded_file_path=self.downloads.copies)
        self.apply(seen)
        return True

    # --- observing -------------------------------------------------------------------------

    def observe(self, options: ObserveOptions) -> Observation:
        """Observe the page. `apply` makes the observation the state."""
        with self._explain_errors():
            return self.lease.client.observe(self.state.browser_id, self.state.page_id, options)

    def _download(self, path: str) -> bytes:
        with self._explain_errors():
            return self.lease.client.get_file(path)

    def apply(self, seen: Observation) -> None:
        """Make an observation the state, and copy new downloads."""
        if seen.events or seen.dialogs:
            lines = [one_line(line, _MESSAGE_LENGTH) for line in (*seen.events, *seen.dialogs)]
            self.pending += dict.fromkeys(lines)
        if seen.refused and seen.refused.get("private"):
            refusal = self.lease.refusal(seen.refused)
            if not self._opened_page:
                raise PageRefused(refusal)
            _warn_once(refusal)
        elif seen.url not in ("", "about:blank") and not seen.refused:
            self._opened_page = True
        self._failure = seen.failure
        copies = self.state.downloaded_file_path
        if seen.downloaded_file_path:
            self.pending += self.downloads.copy_new(seen)
            copies = self.downloads.copies
        messages = tuple(map(str, seen.messages))
        screenshot = seen.boxed_screenshot or seen.nonboxed_screenshot
        self.state = replace(
            self.state,
            page_id=seen.pageId or self.state.page_id,
            step_url=seen.url,
            title=seen.title,
            current_accessibility_tree=seen.yaml,
            boxed_screenshot=data_url(screenshot) if screenshot else "",
            downloaded_file_path=copies,
            messages=messages,
        )

    def refresh(self) -> None:
        """Observe the page, with a screenshot if `pictures` asks for one."""
        pictured = self.screenshots.are_on(self.state.curr_screenshot_mode)
        automatic = self.screenshots.mode == "auto" and not pictured
        with_picture = self.screenshots.options(self.state.step_url)
        seen = self.observe(with_picture if pictured else _WITH_ELEMENTS if automatic else LEAN)
        if automatic and (
            self.without_effect or mostly_visual(seen.yaml, seen.elements, seen.viewport)
        ):
            pictured, events, dialogs = True, seen.events, seen.dialogs
            seen = self.observe(with_picture)
            happened = {"events": events + seen.events, "dialogs": dialogs + seen.dialogs}
            seen = seen.model_copy(update=happened)
        self.apply(seen)
        if pictured:
            self.screenshots.record(seen.url)
        else:  # older servers always send one
            self.state = replace(self.state, boxed_screenshot="")

    @property
    def without_effect(self) -> bool:
        """Whether the last three actions had no effect."""
        return self.unchanged >= _MAX_UNCHANGED

    # --- acting ----------------------------------------------------------------------------

    def perform(self, action: BrowserAction) -> str:
        """Act on the page; return what changed, in one line.

        Raises:
            RequestRefused: the action failed.
            ToolError: a value cannot be used, or a file cannot be read.
        """
        before, known = self.state, len(self.pending)
        message = self.send(action)
        declared = ACTIONS[action.name]
        url = action.value or "" if declared.value_name == "url" else ""
        stayed = True if message.endswith(_SAME_DOCUMENT) else None
        if _OTHER_DOCUMENT in message:
            stayed = False
        acted = self.named.get(action.target, f"[{action.target}]")
        target = acted[1 : acted.find("]")]  # the action may have named it by role and name
        returns = action.name in ("goback", "goforward")
        change = self._changes.of_action(
            before, self.state, url, stayed, target, self._acted, returns
        )
        if declared.expects_change:
            self.unchanged = 0 if change.text else self.unchanged + 1
        if change.is_other_page:
            # the action itself may have opened a banner that appears later
            self.banners.answer()
        pending, self.pending = self.pending[known:], self.pending[:known]
        if pending:
            self.unchanged = 0
        if change.is_other_page and self._failure:
            others = [line for line in pending if line != self._failure]
            return "; ".join(filter(None, [self._failure, change.details, *others]))
        if not change.text:
            return _message(message, pending)
        first = ""
        if declared.keeps_message:
            first = one_line(message.removesuffix(_SAME_DOCUMENT), _MESSAGE_LENGTH)
        return "; ".join(filter(None, [first, change.text, *pending]))

    def ask(self, action: BrowserAction) -> Any:
        """Send an action to the server; return the data of its reply.

        Raises:
            RequestRefused: the action failed.
            ToolError: the server returned no data, or a value cannot be used.
        """
        message = self.send(action)
        if self._data is None:
            raise ToolError(f"{action.name} returned no data: {message}")
        return self._data

    def send(self, action: BrowserAction) -> str:
        """Send an action to the server, and update the state; return the server's message.

        Raises:
            RequestRefused: the action failed.
            ToolError: a value cannot be used, or a file cannot be read.
        """
        paths = action.arguments.get("paths")
        files = upload_files(self.workdir, paths) if paths else []
        options = None if ACTIONS[action.name].reads_only else LEAN
        request = self.request(action, files)
        with self._explain_errors():
            reply = self.lease.client.perform(request, options)
        message, seen, self.named, self._data, self._acted = reply
        if self._acted and (unseen := lines_of(self._acted)):
            self.named.setdefault(action.target, str(replace(unseen[0], states="")))
        if options is not None:
            self.apply(seen or self.observe(options))
        return message

    def save(self, remote: str, local: str) -> str:
        """Save a download or the content of a URL in the working directory.

        Args:
            remote: a download, as for `Downloads.save`, or an http(s) URL.
            local: a path in the working directory.

        Returns:
            One line: the file's path, and for a URL its size and type.

        Raises:
            RequestRefused: the URL has no file, or the policy refuses it.
            ToolError: the download is unknown, or the path cannot be written.
        """
        if not _WEB_URL.match(remote.strip()):
            path = self.downloads.save(remote, local)
            reads = f"; read_document({path!r}) reads it" if is_document(path) else ""
            return f"saved as {path!r}{reads}"
        check_writable(self.workdir, local)
        request = self.request(BrowserAction(name="save", value=remote.strip()))
        with self._explain_errors():
            message, seen, *_ = self.lease.client.perform(request, LEAN)
        seen = seen or self.observe(LEAN)
        written = self.downloads.save_new(seen, local)
        self.apply(seen)
        return f"{message} as {written!r}"

    def set_screenshots(
        self,
        shown: bool,
        path: str,
        marks: bool | None = None,
        region: Sequence[float] | None = None,
    ) -> str:
        """See `ActionTarget.set_screenshots`."""
        self.state = replace(self.state, curr_screenshot_mode=shown)
        self.screenshots.choose(marks, region)
        result = f"screenshots are {'on' if shown else 'off'} from the next observation on"
        if self.screenshots.mode == "off" and shown:
            result = "this run shows no screenshots"
        if not path:
            return result
        with self._explain_errors():
            image = self.lease.client.take_screenshot(self.state.browser_id, self.state.page_id)
        return f"{result}; the page was saved as {write_inside(self.workdir, path, image)!r}"

    def failure(self, error: RequestRefused | ToolError) -> str:
        """Return the reason of a failed action for the model.

        Raises:
            BrowserServerError: the browser itself failed.
        """
        if isinstance(error, ToolError):
            return str(error)
        if not error.is_action_failure:
            raise error
        if error.observation is not None:
            self.apply(error.observation)
        elif error.status == 404:
            self.refresh()  # raises if the browser is missing, not the element
        return error.reason

    def describe_target(self, action: BrowserAction) -> BrowserAction:
        """Return the action with its current target. `send` fails if the target changes.

        Raises:
            BrowserServerError: the server cannot describe targets.
        """
        declared, url = ACTIONS[action.name], self.state.step_url
        facts: dict[str, Any] = {"value_name": declared.value_name, "url": url}
        if not declared.has_target(action):
            return action.model_copy(update=facts)
        sandbox = self.lease.sandbox
        if sandbox is not None and "describeAction" not in sandbox.features:
            raise BrowserServerError(
                f"browser server {sandbox.url} cannot describe the target of an action, which an "
                "approver needs; update it, or leave web_env.server_url empty"
            )
        try:
            with self._explain_errors():
                found = self.lease.client.describe_action(self.request(action))
        except RequestRefused as e:
            if not e.is_action_failure:
                raise
            found = FoundTarget()  # the element is missing, so the action will fail
        facts.update(element=found.target or _NO_TARGET, url=found.url or url, secret=found.secret)
        ids = {name: line[1 : line.find("]")] for name, line in found.named.items()}
        self.named.update((ids[name], line) for name, line in found.named.items())
        facts["target"] = ids.get(action.target, action.target)
        if (goal := action.arguments.get("to")) in ids:
            facts["arguments"] = {**action.arguments, "to": ids[goal]}
        return action.model_copy(update=facts)

    def request(
        self, action: BrowserAction, files: Sequence[Mapping[str, str]] = ()
    ) -> PerformAction:
        """Return the request for an action.

        Raises:
            ToolError: a value cannot be used, such as a text that is too long.
        """
        state = self.state
        fields = ACTIONS[action.name].request_fields(action)
        if self.screenshots.scale != 1:
            self.screenshots.map_to_page(fields)
        fields.update(browserId=state.browser_id, pageId=state.page_id)
        if action.target:
            line = find_line(state.current_accessibility_tree, action.target)
            if line is not None:
                fields.update(targetElementType=line.role, targetElementName=line.name)
        if files:
            fields["files"] = list(files)
        if action.element:
            fields.update(expectedTarget=action.element, expectedUrl=action.url)
        try:
            return PerformAction.model_validate(fields)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ToolError(f"invalid {field}: {first['msg']}") from None


def _message(message: str, pending: list[str]) -> str:
    """Combine the server's message with the events after an action that changed no element."""
    text = one_line(message, _MESSAGE_LENGTH) or "done, and the page looks the same"
    if pending:
        text = text.removesuffix(NOTHING_CHANGED)
    if any(text in line for line in pending):
        return "; ".join(pending)
    return "; ".join([text, *(line for line in pending if line not in text)])


@functools.lru_cache(maxsize=100)
def _warn_once(message: str) -> None:
    _log.warning("%s", message)
