"""The secrets of a leased browser: typed into pages of their domains, masked in all replies."""

from __future__ import annotations

import html
import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from web_server.contract import SiteSecret
from web_server.errors import Conflict
from web_server.quoting import unquoted

_PLACEHOLDER = re.compile(r"\{\{\s*secret:([\w.-]+)\s*\}\}")
_PICTURES = ("nonboxed_screenshot", "boxed_screenshot")
_SHORTEST_MASKED = 4
_SHORTEST_PART = 16
"""A reply may shorten a longer secret, so a part of this length is masked, too."""


class SecretBook:
    """The secrets of one session.

    Args:
        secrets: the secrets by name.
    """

    def __init__(self, secrets: Mapping[str, SiteSecret] | None = None) -> None:
        self._secrets = dict(secrets or {})
        self._masks = _masks(self._secrets)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def has_placeholder(self, text: str) -> bool:
        """Return whether a text names a secret."""
        return bool(self._secrets) and _PLACEHOLDER.search(text) is not None

    def filled(self, text: str, url: str) -> str:
        """Return a text with the values of its placeholders.

        Args:
            text: what to type.
            url: address of the document that receives it.

        Raises:
            Conflict: a name is unknown, or the document is not on a domain of its secret.
        """

        def value(found: re.Match[str]) -> str:
            name = found[1]
            secret = self._secrets.get(name)
            if secret is None:
                known = ", ".join(self._secrets)
                raise Conflict(f"nothing was typed: no secret is named '{name}'; known: {known}")
            if not any(is_allowed(url, domain) for domain in secret.domains):
                raise Conflict(
                    f"nothing was typed: the secret '{name}' may be typed only on "
                    f"{', '.join(secret.domains)}, and the field is on {_place(url)}"
                )
            return secret.value

        return _PLACEHOLDER.sub(value, text)

    def masked(self, data: Any) -> Any:
        """Return JSON data, or a tuple of it, with placeholders in place of the secrets."""
        if not self._masks:
            return data
        if isinstance(data, str):
            for pattern, placeholder in self._masks:
                data = pattern.sub(placeholder, data)  # without a backslash: no references
            return data
        if isinstance(data, dict):
            return {
                self.masked(key): value if key in _PICTURES else self.masked(value)
                for key, value in data.items()
            }
        if isinstance(data, list):
            return [self.masked(each) for each in data]
        if isinstance(data, tuple):
            return tuple(self.masked(each) for each in data)
        return data


def is_allowed(url: str, domain: str) -> bool:
    """Return whether a secret of a domain may be typed on a page.

    Args:
        url: address of the page.
        domain: `shop.example` (with its subdomains), `shop.example:8443`, or with `http://` before
            it. Without that, only https pages and pages of this machine are allowed.
    """
    try:
        parts = urlsplit(url)
        scheme, _, rest = domain.strip().lower().rpartition("://")
        allowed = urlsplit(f"//{rest}")
        port, host = parts.port, (parts.hostname or "").rstrip(".")
        wanted, wanted_port = (allowed.hostname or "").rstrip("."), allowed.port
    except ValueError:
        return False
    if not host or not wanted or parts.scheme not in ("http", "https"):
        return False
    if parts.scheme == "http" and scheme != "http" and not _is_local(host):
        return False
    if scheme and scheme != parts.scheme:
        return False
    known = port or {"http": 80, "https": 443}[parts.scheme]
    same_host = host == wanted or (host.endswith(f".{wanted}") and not _is_address(wanted))
    return same_host and wanted_port in (None, known)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url[:40] or "no page"


def _masks(secrets: Mapping[str, SiteSecret]) -> list[tuple[re.Pattern[str], str]]:
    """Return patterns for each form of each secret in replies, with its placeholder.

    The longest come first. A number is neither a part of a longer one nor the id of an element.
    """
    forms: dict[str, str] = {}
    for name, secret in secrets.items():
        value = secret.value
        found = {
            *(value, unquoted(value), quote(value, safe=""), quote(value), quote_plus(value)),
            *(html.escape(value), html.escape(value, quote=False)),
        }
        if len(value) > 2 * _SHORTEST_PART:
            found.add(value[:_SHORTEST_PART])
        forms.update((form, f"{{{{secret:{name}}}}}") for form in found)
    longest_first = sorted(forms.items(), key=lambda pair: -len(pair[0]))
    return [(_pattern(form), mask) for form, mask in longest_first if len(form) >= _SHORTEST_MASKED]


def _pattern(form: str) -> re.Pattern[str]:
    text = re.escape(form)
    return re.compile(rf"(?<![\d\[]){text}(?![\d\]])" if form.isdigit() else text)
