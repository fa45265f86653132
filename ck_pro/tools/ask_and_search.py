"""Tools that ship with the core: a question to a model, a search of the web."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ConfigError, ContentFiltered, ToolError
from ck_pro.model import LLM
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool

_LARGEST_REPLY = 8 << 20  # bytes of what a search service answers
_SNIPPET = 300  # characters of a result's text
_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75


class AskLLMTool(Tool):
    """A plain question to a language model, without tools or memory."""

    name = "ask_llm"
    on_resume = "again"
    model: LLM | None = None
    """The model that answers; None: that of the calling agent."""

    def set_llm(self, llm: LLM | str | dict[str, Any]) -> None:
        """Set the model that answers.

        Args:
            llm: a model, its `call_target`, or its settings.
        """
        self.model = self._converted("model", llm, None)

    def execute(self, query: str) -> str:
        """Ask a language model to explain, translate, summarise, extract or judge a text.

        Args:
            query: the whole question with all text it needs; the model sees nothing else.
        """
        if self.model is None:
            raise ToolError(f"{self.name}: outside of a run it needs its own `model`")
        return str(self.model(_question(query)))

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Ask within a run: logged, and charged to its budget."""

        def ask_llm(query: str) -> str:
            model = self.model or run.model
            try:
                return str(run.call_model(model, _question(query), f"tool:{self.name}"))
            except ContentFiltered as e:
                raise ToolError(f"{self.name}: {e}") from None

        ask_llm.__doc__ = self.execute.__doc__
        return ask_llm


def _question(query: str) -> list[dict[str, Any]]:
    if not str(query).strip():
        raise ToolError("ask_llm: the query is empty")
    return [{"role": "user", "content": str(query)}]


@dataclass(frozen=True)
class SearchResult:
    """One hit of a search."""

    title: str
    url: str
    snippet: str


class SimpleSearchTool(Tool):
    """A search of the web, or of a local index.

    Raises:
        ConfigError: the backend is not known.
    """

    name = "simple_web_search"
    on_resume = "again"
    backend: str = "duckduckgo"
    """"duckduckgo" (needs `ck-pro[search]`), "google" (GOOGLE_API_KEY and GOOGLE_CSE_ID in the
    environment), "searxng:URL", or "local:FILE" (JSON: a list of {title, url, text})."""
    max_results: int = 7
    timeout: float = 15.0
    """Seconds."""
    origin: str = ""
    """What `{site}` in the addresses of a local index stands for."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        kind, _, rest = self.backend.partition(":")
        if kind not in _SEARCHES or bool(rest) != (kind in ("searxng", "local")):
            raise ConfigError(
                f"search backend '{self.backend}' is not known: give 'duckduckgo', 'google', "
                "'searxng:URL' or 'local:FILE'"
            )
        if self.max_results < 1 or self.timeout <= 0:
            raise ConfigError("search: max_results and timeout must be more than 0")

    def check(self) -> None:
        """Find out, before a run, what each search would complain about. Sends nothing.

        Raises:
            ToolError: the index cannot be used, or the environment lacks what Google asks for.
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
        return "\n".join(_shown(i, r) for i, r in enumerate(results, 1))


def _shown(number: int, result: SearchResult) -> str:
    lines = [f"{number}. {_clean(result.title) or '(no title)'}", f"   {_clean(result.url)}"]
    snippet = _clean(result.snippet)
    if len(snippet) > _SNIPPET:
        snippet = snippet[:_SNIPPET] + "..."
    return "\n".join([*lines, f"   {snippet}"] if snippet else lines)


def _clean(text: str) -> str:
    """One line without control characters: results are written by strangers."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def _duckduckgo(tool: SimpleSearchTool, query: str, _: str) -> list[SearchResult]:
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise ToolError(
            f"{tool.name}: the ddgs package is missing: pip install 'ck-pro[search]', or choose "
            "another search backend"
        ) from None
    try:
        client = DDGS(timeout=max(1, math.ceil(tool.timeout)))
        rows = client.text(query, max_results=tool.max_results, backend="duckduckgo")
    except DDGSException as e:
        if "no results" in str(e).lower():  # the library has no class of its own for it
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
    """Google's Custom Search JSON API; it gives at most ten results."""
    key, engine = _google_access(tool)
    params = {"q": query, "cx": engine, "num": str(min(10, tool.max_results))}
    url = "https://www.googleapis.com/customsearch/v1"
    # the key goes into a header: an address ends up in logs and errors
    data = _get_json(tool, url, params, {"X-goog-api-key": key})
    return _hits(data.get("items"), "title", "link", "snippet")


def _searxng(tool: SimpleSearchTool, query: str, url: str) -> list[SearchResult]:
    """A SearxNG server whose settings allow the format `json`."""
    address = url.rstrip("/")
    address = address if address.endswith("/search") else address + "/search"
    data = _get_json(tool, address, {"q": query, "format": "json"}, {})
    return _hits(data.get("results"), "title", "url", "content")


def _hits(rows: Any, *names: str) -> list[SearchResult]:
    """Results from what a service sent, whatever it sent: fields may be null or missing."""
    objects = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
    return [SearchResult(*(str(r.get(name) or "") for name in names)) for r in objects]


def _get_json(
    tool: SimpleSearchTool, url: str, params: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    import requests
    import urllib3.exceptions

    from ck_pro.model.backends.http_endpoint import chunks

    where, seconds = url.split("?")[0], tool.timeout
    late = ToolError(f"{tool.name}: {where} gave no answer in {seconds:g} s")
    end, body = time.monotonic() + seconds, bytearray()
    try:
        with requests.get(
            url, params=params, headers=headers, timeout=seconds, stream=True
        ) as reply:
            status = reply.status_code
            for chunk in chunks(reply):
                body += chunk
                if len(body) > _LARGEST_REPLY:
                    raise ToolError(f"{tool.name}: {where} answered with too much")
                if time.monotonic() > end:
                    raise late
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
        raise late from None
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as e:
        raise ToolError(f"{tool.name}: {where} cannot be reached ({type(e).__name__})") from None
    if status != 200:
        hint = {403: " (is the format json allowed there, or the quota used up?)"}
        raise ToolError(f"{tool.name}: {where} answered HTTP {status}{hint.get(status, '')}")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ToolError(f"{tool.name}: {where} did not answer in JSON")
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


class LocalIndex:
    """Documents ranked by BM25 (Robertson and Zaragoza 2009), the title counting three times.

    Args:
        documents: with `title`, `url`, `text`.
    """

    def __init__(self, documents: Sequence[dict[str, str]]):
        self.documents = list(documents)
        self._counts = [Counter(_words(f"{d['title']} " * 3 + d["text"])) for d in documents]
        self._sizes = [sum(c.values()) for c in self._counts]
        self._mean = sum(self._sizes) / max(1, len(self._sizes)) or 1.0
        self._holding = Counter(word for c in self._counts for word in c)

    def search(self, query: str) -> list[dict[str, str]]:
        """The documents that hold a word of the query, the best first; equals keep their order."""
        words = set(_words(query))
        scored = [(self._score(words, i), i) for i in range(len(self.documents))]
        best = sorted((s, i) for s, i in ((-s, i) for s, i in scored) if s < 0)
        return [self.documents[i] for _, i in best]

    def _score(self, words: set[str], i: int) -> float:
        total, counts = 0.0, self._counts[i]
        norm = _K1 * (1 - _B + _B * self._sizes[i] / self._mean)
        for word in words & counts.keys():
            holding = self._holding[word]
            rarity = math.log(1 + (len(self.documents) - holding + 0.5) / (holding + 0.5))
            total += rarity * counts[word] * (_K1 + 1) / (counts[word] + norm)
        return total


def _words(text: str) -> list[str]:
    """Lower-case words, English plurals and singulars alike."""
    return [w[:-1] if len(w) > 3 and w.endswith("s") else w for w in _WORD.findall(text.lower())]


_SEARCHES: dict[str, Callable[[SimpleSearchTool, str, str], list[SearchResult]]] = {
    "duckduckgo": _duckduckgo,
    "google": _google,
    "searxng": _searxng,
    "local": _local,
}
