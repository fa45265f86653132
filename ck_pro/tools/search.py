"""`SimpleSearchTool`: search the web or a local index."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ConfigError, ToolError
from ck_pro.tool import Tool
from ck_pro.tools.local_index import LocalIndex

_MAX_RESPONSE = 8 << 20
_SNIPPET = 300  # characters


@dataclass(frozen=True)
class SearchResult:
    """A result of a search."""

    title: str
    url: str
    snippet: str


class SimpleSearchTool(Tool):
    """A search of the web or of a local index.

    Raises:
        ConfigError: the backend is unknown.
    """

    name = "simple_web_search"
    on_resume = "again"
    backend: str = "duckduckgo"
    """"duckduckgo" (needs `ck-pro[search]`), "google" (GOOGLE_API_KEY and GOOGLE_CSE_ID in the
    environment), "searxng:URL", or "local:FILE" (JSON: a list of {title, url, text})."""
    max_results: int = 7
    timeout: float = 15.0
    """Time limit of a search in seconds."""
    origin: str = ""
    """Replaces `{site}` in the URLs of a local index."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        kind, _, rest = self.backend.partition(":")
        if kind not in _SEARCHES or bool(rest) != (kind in ("searxng", "local")):
            raise ConfigError(
                f"unknown search backend '{self.backend}'; use 'duckduckgo', 'google', "
                "'searxng:URL' or 'local:FILE'"
            )
        if self.max_results < 1 or self.timeout <= 0:
            raise ConfigError("search: max_results and timeout must be above 0")

    def check(self) -> None:
        """Check the configuration before a run, without sending anything.

        Raises:
            ToolError: the index cannot be read, or an environment variable for Google is missing.
        """
        kind, _, rest = self.backend.partition(":")
        if kind == "local":
            _local_index(self, rest)
        elif kind == "google":
            _google_access(self)

    def execute(self, query: str) -> str:
        """Search the web. Returns a numbered list of results: title, address, snippet.

        Args:
            query: a few keywords, as for a search engine.
        """
        query = " ".join(str(query).split())
        if not query:
            raise ToolError(f"{self.name}: the query is empty")
        kind, _, rest = self.backend.partition(":")
        results = _SEARCHES[kind](self, query, rest)[: self.max_results]
        if not results:
            return f"No results for '{query}'. Try fewer or other words."
        return "\n".join(_format(i, r) for i, r in enumerate(results, 1))


def _format(number: int, result: SearchResult) -> str:
    lines = [f"{number}. {_clean(result.title) or '(no title)'}", f"   {_clean(result.url)}"]
    snippet = _clean(result.snippet)
    if len(snippet) > _SNIPPET:
        snippet = snippet[:_SNIPPET] + "..."
    return "\n".join([*lines, f"   {snippet}"] if snippet else lines)


def _clean(text: str) -> str:
    """Return one line without control characters, which results may contain."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def _duckduckgo(tool: SimpleSearchTool, query: str, _: str) -> list[SearchResult]:
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise ToolError(
            f"{tool.name}: the ddgs package is missing; run pip install 'ck-pro[search]' or choose "
            "another search backend"
        ) from None
    try:
        client = DDGS(timeout=max(1, math.ceil(tool.timeout)))
        rows = client.text(query, max_results=tool.max_results, backend="duckduckgo")
    except DDGSException as e:
        if "no results" in str(e).lower():  # the library has no separate class for it
            return []
        raise ToolError(f"{tool.name}: the search failed: {_clean(str(e))[:200]}") from None
    return _hits(rows, "title", "href", "body")


def _google_access(tool: SimpleSearchTool) -> tuple[str, str]:
    key, engine = os.environ.get("GOOGLE_API_KEY"), os.environ.get("GOOGLE_CSE_ID")
    if not key or not engine:
        missing = "GOOGLE_API_KEY" if not key else "GOOGLE_CSE_ID"
        raise ToolError(f"{tool.name}: {missing} is not set in the environment")
    return key, engine


def _google(tool: SimpleSearchTool, query: str, _: str) -> list[SearchResult]:
    """Use Google's Custom Search JSON API, which returns at most ten results."""
    key, engine = _google_access(tool)
    params = {"q": query, "cx": engine, "num": str(min(10, tool.max_results))}
    url = "https://www.googleapis.com/customsearch/v1"
    # the key goes into a header, since URLs appear in logs and errors
    data = _get_json(tool, url, params, {"X-goog-api-key": key})
    return _hits(data.get("items"), "title", "link", "snippet")


def _searxng(tool: SimpleSearchTool, query: str, url: str) -> list[SearchResult]:
    """Use a SearXNG server whose settings allow the format `json`."""
    address = url.rstrip("/")
    address = address if address.endswith("/search") else address + "/search"
    data = _get_json(tool, address, {"q": query, "format": "json"}, {})
    return _hits(data.get("results"), "title", "url", "content")


def _hits(rows: Any, *names: str) -> list[SearchResult]:
    """Convert the rows of any reply; fields may be null or missing."""
    objects = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
    return [SearchResult(*(str(r.get(name) or "") for name in names)) for r in objects]


def _get_json(
    tool: SimpleSearchTool, url: str, params: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    import requests
    import urllib3.exceptions

    from ck_pro.model.backends.http_endpoint import chunks

    where, seconds = url.split("?")[0], tool.timeout
    too_slow = ToolError(f"{tool.name}: {where} did not respond in {seconds:g} s")
    end, body = time.monotonic() + seconds, bytearray()
    try:
        with requests.get(
            url, params=params, headers=headers, timeout=seconds, stream=True
        ) as reply:
            status = reply.status_code
            for chunk in chunks(reply):
                body += chunk
                if len(body) > _MAX_RESPONSE:
                    raise ToolError(f"{tool.name}: the response of {where} is too large")
                if time.monotonic() > end:
                    raise too_slow
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        raise too_slow from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as e:
        raise ToolError(f"{tool.name}: cannot connect to {where} ({type(e).__name__})") from None
    if status != 200:
        hint = {403: " (the format json is not allowed, or the quota is exceeded)"}
        raise ToolError(f"{tool.name}: {where} responded with HTTP {status}{hint.get(status, '')}")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ToolError(f"{tool.name}: the response of {where} is not JSON")
    return data


def _local(tool: SimpleSearchTool, query: str, path: str) -> list[SearchResult]:
    return [
        SearchResult(d["title"], d["url"].replace("{site}", tool.origin), d["text"])
        for d in _local_index(tool, path).search(query)
    ]


def _local_index(tool: SimpleSearchTool, path: str) -> LocalIndex:
    file = Path(path).expanduser()
    try:
        return _index(file.absolute(), file.stat().st_mtime_ns)
    except OSError as e:
        raise ToolError(f"{tool.name}: cannot read the index {path}: {e.strerror}") from None


@lru_cache(maxsize=4)
def _index(path: Path, mtime_ns: int) -> LocalIndex:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
        documents = [{k: str(r[k]) for k in ("title", "url", "text")} for r in rows]
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise ToolError(
            f"search: {path} is not a JSON list of {{title, url, text}} ({type(e).__name__})"
        ) from None
    return LocalIndex(documents)


_SEARCHES: dict[str, Callable[[SimpleSearchTool, str, str], list[SearchResult]]] = {
    "duckduckgo": _duckduckgo,
    "google": _google,
    "searxng": _searxng,
    "local": _local,
}
