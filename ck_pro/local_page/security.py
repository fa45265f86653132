"""Which requests a local page answers, and the headers of its responses.

A local server is reachable by every page that the user's browser shows, and with some hosts by
other machines. Therefore each request needs the cookie that the printed address sets; its Host
header must not be a foreign name (DNS rebinding); requests that another page causes are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Mapping

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of each response that does not set its own."""
POST_HEADER = "X-CK"
"""A header that POST requests need; pages of other origins cannot send it."""
_NAME = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")
_OTHER_ORIGINS = ("cross-site", "same-site")


class Refused(Exception):
    """A request that is not answered. Its text is one line for the user."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server on this address or name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Admission:
    """Decides whether a request is answered.

    Args:
        cookie: name of the cookie; differs between servers of one machine, since browsers send
            cookies to all ports.
        known_hosts: names that the Host header may have, beside `localhost` and addresses.

    Attributes:
        token: the secret in the printed address.
        cookie: name of the cookie.
        pass_: the value of the cookie.
    """

    def __init__(self, cookie: str, known_hosts: Iterable[str] = ()) -> None:
        self.token = secrets.token_urlsafe(24)
        self.pass_ = secrets.token_urlsafe(24)
        self.cookie = cookie
        self._known = {"localhost", *(host.lower() for host in known_hosts)}

    def check_host(self, host: str) -> None:
        """Check the Host header.

        Raises:
            Refused: it is the name of another server.
        """
        found = _NAME.fullmatch(host)
        name = found[1].lower() if found else ""
        if name not in self._known and not _is_address(name):
            raise Refused("this address is not one of this server")

    def is_token(self, text: str) -> bool:
        """Whether a text is the token."""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def check(
        self, method: str, header: Callable[[str], str | None], cookies: Mapping[str, str]
    ) -> None:
        """Check a request's headers and cookies; `check_host` checks its host.

        Args:
            method: its method.
            header: returns a header by its name.
            cookies: its cookies.

        Raises:
            Refused: it has no valid cookie, or a page of another origin sent it.
        """
        given = cookies.get(self.cookie, "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.pass_.encode()):
            raise Refused("open the address that the command printed: it contains the key")
        navigates = header("Sec-Fetch-Mode") == "navigate" and method == "GET"
        if header("Sec-Fetch-Site") in _OTHER_ORIGINS and not navigates:
            raise Refused("a page of another origin sent this request")
        if method not in ("GET", "HEAD") and header(POST_HEADER) != "1":
            raise Refused(f"the header {POST_HEADER}: 1 is missing")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
