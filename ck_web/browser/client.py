"""`BrowserClient`: typed requests to the browser server, one method per route.

Every failure is a `BrowserServerError` of one line. Only requests that change nothing are retried
after a broken connection: a click that may have happened is never repeated.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from pydantic import ValidationError

from ck_pro.exceptions import BrowserServerError, ConfigError
from web_server.contract import Observation, ObserveOptions, PerformAction, StepPicture

LEAN = ObserveOptions(screenshot="none", html=False, fulltree=False, snapshot=False)
"""Options of an observation for an agent that reads text: only the tree of the viewport."""

_CONNECT_TIMEOUT = 10.0
_QUEUE_TIMEOUT = 330.0  # the server queues a request for a browser for up to 300 s
_PICTURE_TIMEOUT = 15.0
_ATTEMPTS = 3
_TEMPORARY = frozenset({429, 502, 503, 504})
_ACTION_FAILURES = frozenset({400, 403, 404, 409, 423})
_LEASE_ENDED = "browser_gone"  # the server's error code
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(%\w+)?")  # a name, or an IPv4 or IPv6 address
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class ActionReply(NamedTuple):
    """The reply to an action.

    Attributes:
        message: what the action did.
        seen: the page after it, if the server sent it.
        named: the line of each element that the action names, by the text that names it.
        data: JSON data that the action returned; None for none.
        acted: the line of the element acted on, if it is out of view; else empty.
    """

    message: str
    seen: Observation | None
    named: dict[str, str]
    data: Any = None
    acted: str = ""


class FoundTarget(NamedTuple):
    """The target of an action that has not been done.

    Attributes:
        target: the element in one line; empty if there is none.
        url: of its page or frame; empty if the server did not send it.
        secret: the field takes a password or a card number.
        named: see `ActionReply`.
    """

    target: str = ""
    url: str = ""
    secret: bool = False
    named: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Sandbox:
    """A leased browser of a browser server.

    Attributes:
        id: its id in every request (the field `browserId`).
        url: address of the server.
        expires_at: end of the lease in seconds since 1970; None if the server sets none.
        features: what the server supports, see `web_server.contract.FEATURES`.
    """

    id: str
    url: str
    expires_at: float | None = None
    features: frozenset[str] = frozenset()


class RequestRefused(BrowserServerError):
    """The server refused a request (HTTP 4xx).

    Args:
        message: one line for a user.
        status: 400 malformed, 401 token, 403 policy, 404 not found, 409 cannot be acted on.
        reason: the server's message.
        observation: the page after a failed action, if the server sent it.
        code: the server's error code, if any: "browser_gone".
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

    @property
    def is_action_failure(self) -> bool:
        """Whether only the action failed: the browser is unchanged."""
        return self.status in _ACTION_FAILURES

    @property
    def lease_ended(self) -> bool:
        """Whether the server does not lend the browser any longer."""
        return self.code == _LEASE_ENDED


class ServerUnreachable(BrowserServerError):
    """The server does not accept the connection, or broke it."""


def _named_lines(reply: Mapping[str, Any]) -> dict[str, str]:
    """Return the elements of a reply that the request named; empty from an older server."""
    named = reply.get("named")
    return {str(k): str(v) for k, v in named.items()} if isinstance(named, dict) else {}


def server_address(text: str) -> str:
    """Return a server's address as `http://host:port`, from that or from `host:port`.

    Raises:
        ConfigError: the text has another form.
    """
    url = text.strip()
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        has_host = _HOST.fullmatch(parts.hostname or "") is not None
        usable = parts.scheme in ("http", "https") and has_host and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"browser server address {text!r} is not valid; write http://HOST:PORT or HOST:PORT"
        )
    return url.rstrip("/")


class BrowserClient:
    """A connection to one browser server. Not thread-safe.

    Args:
        url: address of the server, `http://host:port` or `host:port`.
        token: its bearer token, if it requires one.
        timeout: seconds for one request.

    Raises:
        ConfigError: the address is not valid.
    """

    def __init__(self, url: str, *, token: str = "", timeout: float = 150.0):
        self.url = server_address(url)
        self.timeout = timeout
        self._session = requests.Session()
        if urlsplit(self.url).hostname in _LOOPBACK:
            # a proxy from the environment cannot reach this machine's loopback
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
        secrets: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Sandbox:
        """Lease a browser; wait while all are in use.

        Args:
            viewport: width and height in CSS pixels.
            lease_seconds: the hard end of the lease, from now.
            storage_state: initial cookies and local storage, in Playwright's form.
            geo_location: latitude, longitude and accuracy.
            tabs: whether pages may open more tabs.
            allow, block: hosts that its pages may and may not reach, within the server's policy.
            secrets: `value` and `domains` of the texts that the server fills in, by name.

        Raises:
            BrowserServerError: the server does not support or permit these rules or secrets.
        """
        body: dict[str, Any] = {"storageState": storage_state, "geoLocation": geo_location}
        body["tabs"] = tabs
        if viewport is not None:
            body["viewport"] = {"width": viewport[0], "height": viewport[1]}
        if lease_seconds is not None:
            body["leaseSeconds"] = lease_seconds
        if allow or block:
            body.update(allow=list(allow), block=list(block))
        if secrets:
            body["secrets"] = {name: dict(secret) for name, secret in secrets.items()}
        reply = self._post("getBrowser", body, timeout=max(self.timeout, _QUEUE_TIMEOUT))
        expires_at, features = reply.get("expiresAt"), reply.get("features")
        sandbox = Sandbox(
            id=self._field(reply, "browserId", "getBrowser"),
            url=self.url,
            expires_at=float(expires_at) if isinstance(expires_at, int | float) else None,
            features=frozenset(map(str, features)) if isinstance(features, list) else frozenset(),
        )
        if (allow or block) and "rules" not in sandbox.features:
            self.close_browser(sandbox.id)
            raise BrowserServerError(
                f"browser server {self.url} accepts no rules from its clients; start it with "
                "--allow and --block instead of web_env.allow and web_env.block, or update it"
            )
        if secrets and "secrets" not in sandbox.features:
            self.close_browser(sandbox.id)
            raise BrowserServerError(
                f"browser server {self.url} fills in no secrets; update it, or leave "
                "web_env.secrets out"
            )
        return sandbox

    def close_browser(self, browser_id: str) -> None:
        """End the lease."""
        self._post("closeBrowser", {"browserId": browser_id})

    def renew_browser(
        self, browser_id: str, *, parked: bool = False, lease_seconds: float | None = None
    ) -> float | None:
        """Renew the lease; return its new end in seconds since 1970.

        Args:
            browser_id: the browser.
            parked: no client uses the browser until the next request for it. The lease may end
                early.
            lease_seconds: the new hard end, from now; the server's default if None.
        """
        body: dict[str, Any] = {"browserId": browser_id, "parked": parked}
        if lease_seconds is not None:
            body["leaseSeconds"] = lease_seconds
        reply = self._post("renewBrowser", body)
        expires_at = reply.get("expiresAt")
        return float(expires_at) if isinstance(expires_at, int | float) else None

    def open_page(
        self, browser_id: str, url: str, options: ObserveOptions = LEAN
    ) -> tuple[str, Observation | None]:
        """Open a page; return its id, and the observation if the server sends it with the reply."""
        body = {**options.model_dump(), "browserId": browser_id, "url": url, "observe": True}
        reply = self._post("openPage", body)
        return self._field(reply, "pageId", "openPage"), self._nested(reply, "openPage")

    def observe(self, browser_id: str, page_id: str, options: ObserveOptions = LEAN) -> Observation:
        """Observe a page."""
        body = {**options.model_dump(), "browserId": browser_id, "pageId": page_id}
        reply = self._post("getAccessibilityTree", body, safe=True)
        return self._observation(reply, "getAccessibilityTree")

    def describe_action(self, action: PerformAction) -> FoundTarget:
        """Return what an action would reach.

        Raises:
            RequestRefused: the element is not on the page.
        """
        reply = self._post("describeAction", action.model_dump(exclude_none=True), safe=True)
        target, url = str(reply.get("target") or ""), str(reply.get("url") or "")
        return FoundTarget(target, url, reply.get("secret") is True, _named_lines(reply))

    def perform(self, action: PerformAction, options: ObserveOptions | None = None) -> ActionReply:
        """Act on a page.

        Args:
            action: the action.
            options: of the observation after it; None for no observation.

        Returns:
            The server's message; the observation, if the server sends it with the reply; and the
            lines of the elements that the action names.

        Raises:
            RequestRefused: the action failed; the browser is unchanged.
        """
        body = action.model_dump(exclude_none=True)
        if options is not None:
            body = {**body, **options.model_dump(), "observe": True}
        reply = self._post("performAction", body)
        seen = self._nested(reply, "performAction")
        return ActionReply(
            str(reply.get("message") or ""),
            seen,
            _named_lines(reply),
            reply.get("data"),
            str(reply.get("acted") or ""),
        )

    def take_screenshot(self, browser_id: str, page_id: str) -> bytes:
        """Return the whole page as a PNG image."""
        body = {"browserId": browser_id, "pageId": page_id}
        return self._send("POST", "takeScreenshot", body, safe=True).content

    def take_picture(self, request: PerformAction) -> StepPicture:
        """Return a small picture of a page; an `actionName` adds what that action acts on."""
        body = request.model_dump(exclude_none=True)
        reply = self._post("takePicture", body, timeout=_PICTURE_TIMEOUT)
        try:
            return StepPicture.model_validate(reply)
        except ValidationError:
            raise self._invalid("takePicture", "the reply is not a picture") from None

    def get_file(self, filename: str) -> bytes:
        """Return the content of a download, by its path in `downloaded_file_path`."""
        reply = self._post("getFile", {"filename": filename}, safe=True)
        try:
            return base64.b64decode(self._field(reply, "file", "getFile"), validate=True)
        except binascii.Error:
            raise self._invalid("getFile", "the file is not base64") from None

    def status(self) -> dict[str, Any]:
        """Return version, leased browsers and free slots of the server."""
        return self._json(self._send("GET", "status", None, safe=True), "status")

    def close(self) -> None:
        """Close the connections. Leases continue."""
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
        """Send a request. If `safe`, retry after a broken connection or a temporary error."""
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
                    f"browser server {self.url}: no reply to {route} within {limits[1]:g} s"
                ) from None
            except requests.RequestException as e:
                raise self._invalid(route, type(e).__name__) from None
            else:
                if reply.status_code == 200:
                    return reply
                if last or reply.status_code not in _TEMPORARY:
                    raise self._error(reply, route)
            time.sleep(0.1 * 4 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")

    def _error(self, reply: requests.Response, route: str) -> BrowserServerError:
        """Return the error for a reply other than 200."""
        reason = _reason(reply)
        message = f"browser server {self.url}: {route}: {reason} (HTTP {reply.status_code})"
        if reply.status_code in (429, 503):
            hint = "retry later, or start the server with more --max-browsers"
            return BrowserServerError(f"{message}; {hint}")
        if 400 <= reply.status_code < 500:
            facts = _json_object(reply)
            seen, code = self._nested(facts, route), str(facts.get("code") or "")
            return RequestRefused(message, reply.status_code, reason, seen, code)
        return BrowserServerError(message)

    def _json(self, reply: requests.Response, route: str) -> dict[str, Any]:
        data = _json_object(reply)
        if not data:
            raise self._invalid(route, "the reply is not a JSON object; is it a browser server?")
        return data

    def _nested(self, reply: dict[str, Any], route: str) -> Observation | None:
        """Return the observation in a reply; older servers send none."""
        inner = reply.get("observation")
        return self._observation(inner, route) if isinstance(inner, dict) else None

    def _observation(self, data: dict[str, Any], route: str) -> Observation:
        try:
            return Observation.model_validate({k: v for k, v in data.items() if v is not None})
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            field = ".".join(str(p) for p in first["loc"])
            raise self._invalid(route, f"observation field '{field}': {first['msg']}") from None

    def _field(self, reply: dict[str, Any], name: str, route: str) -> str:
        value = reply.get(name)
        if not isinstance(value, str | int):
            raise self._invalid(route, f"the reply has no '{name}'")
        return str(value)

    def _invalid(self, route: str, problem: str) -> BrowserServerError:
        return BrowserServerError(f"browser server {self.url}: {route}: {problem}")

    def _unreachable(self, error: requests.ConnectionError) -> ServerUnreachable:
        refused = "refused" in str(error)
        problem = "connection refused" if refused else "the connection broke"
        return ServerUnreachable(
            f"browser server {self.url}: {problem}; start a server with `python -m web_server`, or "
            "leave web_env.server_url empty to start one automatically"
        )


def _json_object(reply: requests.Response) -> dict[str, Any]:
    """Return the JSON object of a reply; empty if there is none."""
    try:
        data = reply.json()
    except requests.JSONDecodeError:
        data = None
    return data if isinstance(data, dict) else {}


def _reason(reply: requests.Response) -> str:
    """Return the server's error message in one line of at most 500 characters."""
    error = _json_object(reply).get("error")
    text = " ".join(str(error or reply.text or reply.reason).split())
    return text if len(text) <= 500 else text[:497] + "..."
