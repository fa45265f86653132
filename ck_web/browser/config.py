"""`WebEnvConfig`: the settings of a browser for an agent."""

from __future__ import annotations

import functools
import logging
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr

from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError
from ck_web.browser import server_process as sandbox
from ck_web.browser.client import server_address

_log = logging.getLogger(__name__)
_Side = Annotated[int, Field(ge=100, le=4096)]


def _off(value: Any) -> Any:
    """An unquoted `off` as YAML reads it."""
    return "off" if value is False else value


@functools.cache
def _report_unused_command(command: str) -> None:
    """Report once that a setting has no effect."""
    _log.warning(
        "web_command %r is not run: without web_ip or server_url, a browser server is started "
        "automatically; remove the setting",
        command,
    )


class WebEnvConfig(KwargsInitializable):
    """Settings of a browser for an agent.

    A plain string stands for `server_url`.

    Raises:
        ConfigError: an unknown setting, or a value that cannot be used.
    """

    string_setting = "server_url"
    former_names = {"web_timeout": "timeout"}

    server_url: str = ""
    """Browser server to use, `http://host:port` or `host:port`; one is started when empty."""
    web_ip: str = ""
    """The same by its older name; `server_url` wins."""
    token: SecretStr = SecretStr("")
    """Bearer token of that server; else the environment's CK_WEB_TOKEN."""
    target_url: str = "about:blank"
    """The page to begin with, where the task brings none."""
    viewport_width: _Side = 1280
    viewport_height: _Side = 720
    """The visible part of a page, in CSS pixels."""
    timeout: Annotated[float, Field(gt=0)] = 150.0
    """Seconds that one request to the server may take."""
    use_screenshot: bool = False
    """Show screenshots from the first step on; `screenshot(flag)` switches during a run."""
    screenshot_boxed: bool = True
    """Screenshots show the elements' numbers in boxes."""
    web_command: str = ""
    """A command that started a server, of older settings. It is not run: without `server_url`, a
    server is started anyway."""
    cookie_banners: Annotated[Literal["dismiss", "report", "off"], BeforeValidator(_off)] = (
        "dismiss"
    )
    """What is done about cookie banners: answered with the least consent that they offer, told to
    the model only, or neither."""
    max_page_chars: Annotated[int, Field(ge=1)] = 40_000
    """Longest page text that one observation shows."""
    allow: list[str] = []
    block: list[str] = []
    """Hosts (or host:port) that pages may or may not reach. With `server_url` they hold for this
    browser, within what that server allows."""
    max_browsers: Annotated[int, Field(ge=1, le=500)] = 16
    """Browsers at once of a server started by us; further runs wait for one."""
    chromium: str = ""
    """Browser program of a server started by us; found by itself when empty."""
    keep_server_seconds: Annotated[float, Field(ge=0)] = 30.0
    """How long a server started by us stays for the next run when no run uses it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.web_command:
            _report_unused_command(self.web_command)
        if self.given_server():
            server_address(self.given_server())
        self._check_effect()

    def _check_effect(self) -> None:
        """Refuse a setting that would be ignored."""
        if not self.given_server():
            if self.token.get_secret_value():
                raise ConfigError("token: it is for the server that server_url names; set that too")
            return
        for name in ("max_browsers", "chromium", "keep_server_seconds"):
            if getattr(self, name) != getattr(WebEnvConfig, name):
                raise ConfigError(
                    f"{name}: it is for a browser server that is started automatically, and "
                    f"{self.given_server()!r} is used: start that server with such an option"
                )

    def rules(self) -> dict[str, list[str]]:
        """The rules for pages."""
        return {"allow": list(self.allow), "block": list(self.block)}

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
