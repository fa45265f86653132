"""`Browser`: a leased browser with one current page; sends actions and keeps what it looks like."""

from __future__ import annotations

import functools
import logging
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ck_pro.events import BrowserAction
from ck_pro.exceptions import BrowserServerError, LeaseExpired, PageRefused, ToolError
from ck_web.actions.wire_fields import NOT_DONE, TELLING, file_to_upload, reaches, wire_fields
from ck_web.browser import kept_servers
from ck_web.browser import server_process as sandbox
from ck_web.browser.client import LEAN, BrowserClient, RequestRefused
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.downloads import Downloads
from ck_web.browser.files import read_inside, writable
from ck_web.page.page_text import one_line
from ck_web.page.state import WebState, data_url, full_address
from web_server.contract import Observation, ObserveOptions, PerformAction

_log = logging.getLogger(__name__)
_NEWS_LENGTH = 300
_END_SECONDS = 1.0
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_KEPT_SECONDS = 1800.0  # a server ends an unused lease after so long, unless it is told otherwise
_SHORTEST_LEASE = 20.0
GONE = "browser_gone"
"""The server's code for a browser that it does not lend (any more)."""
NOTHING = "nothing"
"""What an action reaches whose element is not on the page."""
_MAX_UPLOAD = 50_000_000  # as many bytes as the server takes


class Browser:
    """A leased browser and what is known of it. Opens at once; not for several threads at once.

    Args:
        config: the settings.
        workdir: where downloads go, and uploads come from.
        target_url: the page to begin with.
        left: what `suspend` of an earlier one returned: that browser is taken up again, if it is
            still leased.
        setting: where the configuration stands among the settings of a command.
        outlive: a server that we started keeps the browser after this process, if it is suspended.

    Attributes:
        state: what it looked like last.
        news: what happened since somebody took them, one line each.
        taken_up: it is one that was left, as it was.

    Raises:
        BrowserServerError: no server, no free browser, or the server failed.
    """

    def __init__(
        self,
        config: WebEnvConfig,
        workdir: Path,
        target_url: str,
        left: Mapping[str, Any] | None = None,
        outlive: bool = False,
        setting: str = "web_env",
    ):
        self.config = config
        self._setting = setting
        self._seen_page = False
        self._outlive = outlive
        self._renew_at = math.inf
        self.workdir = workdir
        self.state = WebState(
            target_url=full_address(target_url), curr_screenshot_mode=config.use_screenshot
        )
        self.pending: list[str] = []
        self.downloads = Downloads(workdir, lambda path: self.client.get_file(path))
        self.lease: sandbox.Sandbox | None = None
        self.server: sandbox.BrowserServer | None = None
        self._client: BrowserClient | None = None
        self._closing = threading.Lock()
        try:
            self.taken_up = left is not None and self._take_up(left)
            if not self.taken_up:
                self._connect()
                with self.explained():
                    self._open()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        url, token = self.config.given_server(), self.config.token.get_secret_value()
        if url:
            token = token or os.environ.get("CK_WEB_TOKEN", "")
        else:
            self.server = sandbox.acquire_server(self.config.server_options())
            url, token = self.server.url, self.server.token
        self._client = BrowserClient(url, token=token, timeout=self.config.timeout)

    def _open(self) -> None:
        assert self._client is not None
        size = (self.config.viewport_width, self.config.viewport_height)
        # a server that we started has the rules already
        rules = self.config.rules() if self.config.given_server() else {"allow": [], "block": []}
        lease = self._client.get_browser(viewport=size, allow=rules["allow"], block=rules["block"])
        self._have(lease)
        assert self.lease is not None
        page_id, seen = self.client.open_page(self.lease.id, self.state.target_url)
        self.state = replace(self.state, browser_id=self.lease.id, page_id=page_id)
        seen = seen or self.look(LEAN)
        if seen.refused:
            raise PageRefused(self._refusal(seen))
        self.take(seen)

    def _refusal(self, seen: Observation) -> str:
        """What a person can do about a page that the policy refuses."""
        place, server = str(seen.refused.get("place")), self.config.given_server()
        if not seen.refused.get("private"):
            by = (
                f"{self._setting}.block or the --block of {server}"
                if server
                else f"{self._setting}.block"
            )
            return f"the browser may not open {place}: it is blocked by {by}"
        how = f"start the browser server {server} with --allow {place}"
        if not server:
            how = f"allow it with -u \"{self._setting}.allow=['{place}']\""
        return f"the browser may not open {place}, which is not a public address: {how}"

    def _have(self, lease: sandbox.Sandbox) -> None:
        """Note a lease, and when to renew it: when half of its time is over."""
        self.lease = lease
        if lease.expires_at is not None:
            half = max(_SHORTEST_LEASE, lease.expires_at - time.time()) / 2
            self._renew_at = time.monotonic() + half

    def _take_up(self, left: Mapping[str, Any]) -> bool:
        """Whether the browser that was left is ours again."""
        if not self._connect_to(str(left.get("server"))):
            return False
        assert self._client is not None
        if left.get("rules", self.config.rules()) != self.config.rules():
            self.lease = sandbox.Sandbox(left["browserId"], self._client.url)
            self.close()
            return False
        try:
            expires = _renewed(self._client, left["browserId"])
            seen = self._client.observe(left["browserId"], left["pageId"], LEAN)
        except BrowserServerError:  # its lease has ended meanwhile, or its server
            self.close()
            return False
        features = frozenset(left.get("features") or ())
        self._have(sandbox.Sandbox(left["browserId"], self._client.url, expires, features))
        self._seen_page = True
        self.downloads.remember(left.get("downloads") or {})
        self.state = replace(self.state, browser_id=left["browserId"], page_id=left["pageId"])
        self.take(seen)
        return True

    def _connect_to(self, url: str) -> bool:
        """Connect to the server that a browser was left at, if it may be ours to use."""
        if self.config.given_server():
            self._connect()
            if self._client is not None and self._client.url == url:
                return True
            self.close()
            return False
        self.server = sandbox.running_server(url)
        token = self.server.token if self.server is not None else kept_servers.token_of(url)
        if token:
            self._client = BrowserClient(url, token=token, timeout=self.config.timeout)
        return bool(token)

    def suspend(self) -> dict[str, Any] | None:
        """Let go of the browser without giving it back.

        Its server keeps it until its lease ends, or until another client finds no free browser.

        Returns:
            What a new `Browser` takes as `left`; None where the browser was given back.
        """
        lease, client = self.lease, self._client
        if lease is None or client is None or not self._parked(lease, client):
            self.close()
            return None
        left = {
            "server": client.url,
            "browserId": lease.id,
            "pageId": self.state.page_id,
            "url": self.state.step_url,
            "downloads": self.downloads.known(),
            "features": sorted(lease.features),
            "rules": self.config.rules(),
        }
        with self._closing:
            self.lease = self._client = None
            server, self.server = self.server, None
        client.close()
        if server is not None:
            sandbox.release_server(server, max(_KEPT_SECONDS, self.config.keep_server_seconds))
        return left

    def _parked(self, lease: sandbox.Sandbox, client: BrowserClient) -> bool:
        """Whether the server keeps the browser for whoever takes it up."""
        if self.server is not None and self._outlive:
            self.server.keep_parked(_KEPT_SECONDS)
        try:
            _renewed(client, lease.id, parked=True)
        except BrowserServerError:
            return False
        return True

    def close(self) -> None:
        """Give the browser back, and the server if we started it; harmless when repeated.

        May be called while an action is under way in another thread.
        """
        with self._closing:
            lease, self.lease = self.lease, None
            client, self._client = self._client, None
            server, self.server = self.server, None
        try:
            if client is not None and lease is not None:
                client.close_browser(lease.id)
        except BrowserServerError:
            pass  # it is gone already, which is what we want
        finally:
            if client is not None:
                client.close()
            if server is not None:
                sandbox.release_server(server, self.config.keep_server_seconds)

    @property
    def client(self) -> BrowserClient:
        """The connection; `BrowserServerError` once closed."""
        if self._client is None or self.lease is None:
            raise BrowserServerError("this browser was closed already")
        if time.monotonic() > self._renew_at:
            self._renew_at = math.inf
            expires = _renewed(self._client, self.lease.id)
            self._have(replace(self.lease, expires_at=expires))
        return self._client

    def look(self, options: ObserveOptions) -> Observation:
        """Observe the page; `take` makes it the state."""
        return self.client.observe(self.state.browser_id, self.state.page_id, options)

    def take(self, seen: Observation) -> None:
        """Let an observation be the state, and copy new downloads."""
        told = [one_line(line, _NEWS_LENGTH) for line in (*seen.events, *seen.dialogs)]
        self.pending += dict.fromkeys(told)
        if seen.refused and seen.refused.get("private"):
            refusal = self._refusal(seen)
            if not self._seen_page:
                raise PageRefused(refusal)
            _report(refusal)
        elif seen.url not in ("", "about:blank") and not seen.refused:
            self._seen_page = True
        self.pending += self.downloads.take(seen)
        self.state = replace(
            self.state,
            page_id=seen.pageId or self.state.page_id,
            step_url=seen.url,
            title=seen.title,
            current_accessibility_tree=seen.yaml,
            boxed_screenshot=data_url(seen.boxed_screenshot or seen.nonboxed_screenshot),
            downloaded_file_path=self.downloads.copies,
        )

    def send(self, action: BrowserAction) -> str:
        """Have the server do an action, and take in what the page is then; the server's words.

        Raises:
            RequestRefused: the action could not be done.
            ToolError: a file to upload cannot be read, or a text is too long for the wire.
        """
        files = self._files(action.arguments["paths"]) if action.name == "upload" else []
        message, seen = self.client.perform(self._request(action, files))
        if action.name not in TELLING:
            self.take(seen or self.look(LEAN))
        return message

    def described(self, action: BrowserAction) -> BrowserAction:
        """The action with what it would reach now, which `send` holds it to.

        Raises:
            BrowserServerError: the server cannot say it.
        """
        if not reaches(action):
            return action.model_copy(update={"url": self.state.step_url})
        if self.lease is not None and "describeAction" not in self.lease.features:
            raise BrowserServerError(
                f"browser server {self.lease.url}: it cannot say what an action reaches, which an "
                "approver needs; update it, or leave web_env.server_url empty"
            )
        try:
            found = self.client.describe_action(self._request(action, []))
        except RequestRefused as e:
            if e.status not in NOT_DONE:
                raise
            found = {}  # there is nothing, so that acting fails
        return action.model_copy(
            update={
                "element": str(found.get("target") or NOTHING),
                "url": str(found.get("url") or self.state.step_url),
                "secret": found.get("secret") is True,
            }
        )

    def _request(self, action: BrowserAction, files: list[dict[str, str]]) -> PerformAction:
        """The action on the wire.

        Raises:
            ToolError: a value is not possible, such as a text that is too long.
        """
        role, name = self.state.element(action.target)
        fields = {**wire_fields(action), "files": files}
        fields.update(browserId=self.state.browser_id, pageId=self.state.page_id)
        fields.update(targetElementType=role, targetElementName=name)
        fields.update(LEAN.model_dump(), observe=action.name not in TELLING)
        if action.element:
            fields.update(expectedTarget=action.element, expectedUrl=action.url)
        try:
            return PerformAction.model_validate(fields)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ToolError(f"not possible: {field}: {first['msg']}") from None

    def _files(self, paths: list[str]) -> list[dict[str, str]]:
        files, left = [], _MAX_UPLOAD
        for path in paths:
            data = read_inside(self.workdir, path, left)
            left -= len(data)
            files.append(file_to_upload(path, data))
        return files

    def save(self, remote: str, local: str) -> str:
        """Save a download, or what is at a URL, in the working directory.

        Args:
            remote: as `Downloads.save` takes it, or an http(s) address.
            local: a path in the working directory.

        Returns:
            one line: the file's path, and for a URL its size and type.

        Raises:
            RequestRefused: there is no file at the URL, or the policy refuses it.
            ToolError: there is no such download, or the path cannot be written.
        """
        if not _ADDRESS.match(remote.strip()):
            return f"saved as {self.downloads.save(remote, local)!r}"
        writable(self.workdir, local)
        request = self._request(BrowserAction(name="save", value=remote.strip()), [])
        message, seen = self.client.perform(request)
        seen = seen or self.look(LEAN)
        written = self.downloads.save_new(seen, local)
        self.take(seen)
        return f"{message} as {written!r}"

    def picture(self) -> bytes:
        """The whole page as a PNG image."""
        return self.client.take_screenshot(self.state.browser_id, self.state.page_id)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of a server that we started and that died say what it said last.

        Raises:
            LeaseExpired: the server does not lend the browser any more.
        """
        try:
            yield
        except RequestRefused as e:
            if e.code != GONE:
                raise  # whoever says no is alive
            raise LeaseExpired(
                f"the lease of the browser {self.state.browser_id[:8]} ended: it was not used for "
                "too long, or its server was restarted; a resumed run opens a new browser at "
                f"{self.state.step_url or self.state.target_url}"
            ) from e
        except BrowserServerError as e:
            ended = self.server.ended(_END_SECONDS) if self.server is not None else ""
            if not ended:
                raise
            raise BrowserServerError(f"the browser server ended by itself: {ended}") from e


@functools.lru_cache(maxsize=100)
def _report(refusal: str) -> None:
    """Report once what a person can do."""
    _log.warning("%s", refusal)


def _renewed(client: BrowserClient, browser_id: str, parked: bool = False) -> float | None:
    """The new end of a lease; None where the server knows no such request.

    Raises:
        BrowserServerError: the browser is not leased any more, or the server failed.
    """
    try:
        return client.renew_browser(browser_id, parked=parked)
    except RequestRefused as e:
        if e.code == GONE:
            raise
        return None
