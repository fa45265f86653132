"""`SandboxManager`: a sandbox for one or several runs, made or given, renewed and ended.

A provider makes the sandboxes: browsers of a browser server (`BrowserSandboxes`), desktops of this
machine (`DesktopSandboxes`), or virtual machines of e2b (`ck_web.e2b_sandboxes`).
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ck_pro.exceptions import BrowserServerError, ConfigError, EnvironmentFailure, LeaseExpired
from ck_web.browser.client import BrowserClient
from ck_web.browser.client import Sandbox as BrowserSandbox
from ck_web.browser.config import WebEnvConfig
from ck_web.browser.lease import LAST_SECONDS, BrowserLease
from ck_web.desktop import DesktopComputer, DesktopConfig

PLATFORMS = ("browser", "desktop")
"""The values of `application_platform`."""
_SYNONYMS = {"google-chrome": "browser", "chrome": "browser", "chromium": "browser"}


def application_platform(name: str) -> str:
    """Return the platform that a name means: "browser" or "desktop".

    Raises:
        ConfigError: there is no such platform.
    """
    found = _SYNONYMS.get(name.strip().lower(), name.strip().lower())
    if found not in PLATFORMS:
        raise ConfigError(
            f"application_platform {name!r}: there is no such platform; known are: "
            f"{', '.join((*PLATFORMS, *_SYNONYMS))}"
        )
    return found


@dataclass(frozen=True)
class Sandbox:
    """A place in which an agent acts.

    Attributes:
        id: its id at its provider.
        url: address of its browser server.
        expires_at: its end in seconds since 1970; None if there is none.
        settings: settings for the agent's `web_env`.
        computer: the open `Computer` of a desktop, for `ComputerAgent(computer=...)`; None for a
            browser.
    """

    id: str
    url: str
    expires_at: float | None = None
    settings: Mapping[str, Any] | None = None
    computer: Any = None

    @property
    def platform(self) -> str:
        """Its `application_platform`."""
        return "browser" if self.computer is None else "desktop"

    @property
    def seconds_left(self) -> float:
        """Seconds until its end; infinite if there is none."""
        return float("inf") if self.expires_at is None else self.expires_at - time.time()


class SandboxProvider(Protocol):
    """Makes and ends sandboxes of one kind."""

    def create(self, lease_seconds: float | None) -> Sandbox:
        """Make a sandbox.

        Raises:
            EnvironmentFailure: it is not possible.
        """
        ...

    def connect(self, sandbox_id: str, sandbox_url: str) -> Sandbox:
        """Return an existing sandbox.

        Raises:
            EnvironmentFailure: it does not exist any longer.
        """
        ...

    def renew(self, sandbox: Sandbox, lease_seconds: float | None) -> Sandbox:
        """Check that a sandbox works, and extend its lease; return it with its new end.

        Raises:
            EnvironmentFailure: it does not exist any longer, or does not work.
        """
        ...

    def screenshot(self, sandbox: Sandbox) -> bytes | None:
        """Return a PNG image of its screen; None if there is none."""
        ...

    def end(self, sandbox: Sandbox) -> None:
        """End a sandbox; it may have ended already."""
        ...

    def close(self) -> None:
        """Release what all sandboxes share. Sandboxes that were not ended continue."""
        ...


class SandboxManager:
    """Ensures that a sandbox runs and does not expire. Use it with `with`.

    >>> with SandboxManager(lease_seconds=600) as manager:  # doctest: +SKIP
    ...     agent = WebAgent(web_env=manager.ensure().settings)
    ...     agent.run("Open https://example.com")

    Args:
        sandbox_id, sandbox_url: an existing sandbox to use; it is never ended here. Without them,
            `ensure` makes one, and `close` ends it.
        lease_seconds: length of its lease from the start and from each renewal.
        provider: makes the sandboxes; browsers of an automatically started server by default.

    Raises:
        ConfigError: only one of `sandbox_id` and `sandbox_url` is given, or `lease_seconds` is
            too short.
    """

    def __init__(
        self,
        *,
        sandbox_id: str | None = None,
        sandbox_url: str | None = None,
        lease_seconds: float | None = None,
        provider: SandboxProvider | None = None,
    ):
        if bool(sandbox_id) != bool(sandbox_url):
            raise ConfigError("give sandbox_id and sandbox_url together, or neither of them")
        if lease_seconds is not None and lease_seconds < 2 * LAST_SECONDS:
            raise ConfigError(f"lease_seconds: at least {2 * LAST_SECONDS:g}")
        self.provider: SandboxProvider = provider or BrowserSandboxes()
        self.lease_seconds = lease_seconds
        self.sandbox: Sandbox | None = None
        self._given = (sandbox_id, sandbox_url) if sandbox_id and sandbox_url else None
        self._created = False

    def __enter__(self) -> SandboxManager:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def ensure(self) -> Sandbox:
        """Return the sandbox: made or connected at the first call, checked and renewed at each.

        Raises:
            LeaseExpired: less than a minute is left, and the lease cannot be renewed.
            EnvironmentFailure: it cannot be made, or does not work.
        """
        sandbox = self.sandbox
        if sandbox is None and self._given is not None:
            sandbox = self.provider.connect(*self._given)
        if sandbox is None:
            sandbox, self._created = self.provider.create(self.lease_seconds), True
        else:
            sandbox = self.provider.renew(sandbox, self.lease_seconds)
        self.sandbox = sandbox
        if sandbox.seconds_left < LAST_SECONDS:
            raise LeaseExpired(
                f"the sandbox {sandbox.id[:8]} ends in {max(0.0, sandbox.seconds_left):.0f} s and "
                "cannot be renewed"
            )
        return sandbox

    def use(self, sandbox_id: str, sandbox_url: str) -> None:
        """Use an existing sandbox, if there is none yet; see the arguments of this class."""
        if self.sandbox is None:
            self._given = (sandbox_id, sandbox_url)

    def screenshot(self) -> bytes | None:
        """Return a PNG image of the sandbox's screen; None if there is none."""
        return self.provider.screenshot(self.sandbox) if self.sandbox is not None else None

    def close(self) -> None:
        """End the sandbox if this manager made it. Later calls have no effect."""
        sandbox, self.sandbox = self.sandbox, None
        try:
            if sandbox is not None and self._created:
                self.provider.end(sandbox)
        finally:
            self.provider.close()


class BrowserSandboxes:
    """Leases browsers of a browser server; an automatically started one by default.

    Args:
        config: the settings of the browsers, or a dict of them.
    """

    def __init__(self, config: WebEnvConfig | Mapping[str, Any] | None = None):
        self.config = config if isinstance(config, WebEnvConfig) else WebEnvConfig(**config or {})
        self._leases: dict[str, BrowserLease] = {}
        self._token = ""

    def create(self, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        config = self.config
        if lease_seconds is not None:
            config = config.updated({"lease_seconds": lease_seconds})
        lease = BrowserLease(config, False, "web_env")
        lease.open()
        leased = lease.sandbox
        assert leased is not None
        self._leases[leased.id] = lease
        if lease.server is not None:
            self._token = lease.server.token
        return self._described(leased)

    def connect(self, sandbox_id: str, sandbox_url: str) -> Sandbox:
        """See `SandboxProvider`."""
        config = self.config.updated({"server_url": sandbox_url, "sandbox_id": sandbox_id})
        lease = BrowserLease(config, False, "web_env")
        lease.open()
        assert lease.sandbox is not None
        self._leases[sandbox_id] = lease
        return self._described(lease.sandbox)

    def renew(self, sandbox: Sandbox, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        seconds = lease_seconds or self.config.lease_seconds
        found = self._client(sandbox).renew_browser(sandbox.id, lease_seconds=seconds)
        return replace(sandbox, expires_at=found or sandbox.expires_at)

    def screenshot(self, sandbox: Sandbox) -> bytes | None:
        """See `SandboxProvider`."""
        try:
            return self._client(sandbox).take_screenshot(sandbox.id, "")
        except BrowserServerError:  # no page is open, or it does not respond
            return None

    def end(self, sandbox: Sandbox) -> None:
        """See `SandboxProvider`."""
        lease = self._leases.pop(sandbox.id, None)
        if lease is not None:
            lease.close()

    def close(self) -> None:
        """See `SandboxProvider`."""
        for lease in self._leases.values():
            lease.close()
        self._leases.clear()

    def _client(self, sandbox: Sandbox) -> BrowserClient:
        return self._leases[sandbox.id].client

    def _described(self, leased: BrowserSandbox) -> Sandbox:
        """Return a leased browser as a sandbox, with the settings to use it."""
        token = self._token or self.config.token.get_secret_value()
        settings = {"server_url": leased.url, "sandbox_id": leased.id}
        if token:
            settings["token"] = token
        return Sandbox(leased.id, leased.url, leased.expires_at, settings)


class DesktopSandboxes:
    """Makes desktops on this machine. They have no lease, and end with this process.

    Args:
        config: the settings of a desktop, or a dict of them.
        workdir: working directory of its programs.
    """

    def __init__(
        self,
        config: DesktopConfig | Mapping[str, Any] | str | None = None,
        *,
        workdir: str | Path = ".",
    ):
        self.config, self.workdir = config, workdir
        self._count = 0

    def create(self, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        computer = DesktopComputer(self.config, workdir=self.workdir)
        computer.__enter__()  # `end` closes it
        self._count += 1
        return Sandbox(f"desktop-{os.getpid()}-{self._count}", "", computer=computer)

    def connect(self, sandbox_id: str, sandbox_url: str) -> Sandbox:
        """See `SandboxProvider`."""
        raise EnvironmentFailure(
            f"the desktop {sandbox_id} cannot be used: a desktop belongs to the process that made "
            "it; leave sandbox_id and sandbox_url out"
        )

    def renew(self, sandbox: Sandbox, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        sandbox.computer.windows()  # health
        return sandbox

    def screenshot(self, sandbox: Sandbox) -> bytes | None:
        """See `SandboxProvider`."""
        return base64.b64decode(sandbox.computer.screenshot().rpartition(",")[2])

    def end(self, sandbox: Sandbox) -> None:
        """See `SandboxProvider`."""
        sandbox.computer.close()

    def close(self) -> None:
        """See `SandboxProvider`; nothing is shared."""
