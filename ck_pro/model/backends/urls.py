"""URLs of OpenAI-compatible APIs. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from ck_pro.exceptions import ConfigError
from ck_pro.model.backends.service_errors import one_line


def completions_url(url: str) -> str:
    """Return the URL of chat completions, from the URL of a server, its API, or that route.

    Raises:
        ConfigError: not an http(s) URL.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("not an http(s) URL of a server")
    path = parts.path.rstrip("/").removesuffix("/responses")
    if not path.endswith("/chat/completions"):
        has_version = re.search(r"/v\d+\w*$", path)
        path += "/chat/completions" if has_version else "/v1/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def sibling_url(url: str, route: str) -> str:
    """Return the URL of another route of the same API.

    Args:
        url: the URL of chat completions.
        route: such as "/models".
    """
    parts = urlsplit(url)
    path = parts.path.removesuffix("/chat/completions") + route
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def shown_url(url: str) -> str:
    """Return the URL for messages: without login and query, which may be secret."""
    bare = re.sub(r"^(\w+://)[^/@]*@", r"\1", url.split("?", 1)[0].split("#", 1)[0])
    return one_line(bare.removesuffix("/chat/completions").removesuffix("/v1"))
