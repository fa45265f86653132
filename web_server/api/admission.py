"""Admission of requests by their headers, before the body is read."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Iterable

from web_server.errors import Forbidden, ServerError, Unauthorized
from web_server.view import one_line

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Admission:
    """Admit or refuse requests.

    Args:
        token: bearer token that every request needs; none by default.
        hosts: names and addresses, besides loopback, that a `Host` header may contain. The header
            is checked without a token; otherwise a web page could reach the server by a name
            that resolves to this machine.
    """

    def __init__(self, token: str = "", hosts: Iterable[str] = ()) -> None:
        self.token = token
        self._hosts = _LOOPBACK_NAMES | {_name(host) for host in hosts}

    def refusal(self, header: Callable[[str], str | None]) -> ServerError | None:
        """Return the error for a refused request; None if the request is admitted.

        Args:
            header: returns a header of the request by its name.
        """
        # Browsers send these headers for requests of web pages, and agents' clients do not. So no
        # web page can control a session, not even a page of this machine's user.
        if header("Origin") or (header("Sec-Fetch-Site") or "none").lower() != "none":
            return Forbidden("requests from web pages are refused")
        host = header("Host")
        if not self.token and host and _name(host) not in self._hosts:
            return Forbidden(
                f"the Host header names '{one_line(host)[:80]}', which is not this server: use "
                "127.0.0.1 or localhost, or start the server with --known-host or --token"
            )
        given = header("Authorization") or ""
        expected = f"Bearer {self.token}"
        if self.token and not hmac.compare_digest(given.encode(), expected.encode()):
            return Unauthorized("the header `Authorization: Bearer <token>` is missing or wrong")
        return None


def _name(host: str) -> str:
    """Return the name or address in a `Host` header, without the port."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text.rpartition(":")[0].rstrip(".") if ":" in text else text.rstrip(".")
