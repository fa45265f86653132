"""`E2BSandboxes`: virtual machines of e2b as sandboxes.

The template of the machine must run a browser server: `python -m web_server --host 0.0.0.0 --port
3000 --token TOKEN`. It needs the package `e2b` (`pip install "ck-pro[e2b]"`) and a key in
`E2B_API_KEY`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ck_pro.exceptions import BrowserServerError, ConfigError, EnvironmentFailure
from ck_web.browser.client import BrowserClient
from ck_web.sandbox import Sandbox

DEFAULT_SECONDS = 600.0


class E2BSandboxes:
    """Makes virtual machines of e2b. Each has its own browser server.

    Args:
        template: name of a template that runs a browser server.
        port: port of that server.
        token: its bearer token.
        options: further arguments of the SDK: `api_key`, `domain`, `api_url`, ...

    Raises:
        ConfigError: the package `e2b` is missing.
    """

    def __init__(self, template: str, *, port: int = 3000, token: str = "", **options: Any):
        try:
            import e2b
        except ImportError:
            raise ConfigError('the package e2b is missing: pip install "ck-pro[e2b]"') from None
        self._sdk: Any = e2b
        self.template, self.port, self.token = template, port, token
        self._options = options

    def create(self, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        timeout = math.ceil(lease_seconds or DEFAULT_SECONDS)
        with _Reported("create a sandbox", self._sdk):
            made = self._sdk.Sandbox.create(self.template, timeout=timeout, **self._options)
            return self._described(made)

    def connect(self, sandbox_id: str, sandbox_url: str) -> Sandbox:
        """See `SandboxProvider`; the address follows from the id."""
        with _Reported(f"connect to the sandbox {sandbox_id}", self._sdk):
            return self._described(self._sdk.Sandbox.connect(sandbox_id, **self._options))

    def renew(self, sandbox: Sandbox, lease_seconds: float | None) -> Sandbox:
        """See `SandboxProvider`."""
        timeout = math.ceil(lease_seconds or DEFAULT_SECONDS)
        with _Reported(f"renew the sandbox {sandbox.id}", self._sdk):
            self._sdk.Sandbox.set_timeout(sandbox.id, timeout, **self._options)
            info = self._sdk.Sandbox.get_info(sandbox.id, **self._options)
        found = Sandbox(sandbox.id, sandbox.url, info.end_at.timestamp(), sandbox.settings)
        self._client(found).status()  # health
        return found

    def screenshot(self, sandbox: Sandbox) -> bytes | None:
        """Return None: an agent leases another browser in the machine."""
        return None

    def end(self, sandbox: Sandbox) -> None:
        """See `SandboxProvider`."""
        with _Reported(f"end the sandbox {sandbox.id}", self._sdk):
            self._sdk.Sandbox.kill(sandbox.id, **self._options)

    def close(self) -> None:
        """See `SandboxProvider`; nothing is shared."""

    def _described(self, made: Any) -> Sandbox:
        info = made.get_info(**self._options)
        host = made.get_host(self.port)
        scheme = "http" if host.startswith(("localhost", "127.")) else "https"
        settings: Mapping[str, Any] = {
            "server_url": f"{scheme}://{host}",
            **({"token": self.token} if self.token else {}),
        }
        return Sandbox(made.sandbox_id, settings["server_url"], info.end_at.timestamp(), settings)

    def _client(self, sandbox: Sandbox) -> BrowserClient:
        return BrowserClient(sandbox.url, token=self.token)


class _Reported:
    """Turns errors of the SDK into one line.

    Args:
        what: what failed.
        sdk: the package.

    Raises:
        BrowserServerError: the SDK raised an error.
    """

    def __init__(self, what: str, sdk: Any):
        self._what, self._sdk = what, sdk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: object) -> None:
        if (
            error is None
            or isinstance(error, EnvironmentFailure)
            or not isinstance(error, Exception)
        ):
            return
        text = " ".join(str(error).split()) or type(error).__name__
        raise BrowserServerError(f"e2b: cannot {self._what}: {text}") from error
