"""`WebEnvConfig`: the settings of a browser for an agent."""

from __future__ import annotations

from pydantic import SecretStr

from ck_pro.config import KwargsInitializable
from ck_web import sandbox


class WebEnvConfig(KwargsInitializable):
    """Settings of a browser for an agent.

    A plain string stands for `server_url`.
    """

    string_setting = "server_url"

    server_url: str = ""
    """Browser server to use, `http://host:port` or `host:port`; one is started when empty."""
    web_ip: str = ""
    """The same by its older name; `server_url` wins."""
    token: SecretStr = SecretStr("")
    """Bearer token of that server; else the environment's CK_WEB_TOKEN."""
    target_url: str = "about:blank"
    """The page to begin with, where the task brings none."""
    viewport_width: int = 1280
    viewport_height: int = 720
    """The visible part of a page, in CSS pixels."""
    timeout: float = 150.0
    """Seconds that one request to the server may take."""
    use_screenshot: bool = False
    """Show screenshots from the first step on; `screenshot(flag)` switches during a run."""
    max_page_chars: int = 40_000
    """Longest page text that one observation shows."""
    allow: list[str] = []
    block: list[str] = []
    """Hosts (or host:port) that a server started by us lets pages reach, or not."""
    max_browsers: int = 16
    """Browsers at once of a server started by us; further runs wait for one."""
    chromium: str = ""
    """Browser program of a server started by us; found by itself when empty."""
    keep_server_seconds: float = 30.0
    """How long a server started by us stays for the next run when no run uses it."""

    def given_server(self) -> str:
        """Address of the server to use, or the empty text."""
        return self.server_url or self.web_ip

    def server_options(self) -> sandbox.ServerOptions:
        """How to start a server when none is given."""
        return sandbox.ServerOptions(
            allow=tuple(self.allow),
            block=tuple(self.block),
            max_browsers=self.max_browsers,
            chromium=self.chromium,
        )
