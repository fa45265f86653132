"""The secrets of a browser's settings: passwords that the agent types without knowing them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from ck_pro.exceptions import BrowserServerError, ConfigError

_NAME = re.compile(r"[\w.-]+")


class SecretSetting(BaseModel):
    """One secret.

    Attributes:
        domains: hosts on which it may be typed, with their subdomains; `http://HOST` for a host
            without https.
        env: name of the environment variable with the text.
        value: the text itself, instead of `env`.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    domains: list[str] = Field(min_length=1)
    env: str = ""
    value: SecretStr = SecretStr("")

    def text(self, name: str) -> str:
        """Return the secret.

        Raises:
            BrowserServerError: the environment variable is not set.
        """
        text = self.value.get_secret_value() or os.environ.get(self.env, "")
        if not text:
            raise BrowserServerError(
                f"the secret {name!r} has no text: set the environment variable {self.env}"
            )
        return text


def checked_secrets(given: Mapping[str, Any]) -> dict[str, SecretSetting]:
    """Return the secrets of a setting.

    Raises:
        ConfigError: a name or a field is invalid. The message does not show values.
    """
    found: dict[str, SecretSetting] = {}
    for name, facts in given.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(f"secrets: {name!r} is not a name of letters, digits, _ . and -")
        try:
            one = found[name] = SecretSetting.model_validate(facts)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in ("secrets", name, *first["loc"]))
            raise ConfigError(f"{field}: {first['msg']}") from None
        if bool(one.env) == bool(one.value.get_secret_value()):
            raise ConfigError(f"secrets.{name}: give either env or value")
        if one.value and len(one.value.get_secret_value()) < 4 and not one.env:
            raise ConfigError(f"secrets.{name}: the value needs at least 4 characters")
    return found


def allowed_names(domains: Mapping[str, list[str]], url: str) -> list[str]:
    """Return the names of the secrets that belong to a page, for a note to the model.

    The browser server decides whether a secret may be typed.
    """
    place = urlsplit(url).netloc.lower()

    def names(domain: str) -> bool:
        known = domain.rpartition("://")[2].lower()
        host = place if ":" in known else place.partition(":")[0]
        return host == known or host.endswith(f".{known}")

    return [name for name, given in domains.items() if any(names(one) for one in given)]
