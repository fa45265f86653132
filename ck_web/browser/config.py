"""`WebEnvConfig`: the settings of a browser for an agent."""

from __future__ import annotations

import functools
import logging
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr

from ck_pro.computer import MAX_SIDE
from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError
from ck_web.browser.client import server_address
from ck_web.browser.server_process import ServerOptions
from ck_web.browser.site_secrets import checked_secrets

_log = logging.getLogger(__name__)
_Side = Annotated[int, Field(ge=100, le=4096)]

Pictures = Literal["off", "asked", "auto", "on"]
"""When observations have a screenshot. "off": never; "asked": after `screenshot(True)`; "auto":
also if the page is mostly pictures or the last actions had no effect; "on": always."""


def _off(value: Any) -> Any:
    """Return "off" for False: YAML reads an unquoted `off` that way."""
    return "off" if value is False else value


@functools.cache
def _warn_unused_command(command: str) -> None:
    _log.warning(
        "web_command %r is not run: a browser server starts automatically, unless server_url or "
        "web_ip names one; remove the setting",
        command,
    )


class WebEnvConfig(KwargsInitializable):
    """Settings of a browser for an agent. A string sets `server_url`.

    Raises:
        ConfigError: an unknown setting, or an invalid value.
    """

    string_setting = "server_url"
    former_names = {"web_timeout": "timeout", "sandbox_url": "server_url"}

    server_url: str = ""
    """Browser server, `http://host:port` or `host:port`. If empty, one starts automatically."""
    sandbox_id: str = ""
    """Browser of that server to use, which another program leased; its lease is not ended."""
    lease_seconds: Annotated[float, Field(ge=120, le=7 * 86400)] | None = None
    """Hard end of a lease, from its start or its renewal; the server's default (6 hours) if None.
    The run renews the lease while it needs the browser."""
    web_ip: str = ""
    """Older name of `server_url`, which takes precedence."""
    token: SecretStr = SecretStr("")
    """Bearer token of that server; default: the environment variable CK_WEB_TOKEN."""
    target_url: str = "about:blank"
    """Start page of tasks that name none."""
    viewport_width: _Side = 1280
    viewport_height: _Side = 720
    """Visible part of a page, in CSS pixels."""
    timeout: Annotated[float, Field(gt=0)] = 150.0
    """Seconds for one request to the server."""
    use_screenshot: bool = False
    """Show screenshots from the first step; `screenshot(flag)` changes it during a run."""
    screenshot_boxed: bool = True
    """Mark elements in screenshots with numbered boxes."""
    picture_side: Annotated[int, Field(ge=200, le=4096)] = MAX_SIDE
    """Limit for the longer side of screenshots for the model, in pixels. Larger ones are scaled
    down, and x and y are mapped back."""
    web_command: str = ""
    """Command that started a server, from older settings. It is ignored."""
    step_pictures: bool = False
    """Store a small picture of the page in the journal at each step and before each action, for
    viewers. The model does not get it."""
    cookie_banners: Annotated[Literal["dismiss", "report", "off"], BeforeValidator(_off)] = (
        "dismiss"
    )
    """"dismiss": answer cookie banners with the least consent; "report": only show a
    note to the model."""
    max_page_chars: Annotated[int, Field(ge=1)] = 40_000
    """Maximum length of the page text in one observation."""
    allow: list[str] = []
    block: list[str] = []
    """Hosts (or host:port) that pages may or may not reach. With `server_url` they can only narrow
    the policy of that server."""
    secrets: dict[str, Any] = {}
    """Texts that the agent types as `{{secret:NAME}}` without knowing them, by name: `domains`
    (where they may be typed) and `env` (the environment variable with the text) or `value`."""
    evaluate: bool = True
    """Whether the agent may run JavaScript in pages, by `evaluate(script)`. Off with secrets."""
    max_browsers: Annotated[int, Field(ge=1, le=500)] = 16
    """Concurrent browsers of an automatically started server; more runs wait in a queue."""
    chromium: str = ""
    """Browser program of an automatically started server; default: search for it."""
    keep_server_seconds: Annotated[float, Field(ge=0)] = 30.0
    """How long an unused, automatically started server keeps running."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.web_command:
            _warn_unused_command(self.web_command)
        if self.given_server():
            server_address(self.given_server())
        self._check_effect()
        self._secrets = checked_secrets(self.secrets)
        if self._secrets:
            self.evaluate = False  # a script could read them

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data, without values of secrets."""
        named = {
            name: {"domains": one.domains, **({"env": one.env} if one.env else {})}
            for name, one in self._secrets.items()
        }
        return {**super().to_dict(), "secrets": named}

    def _check_effect(self) -> None:
        """Raise ConfigError for a setting without effect."""
        if self.sandbox_id and not self.given_server():
            raise ConfigError("sandbox_id: set server_url (or sandbox_url) too, its server")
        if not self.given_server():
            if self.token.get_secret_value():
                raise ConfigError("token: set server_url too, the server that requires the token")
            return
        for name in ("max_browsers", "chromium", "keep_server_seconds"):
            if getattr(self, name) != getattr(WebEnvConfig, name):
                raise ConfigError(
                    f"{name}: it applies to an automatically started browser server, but "
                    f"server_url is {self.given_server()!r}: set the option of that server instead"
                )

    def rules(self) -> dict[str, list[str]]:
        """Return the rules for pages: `allow` and `block`."""
        return {"allow": list(self.allow), "block": list(self.block)}

    def secret_domains(self) -> dict[str, list[str]]:
        """Return where each secret may be typed, by its name."""
        return {name: list(one.domains) for name, one in self._secrets.items()}

    def secret_values(self) -> dict[str, dict[str, Any]]:
        """Return the secrets for the browser server.

        Raises:
            BrowserServerError: an environment variable is not set.
        """
        return {
            name: {"value": one.text(name), "domains": list(one.domains)}
            for name, one in self._secrets.items()
        }

    def given_server(self) -> str:
        """Return the address of the server to use; empty to start one."""
        return self.server_url or self.web_ip

    def server_options(self) -> ServerOptions:
        """Return the options of an automatically started server."""
        return ServerOptions(
            allow=tuple(self.allow),
            block=tuple(self.block),
            max_browsers=self.max_browsers,
            chromium=self.chromium,
        )
