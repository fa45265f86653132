"""`BrowserLease`: a browser leased from a server: open, renew, suspend, reconnect, close."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ck_pro.exceptions import BrowserServerError, LeaseExpired
from ck_web.browser import kept_servers
from ck_web.browser.client import BrowserClient, RequestRefused, Sandbox
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.server_process import BrowserServer
from ck_web.browser.shared_servers import acquire_server, release_server, running_server
from web_server.contract import FEATURES

_PARKED_SECONDS = 1800.0  # a server ends an unused lease after this time by default
_MIN_LEASE_SECONDS = 20.0
LAST_SECONDS = 60.0
"""A lease with less time that cannot be renewed ends the run before its next step."""


class BrowserLease:
    """A lease of one browser, and the server it runs on.

    Not thread-safe, except `close` and `renew`.

    Args:
        config: the settings.
        keep_after_exit: a server that this process started keeps a suspended browser after the
            process exits.
        setting: where the configuration is among the settings of a command, for messages.

    Attributes:
        sandbox: the leased browser; None before `open` and after `close`.
        server: the server, if this process started it.
    """

    def __init__(self, config: WebEnvConfig, keep_after_exit: bool, setting: str):
        self.config = config
        self.sandbox: Sandbox | None = None
        self.server: BrowserServer | None = None
        self._setting = setting
        self._keep_after_exit = keep_after_exit
        self._client: BrowserClient | None = None
        self._renew_at = math.inf
        self._held = False
        self._borrowed = False
        self._closing = threading.Lock()

    @property
    def client(self) -> BrowserClient:
        """The connection. Renews the lease when half of its time is over.

        Raises:
            BrowserServerError: the lease is closed, or cannot be renewed.
        """
        if self._client is None or self.sandbox is None:
            raise BrowserServerError("this browser is already closed")
        if time.monotonic() > self._renew_at:
            self._renew_at = math.inf
            self._hold(replace(self.sandbox, expires_at=self._renewed(self._client, self.sandbox)))
        return self._client

    def check(self) -> None:
        """Renew the lease if it ends within a minute.

        Raises:
            LeaseExpired: it cannot be renewed.
            BrowserServerError: the browser is closed, or the server failed.
        """
        client, sandbox = self.client, self.sandbox
        if sandbox is None or sandbox.expires_at is None:
            return
        if sandbox.expires_at - time.time() < LAST_SECONDS:
            sandbox = replace(sandbox, expires_at=self._renewed(client, sandbox))
            self._hold(sandbox)
        left = (sandbox.expires_at or math.inf) - time.time()
        if left < LAST_SECONDS:
            raise LeaseExpired(
                f"the lease of the browser {sandbox.id[:8]} ends in {max(0, left):.0f} s and was "
                "not renewed; a resumed run opens a new browser"
            )

    def _renewed(self, client: BrowserClient, sandbox: Sandbox) -> float | None:
        """Return the end of the lease after a renewal; the present end if it is not possible."""
        return _renew(client, sandbox.id, seconds=self.config.lease_seconds) or sandbox.expires_at

    def open(self) -> None:
        """Connect to the server, started if necessary, and lease a browser.

        Raises:
            BrowserServerError: no server, no free browser, or the server failed.
        """
        client = self._client = self._connect()
        if self.config.sandbox_id:
            self._attach(client, self.config.sandbox_id)
            return
        size = (self.config.viewport_width, self.config.viewport_height)
        # a server that this process started has the rules already
        rules = self.config.rules() if self.config.given_server() else {"allow": [], "block": []}
        self._hold(
            client.get_browser(
                viewport=size,
                lease_seconds=self.config.lease_seconds,
                allow=rules["allow"],
                block=rules["block"],
                secrets=self.config.secret_values(),
            )
        )

    def _attach(self, client: BrowserClient, browser_id: str) -> None:
        """Use a browser that another program leased; `close` does not end its lease.

        Raises:
            BrowserServerError: there is no such browser.
        """
        features = frozenset(FEATURES)
        self._borrowed = True
        self.sandbox = Sandbox(browser_id, client.url, None, features)
        self._hold(replace(self.sandbox, expires_at=self._renewed(client, self.sandbox)))

    def reconnect(self, suspended: Mapping[str, Any]) -> bool:
        """Connect to a suspended browser again, if it is still leased; return whether it is.

        Args:
            suspended: from `suspend` of an earlier lease.
        """
        client = self._client = self._connect_again(str(suspended.get("server")))
        if client is None:
            self.close()
            return False
        features = frozenset(suspended.get("features") or ())
        self.sandbox = Sandbox(suspended["browserId"], client.url, None, features)
        self._borrowed = bool(suspended.get("borrowed"))
        if suspended.get("rules", self._rules()) != self._rules():
            self.close()
            return False
        try:
            expires_at = self._renewed(client, self.sandbox)
        except BrowserServerError:  # the lease or the server has ended
            self.close()
            return False
        self._hold(replace(self.sandbox, expires_at=expires_at))
        return True

    def suspend(self, after_exit: bool = True) -> dict[str, Any] | None:
        """Disconnect without closing the browser.

        The server keeps the browser until the lease ends, or until another client finds no free
        browser.

        Args:
            after_exit: whether a server that this process started keeps it when the process exits,
                if `keep_after_exit` is set.

        Returns:
            What `reconnect` of a new lease needs; None if the browser was closed.
        """
        sandbox, client = self.sandbox, self._client
        if sandbox is None or client is None or not self._park(sandbox, client, after_exit):
            self.close()
            return None
        facts = self.facts()
        with self._closing:
            self.sandbox = self._client = None
            server, self.server = self.server, None
        client.close()
        if server is not None:
            release_server(server, max(_PARKED_SECONDS, self.config.keep_server_seconds))
        return facts

    def facts(self) -> dict[str, Any] | None:
        """Return what `reconnect` of a new lease needs; None if there is no browser."""
        sandbox, client = self.sandbox, self._client
        if sandbox is None or client is None:
            return None
        return {
            "server": client.url,
            "browserId": sandbox.id,
            "features": sorted(sandbox.features),
            "rules": self._rules(),
            **({"borrowed": True} if self._borrowed else {}),
        }

    def _rules(self) -> dict[str, Any]:
        """Return what a suspended browser must have in common with the settings."""
        secrets = self.config.secret_domains()
        return {**self.config.rules(), **({"secrets": secrets} if secrets else {})}

    @property
    def survives_kill(self) -> bool:
        """Whether the browser outlives this process if that is killed."""
        return self.server is None or self._held

    def hold(self, held: bool) -> bool:
        """Let a server that this process started outlive a kill of this process, or no longer."""
        sandbox, server = self.sandbox, self.server
        if sandbox is not None and server is not None and self._keep_after_exit:
            self._held = server.hold(sandbox.id, _PARKED_SECONDS if held else 0) and held
        return self.survives_kill

    def renew(self) -> None:
        """Renew the lease now, for a run that waits and sends no requests. Thread-safe."""
        with self._closing:
            client, sandbox = self._client, self.sandbox
        if client is None or sandbox is None:
            return
        try:
            expires_at = self._renewed(client, sandbox)
        except BrowserServerError:  # the next request reports it
            return
        with self._closing:
            if self.sandbox is not None and self.sandbox.id == sandbox.id:
                self._hold(replace(sandbox, expires_at=expires_at))

    def close(self) -> None:
        """Return the browser, and release a server that this process started.

        The lease of a browser that another program leased continues. Later calls have no effect.
        Another thread may be waiting for an action meanwhile.
        """
        with self._closing:
            sandbox, self.sandbox = self.sandbox, None
            client, self._client = self._client, None
            server, self.server = self.server, None
        try:
            if client is not None and sandbox is not None and not self._borrowed:
                client.close_browser(sandbox.id)
        except BrowserServerError:
            pass  # already closed
        finally:
            if client is not None:
                client.close()
            if server is not None:
                release_server(server, self.config.keep_server_seconds)

    def refusal(self, refused: Mapping[str, Any]) -> str:
        """Return the message for a user about a page that the server's policy refuses.

        Args:
            refused: `place`: host and port of the page; `private`: whether the page is not public,
                else a rule blocks it.
        """
        server, place = self.config.given_server(), refused.get("place")
        if not refused.get("private"):
            rule = f"{self._setting}.block" + (f" or --block of {server}" if server else "")
            return f"the browser may not open {place}: {rule} blocks it"
        how = f"start the browser server {server} with --allow {place}"
        if not server:
            how = f"allow it with --allow {place} or -u \"{self._setting}.allow=['{place}']\""
        return f"the browser may not open {place}, which is not a public address: {how}"

    def _connect(self) -> BrowserClient:
        url, token = self.config.given_server(), self.config.token.get_secret_value()
        if url:
            token = token or os.environ.get("CK_WEB_TOKEN", "")
        else:
            self.server = acquire_server(self.config.server_options())
            url, token = self.server.url, self.server.token
        return BrowserClient(url, token=token, timeout=self.config.timeout)

    def _connect_again(self, url: str) -> BrowserClient | None:
        """Connect to the server of a suspended browser; None if the settings name another one."""
        if self.config.given_server():
            client = self._connect()
            return client if client.url == url else None
        self.server = running_server(url)
        token = self.server.token if self.server is not None else kept_servers.token_of(url)
        return BrowserClient(url, token=token, timeout=self.config.timeout) if token else None

    def _hold(self, sandbox: Sandbox) -> None:
        """Store the lease, and when to renew it."""
        self.sandbox = sandbox
        if sandbox.expires_at is not None:
            half = max(_MIN_LEASE_SECONDS, sandbox.expires_at - time.time()) / 2
            self._renew_at = time.monotonic() + half

    def _park(self, sandbox: Sandbox, client: BrowserClient, after_exit: bool) -> bool:
        """Ask the server to keep the browser while no client uses it; return whether it will."""
        if self.server is not None and self._keep_after_exit and after_exit:
            self.server.keep_parked(_PARKED_SECONDS)
        try:
            _renew(client, sandbox.id, parked=True, seconds=self.config.lease_seconds)
        except BrowserServerError:
            return False
        return True


def discard_browser(config: WebEnvConfig, suspended: Mapping[str, Any]) -> None:
    """Close a suspended browser; has no effect if its lease has ended.

    Args:
        config: the settings of the browser.
        suspended: from `BrowserLease.suspend`.
    """
    lease = BrowserLease(config, keep_after_exit=False, setting="")
    if lease.reconnect(suspended):
        lease.close()


def _renew(
    client: BrowserClient, browser_id: str, parked: bool = False, seconds: float | None = None
) -> float | None:
    """Return the new end of a lease; None if the server does not support the request.

    Raises:
        BrowserServerError: the browser is not leased any longer, or the server failed.
    """
    try:
        return client.renew_browser(browser_id, parked=parked, lease_seconds=seconds)
    except RequestRefused as e:
        if e.lease_ended:
            raise
        return None
