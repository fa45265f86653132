"""`BrowserClient`: the wire of the browser server, one method per route, typed.

Every fault becomes a `BrowserServerError` of one line. Only requests that change nothing are sent
again when a connection breaks: a click that may have happened is never repeated.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import ValidationError

from ck_pro.exceptions import BrowserServerError, ConfigError
from ck_web.browser.server_process import Sandbox
from web_server.contract import Observation, ObserveOptions, PerformAction

LEAN = ObserveOptions(screenshot="none", html=False, fulltree=False, snapshot=False)
"""What an observation carries for an agent that reads text: the tree of the viewport alone."""

_CONNECT_TIMEOUT = 10.0
_QUEUE_TIMEOUT = 330.0  # the server lets a caller wait up to 300 s for a free browser
_ATTEMPTS = 3
_PASSING = frozenset({429, 502, 503, 504})
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(%\w+)?")  # a name, or an address of either version
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class RequestRefused(BrowserServerError):
    """The server understood a request and said no (4xx). `status` is its HTTP status.

    Args:
        message: one line for a person.
        status: 400 malformed, 401 token, 403 policy, 404 not there, 409 cannot be acted on.
        reason: the server's own words.
        observation: what the page looks like after an action that could not be done, if told.
        code: the server's name for the error, if it has one: "browser_gone".
    """

    def __init__(
        self,
        message: str,
        status: int,
        reason: str,
        observation: Observation | None = None,
        code: str = "",
    ):
        super().__init__(message)
        self.code = code
        self.status = status
        self.reason = reason
        self.observation = observation


def server_address(text: str) -> str:
    """The server's address as `http://host:port`, from that or from `host:port`.

    Raises:
        ConfigError: it is neither.
    """
    url = text.strip()
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        named = _HOST.fullmatch(parts.hostname or "") is not None
        usable = parts.scheme in ("http", "https") and named and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"browser server address {text!r} is not usable; write http://HOST:PORT or HOST:PORT"
        )
    return url.rstrip("/")


class BrowserClient:
    """A connection to one browser server. Not for several threads at once.

    Args:
        url: address of the server, `http://host:port` or `host:port`.
        token: its bearer token, where it has one.
        timeout: seconds that one request may take.

    Raises:
        ConfigError: the address is not usable.
    """

    def __init__(self, url: str, *, token: str = "", timeout: float = 150.0):
        self.url = server_address(url)
        self.timeout = timeout
        self._session = requests.Session()
        if urlsplit(self.url).hostname in _LOOPBACK:
            # a proxy of the environment cannot reach our own loopback
            self._session.trust_env = False
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def get_browser(
        self,
        *,
        viewport: tuple[int, int] | None = None,
        lease_seconds: float | None = None,
        storage_state: dict[str, Any] | None = None,
        geo_location: dict[str, float] | None = None,
        tabs: bool = True,
        allow: Sequence[str] = (),
        block: Sequence[str] = (),
    ) -> Sandbox:
        """Lease a browser; waits while all are taken.

        Args:
            viewport: width and height in CSS pixels.
            lease_seconds: the hard end of the lease from now.
            storage_state: cookies and local storage to begin with, in Playwright's form.
            geo_location: latitude, longitude and accuracy.
            tabs: whether pages may open further tabs.
            allow, block: hosts that its pages may and may not reach, within what the server allows.

        Raises:
            BrowserServerError: the server cannot keep to these rules, or does not permit them.
        """
        body: dict[str, Any] = {"storageState": storage_state, "geoLocation": geo_location}
        body["tabs"] = tabs
        if viewport is not None:
            body["viewport"] = {"width": viewport[0], "height": viewport[1]}
        if lease_seconds is not None:
            body["leaseSeconds"] = lease_seconds
        if allow or block:
            body.update(allow=list(allow), block=list(block))
        reply = self._post("getBrowser", body, timeout=max(self.timeout, _QUEUE_TIMEOUT))
        expires, features = reply.get("expiresAt"), reply.get("features")
        lease = Sandbox(
            id=self._field(reply, "browserId", "getBrowser"),
            url=self.url,
            expires_at=float(expires) if isinstance(expires, int | float) else None,
            features=frozenset(map(str, features)) if isinstance(features, list) else frozenset(),
        )
        if (allow or block) and "rules" not in lease.features:
            self.close_browser(lease.id)
            raise BrowserServerError(
                f"browser server {self.url}: it takes no rules from its clients; start it with "
                "--allow and --block instead of web_env.allow and web_env.block, or update it"
            )
        return lease

    def close_browser(self, browser_id: str) -> None:
        """Give the browser back."""
        self._post("closeBrowser", {"browserId": browser_id})

    def renew_browser(self, browser_id: str, *, parked: bool = False) -> float | None:
        """Renew the lease; its new end in seconds since 1970.

        Args:
            browser_id: of the lease.
            parked: the browser is not used until the next request for it. Its lease may end early.
        """
        reply = self._post("renewBrowser", {"browserId": browser_id, "parked": parked})
        expires = reply.get("expiresAt")
        return float(expires) if isinstance(expires, int | float) else None

    def open_page(
        self, browser_id: str, url: str, options: ObserveOptions = LEAN
    ) -> tuple[str, Observation | None]:
        """Open a page; its id, and what it looks like where the server says so at once."""
        body = {**options.model_dump(), "browserId": browser_id, "url": url, "observe": True}
        reply = self._post("openPage", body)
        return self._field(reply, "pageId", "openPage"), self._observed(reply, "openPage")

    def observe(self, browser_id: str, page_id: str, options: ObserveOptions = LEAN) -> Observation:
        """What the page looks like now."""
        body = {**options.model_dump(), "browserId": browser_id, "pageId": page_id}
        reply = self._post("getAccessibilityTree", body, safe=True)
        return self._as_observation(reply, "getAccessibilityTree")

    def describe_action(self, action: PerformAction) -> dict[str, Any]:
        """What an action would reach: `target` (one line), `url`, `secret`.

        Raises:
            RequestRefused: the action names no element of the page.
        """
        return self._post("describeAction", action.model_dump(exclude_none=True), safe=True)

    def perform(self, action: PerformAction) -> tuple[str, Observation | None]:
        """Act on a page; the server's words, and the new view where it gives one at once.

        Raises:
            RequestRefused: the action could not be done; nothing else is wrong.
        """
        reply = self._post("performAction", action.model_dump(exclude_none=True))
        return str(reply.get("message") or ""), self._observed(reply, "performAction")

    def take_screenshot(self, browser_id: str, page_id: str) -> bytes:
        """The whole page as a PNG image."""
        body = {"browserId": browser_id, "pageId": page_id}
        return self._send("POST", "takeScreenshot", body, safe=True).content

    def get_file(self, filename: str) -> bytes:
        """The content of a download, by its path of `downloaded_file_path`."""
        reply = self._post("getFile", {"filename": filename}, safe=True)
        try:
            return base64.b64decode(self._field(reply, "file", "getFile"), validate=True)
        except binascii.Error:
            raise self._broken("getFile", "the file is not base64") from None

    def status(self) -> dict[str, Any]:
        """Version, leased browsers and free slots of the server."""
        return self._json(self._send("GET", "status", None, safe=True), "status")

    def close(self) -> None:
        """Close the connections. Leased browsers stay leased."""
        self._session.close()

    def _post(
        self, route: str, body: dict[str, Any], *, safe: bool = False, timeout: float | None = None
    ) -> dict[str, Any]:
        return self._json(self._send("POST", route, body, safe=safe, timeout=timeout), route)

    def _send(
        self,
        method: str,
        route: str,
        body: dict[str, Any] | None,
        *,
        safe: bool = False,
        timeout: float | None = None,
    ) -> requests.Response:
        """One request; again after a broken connection or a busy server only when `safe`."""
        limits = (_CONNECT_TIMEOUT, timeout or self.timeout)
        for attempt in range(1, _ATTEMPTS + 1):
            last = not safe or attempt == _ATTEMPTS
            try:
                reply = self._session.request(
                    method, f"{self.url}/{route}", json=body, timeout=limits, allow_redirects=False
                )
            except requests.ConnectionError as e:
                if last:
                    raise self._unreachable(e) from None
            except requests.Timeout:
                raise BrowserServerError(
                    f"browser server {self.url}: no answer to {route} within {limits[1]:g} s"
                ) from None
            except requests.RequestException as e:
                raise self._broken(route, type(e).__name__) from None
            else:
                if reply.ok or last or reply.status_code not in _PASSING:
                    return self._checked(reply, route)
            time.sleep(0.1 * 4 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, reply: requests.Response, route: str) -> requests.Response:
        if reply.status_code == 200:
            return reply
        said = _reason(reply)
        message = f"browser server {self.url}: {route}: {said} (HTTP {reply.status_code})"
        if reply.status_code in (429, 503):
            raise BrowserServerError(f"{message}; try later, or start it with more --max-browsers")
        if 400 <= reply.status_code < 500:
            facts = _json_object(reply)
            seen, code = self._observed(facts, route), str(facts.get("code") or "")
            raise RequestRefused(message, reply.status_code, said, seen, code)
        raise BrowserServerError(message)

    def _json(self, reply: requests.Response, route: str) -> dict[str, Any]:
        data = _json_object(reply)
        if not data:
            raise self._broken(route, "the reply is not a JSON object; is it a browser server?")
        return data

    def _observed(self, reply: dict[str, Any], route: str) -> Observation | None:
        """The observation within a reply; older servers send none."""
        inner = reply.get("observation")
        return self._as_observation(inner, route) if isinstance(inner, dict) else None

    def _as_observation(self, data: dict[str, Any], route: str) -> Observation:
        try:
            return Observation.model_validate({k: v for k, v in data.items() if v is not None})
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            field = ".".join(str(p) for p in first["loc"])
            raise self._broken(route, f"observation field '{field}': {first['msg']}") from None

    def _field(self, reply: dict[str, Any], name: str, route: str) -> str:
        value = reply.get(name)
        if not isinstance(value, str | int):
            raise self._broken(route, f"the reply has no '{name}'")
        return str(value)

    def _broken(self, route: str, what: str) -> BrowserServerError:
        return BrowserServerError(f"browser server {self.url}: {route}: {what}")

    def _unreachable(self, error: requests.ConnectionError) -> BrowserServerError:
        refused = "refused" in str(error)
        what = "nothing listens there" if refused else "the connection broke"
        return BrowserServerError(
            f"browser server {self.url}: {what}; start one with `python -m web_server`, or leave "
            "web_env.server_url empty and one is started for you"
        )


def _json_object(reply: requests.Response) -> dict[str, Any]:
    """The JSON object that a reply holds; empty when it holds none."""
    try:
        data = reply.json()
    except requests.JSONDecodeError:
        data = None
    return data if isinstance(data, dict) else {}


def _reason(reply: requests.Response) -> str:
    """What the server said, in one line of bounded length."""
    said = _json_object(reply).get("error")
    text = " ".join(str(said or reply.text or reply.reason).split())
    return text if len(text) <= 500 else text[:497] + "..."
