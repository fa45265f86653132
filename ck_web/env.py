"""`WebEnv`: one browser page as an agent's environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ck_pro.environment import Environment
from ck_pro.events import Action, BrowserAction, BrowserObservation, ErrorObservation
from ck_pro.events import Observation as Event
from ck_pro.exceptions import BrowserServerError, ParseError, ToolError
from ck_web import sandbox
from ck_web.actions import parse_action
from ck_web.client import LEAN, BrowserClient, RequestRefused
from ck_web.config import WebEnvConfig
from ck_web.files import safe_name, write_inside
from ck_web.state import WebState, data_url, describe, full_address, one_line, what_changed
from web_server.contract import Observation, ObserveOptions, PerformAction

DOWNLOADS = "downloads"
"""Folder of the working directory that downloads are copied to."""

_MAX_DOWNLOAD = 100_000_000
_NEWS_LENGTH = 300
_NOT_DONE = frozenset({400, 403, 404, 409, 423})


class WebEnv(Environment):
    """A browser with one current page. Opens it at once; `close` gives everything back.

    Safe to use from several threads: actions take turns.

    Args:
        config: the settings, or a dict of them.
        workdir: where downloads, saved files and screenshots go.
        target_url: the page to begin with, instead of the configured one.

    Raises:
        BrowserServerError: no server, no free browser, or the server failed.
    """

    def __init__(
        self,
        config: WebEnvConfig | dict[str, Any] | None = None,
        *,
        workdir: str | Path = ".",
        target_url: str | None = None,
    ):
        self.config = config if isinstance(config, WebEnvConfig) else WebEnvConfig(**config or {})
        self.workdir = Path(workdir)
        self._lock = threading.RLock()
        self._closing = threading.Lock()
        self._server: sandbox.BrowserServer | None = None
        self._client: BrowserClient | None = None
        self._lease: sandbox.Sandbox | None = None
        self._synced: dict[str, str] = {}  # path on the server -> path in the working directory
        self._news: list[str] = []  # what happened since the last observe()
        self._done: list[str] = []  # what came of each action since the last take_log()
        self._state = WebState(
            target_url=full_address(target_url or self.config.target_url),
            curr_screenshot_mode=self.config.use_screenshot,
        )
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # --- the environment -------------------------------------------------------------------

    def observe(self) -> BrowserObservation:
        """The current page as the model reads it, with what happened since the last look."""
        with self._lock, self._explained():
            self._look()
            news, self._news = self._news, []
            s = self._state
            text = "\n".join([f"URL: {s.step_url}", self._page_text(), *self._footer(news)])
            return BrowserObservation(text=text, url=s.step_url, image=s.boxed_screenshot)

    def execute(self, action: Action) -> Event:
        """Do one browser action and tell in one line what came of it.

        Returns:
            `BrowserObservation`, or `ErrorObservation` when the action could not be done.

        Raises:
            BrowserServerError: the server or the browser is gone.
        """
        if not isinstance(action, BrowserAction):
            return ErrorObservation(text=f"a browser cannot do a '{action.kind}' action")
        with self._lock, self._explained():
            shown = describe(self._state, action)
            self._state = replace(
                self._state,
                curr_step=self._state.curr_step + 1,
                action_string=shown,
                error_message="",
            )
            try:
                line = f"{shown}: {self._do(action)}"
            except (RequestRefused, ToolError) as e:
                reason = self._not_done(e)
                self._state = replace(self._state, error_message=reason)
                self._done.append(f"{shown} failed: {reason}")
                return ErrorObservation(text=self._done[-1])
            self._done.append(line)
            return BrowserObservation(text=line, url=self._state.step_url)

    def step_state(self, action_string: str) -> str:
        """Do the action that a string means; one line of what came of it, never an error.

        Raises:
            BrowserServerError: the server or the browser is gone.
        """
        try:
            return self.execute(parse_action(action_string)).text
        except ParseError as e:
            return f"not done: {e}"

    def take_log(self) -> list[str]:
        """One line of each action since this was last asked."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def get_state(self) -> WebState:
        """What is known of the browser; asks nothing of it."""
        with self._lock:
            return self._state

    def state(self) -> dict[str, Any]:
        """`get_state` for the log."""
        return self.get_state().to_dict()

    @property
    def sandbox(self) -> sandbox.Sandbox | None:
        """The leased browser, while there is one."""
        return self._lease

    def stop(self) -> None:
        """Give the browser back, and the server if we started it; harmless when repeated."""
        # not the lock of the actions: one of them may be waiting for a slow page in another thread
        with self._closing:
            lease, self._lease = self._lease, None
            client, self._client = self._client, None
            server, self._server = self._server, None
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

    def close(self) -> None:
        """The same as `stop`."""
        self.stop()

    # --- opening and looking ---------------------------------------------------------------

    def _open(self) -> None:
        url, token = self.config.given_server(), self.config.token.get_secret_value()
        if url:
            token = token or os.environ.get("CK_WEB_TOKEN", "")
        else:
            self._server = sandbox.acquire_server(self.config.server_options())
            url, token = self._server.url, self._server.token
        self._client = BrowserClient(url, token=token, timeout=self.config.timeout)
        with self._explained():
            size = (self.config.viewport_width, self.config.viewport_height)
            self._lease = self._client.get_browser(viewport=size)
            page_id, seen = self._client.open_page(
                self._lease.id, self._state.target_url, self._options()
            )
            self._state = replace(self._state, browser_id=self._lease.id, page_id=page_id)
            if seen is not None:
                self._take(seen)
            else:
                self._look()

    @property
    def _browser(self) -> BrowserClient:
        if self._client is None or self._lease is None:
            raise BrowserServerError("this browser was closed already")
        return self._client

    def _options(self) -> ObserveOptions:
        if not self._state.curr_screenshot_mode:
            return LEAN
        return LEAN.model_copy(update={"screenshot": "boxed"})

    def _look(self) -> None:
        s = self._state
        self._take(self._browser.observe(s.browser_id, s.page_id, self._options()))

    def _take(self, seen: Observation) -> None:
        """Let an observation be the state, and copy new downloads."""
        image = seen.boxed_screenshot or seen.nonboxed_screenshot
        self._state = replace(
            self._state,
            page_id=seen.pageId or self._state.page_id,
            step_url=seen.url,
            title=seen.title,
            current_accessibility_tree=seen.yaml,
            boxed_screenshot=data_url(image) if self._state.curr_screenshot_mode else "",
        )
        told = [one_line(line, _NEWS_LENGTH) for line in (*seen.events, *seen.dialogs)]
        self._news += dict.fromkeys(told)
        known = {d.path: d for d in seen.downloads}
        for path in seen.downloaded_file_path:
            if path not in self._synced:
                info = known.get(path)
                name = info.name if info else path
                self._copy_download(path, name, info.size if info else 0)

    def _copy_download(self, path: str, name: str, size: int) -> None:
        self._synced[path] = ""
        if size > _MAX_DOWNLOAD:
            self._news.append(f"the download {name!r} has {size} bytes: too large, not copied")
            return
        try:
            data = self._browser.get_file(path)
            local = f"{DOWNLOADS}/{safe_name(name)}"
            local = write_inside(self.workdir, local, data, unique=True)
        except (RequestRefused, ToolError) as e:
            self._news.append(f"the download {name!r} could not be copied: {e}")
            return
        self._synced[path] = local
        copies = (*self._state.downloaded_file_path, local)
        self._state = replace(self._state, downloaded_file_path=copies)
        self._news.append(f"your code can open the download as {local!r}")

    def _page_text(self) -> str:
        text, limit = self._state.current_accessibility_tree.rstrip(), self.config.max_page_chars
        if len(text) <= limit:
            return text
        cut = text.rfind("\n", 0, limit)
        return text[: cut if cut > 0 else limit] + "\n(the page text is longer; this is its start)"

    def _footer(self, news: list[str]) -> list[str]:
        lines = [f"Note: {line}" for line in news]
        if self._state.downloaded_file_path:
            lines.append(f"Downloaded files: {', '.join(self._state.downloaded_file_path)}")
        return lines

    # --- acting ----------------------------------------------------------------------------

    def _do(self, action: BrowserAction) -> str:
        """Do the action; what to say of it."""
        arguments = action.arguments
        match action.name:
            case "save":
                return self._save(arguments["remote"], arguments["local"])
            case "screenshot":
                return self._screenshot(arguments["flag"], arguments["path"])
            case "stop" | "nop":
                return "nothing to do in the browser"
            case _:
                return self._perform(action)

    def _perform(self, action: BrowserAction) -> str:
        before, heard = self._state, len(self._news)
        value = action.value or ""
        extra: dict[str, Any] = {}
        if action.name == "wait" and value:
            extra["timeout"] = float(value) * 1000
        role, name = before.element(action.target)
        request = PerformAction(
            **self._options().model_dump(),
            browserId=before.browser_id,
            pageId=before.page_id,
            actionName=action.name,
            targetId=action.target,
            targetElementType=role,
            targetElementName=name,
            actionValue=full_address(value) if action.name == "goto" else value,
            needEnter=bool(action.arguments.get("enter")),
            observe=True,
            **extra,
        )
        message, seen = self._browser.perform(request)
        if seen is not None:
            self._take(seen)
        else:
            self._look()
        # what is told here need not be told again by the next look
        self._news, news = self._news[:heard], self._news[heard:]
        said = what_changed(before, self._state) or one_line(message, _NEWS_LENGTH)
        said = said or "done, and the page looks the same"
        return "; ".join([said, *(line for line in news if line not in said)])

    def _save(self, remote: str, local: str) -> str:
        wanted = remote.strip().removeprefix("./")
        for path, copy in self._synced.items():
            if wanted in (path, copy, path.rsplit("/", 1)[-1], copy.rsplit("/", 1)[-1]):
                written = write_inside(self.workdir, local, self._browser.get_file(path))
                return f"saved as {written!r}"
        known = ", ".join(filter(None, self._synced.values())) or "none"
        raise ToolError(f"no downloaded file {remote!r}; downloaded are: {known}")

    def _screenshot(self, flag: bool, path: str) -> str:
        self._state = replace(self._state, curr_screenshot_mode=flag)
        said = f"screenshots are {'on' if flag else 'off'} from the next observation on"
        if not path:
            return said
        image = self._browser.take_screenshot(self._state.browser_id, self._state.page_id)
        written = write_inside(self.workdir, path, image)
        return f"{said}; the page was saved as {written!r}"

    def _not_done(self, error: RequestRefused | ToolError) -> str:
        """The reason for the model; raises when it is not the action that is at fault."""
        if isinstance(error, ToolError):
            return str(error)
        if error.status not in _NOT_DONE:
            raise error
        if error.observation is not None:
            self._take(error.observation)
        elif error.status == 404:
            self._look()  # raises if it is not the element that is gone, but the browser
        return error.reason

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of a server that we started and that died say what it said last."""
        try:
            yield
        except BrowserServerError as e:
            if self._server is None or self._server.alive:
                raise
            said = self._server.last_words()
            raise BrowserServerError(f"the browser server ended by itself: {said}") from e
