"""`call_target: http://...`: any OpenAI-compatible chat endpoint, by requests."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
import requests.auth
import urllib3.exceptions

from ck_pro.exceptions import ConfigError, ModelRefused
from ck_pro.model.backends.backend import Backend, ChatRequest, parse_completion, read_body
from ck_pro.model.backends.hang_up import WatchedAdapter, watched
from ck_pro.model.backends.reply_bounds import RESPONSES, Answer, send_bounded
from ck_pro.model.backends.responses import parse_response
from ck_pro.model.backends.responses_input import chat_params, request_body, wants_responses
from ck_pro.model.retry import Transient, one_line, service_error
from ck_pro.model.types import CallContext, RawReply

CONNECT_SECONDS = 10.0
_CHUNK = 65536
_MODEL_NAMES: dict[str, str] = {}  # models URL -> the one model that the server names
_MODEL_NAMES_LOCK = threading.Lock()


class HttpBackend(Backend):
    """A chat endpoint such as vLLM, llama.cpp, Ollama or a gateway.

    Args:
        url: the server (`http://host:8000`), its API (`.../v1`) or the whole address
            (`.../v1/chat/completions`; with `.../v1/responses` all calls go there).
        key: sent as a bearer token; empty: none is sent.
        headers: further headers.
    """

    remote = True

    def __init__(self, url: str, key: str = "", headers: Mapping[str, str] | None = None):
        self.url = completions_url(url)
        by_items = urlsplit(url.strip()).path.rstrip("/").endswith("/responses")
        self._own_params = {"api": "responses"} if by_items else {}
        self.target = f"model at {shown_url(self.url)}"
        self.key = check_key(key, self.target)
        self.headers = dict(headers or {})

    def complete(self, request: ChatRequest) -> RawReply:
        name = self.model_name(request.params)
        given = {**self._own_params, **request.params}
        by_items = wants_responses(given, request.messages)
        url = _sibling(self.url, "/responses") if by_items else self.url

        def send(params: dict[str, Any]) -> Answer:
            if by_items:
                body = {**request_body(request.messages, params), "model": name}
            else:
                body = {**chat_params(params), "model": name, "messages": request.messages}
            return self._exchange("POST", url, request, body)

        lengths = RESPONSES if by_items else ("max_tokens", "max_completion_tokens")
        answer, bounds = send_bounded(request.bounds, given, (url, name), lengths, send)
        parse = parse_response if by_items else parse_completion
        return replace(parse(self.target, *answer), bounds=bounds)

    def model_name(self, params: Mapping[str, Any]) -> str:
        """`call_kwargs["model"]`, or the first that the server lists; asked once per process."""
        if params.get("model"):
            return str(params["model"])
        url = _sibling(self.url, "/models")
        with _MODEL_NAMES_LOCK:
            if url not in _MODEL_NAMES:
                _MODEL_NAMES[url] = self._ask_model_name(url)
            return _MODEL_NAMES[url]

    def _ask_model_name(self, url: str) -> str:
        request = ChatRequest([], {}, CallContext(), seconds=CONNECT_SECONDS)
        status, text, headers = self._exchange("GET", url, request)
        if status != 200:
            error = service_error(self.target, status, text, headers)
            if isinstance(error, Transient) or status in (401, 403):
                raise error
        try:
            return str(json.loads(text)["data"][0]["id"])
        except (ValueError, KeyError, IndexError, TypeError):
            raise ModelRefused(
                f"{self.target}: the server does not list its models at {shown_url(url)} "
                f"(HTTP {status}); name one: call_kwargs={{'model': ...}}"
            ) from None

    def describe(self) -> str:
        return self.target

    def _exchange(
        self, method: str, url: str, request: ChatRequest, body: dict[str, Any] | None = None
    ) -> tuple[int, str, Mapping[str, str]]:
        """Send and read the whole answer: status, text, headers."""
        session = requests.Session()  # its own cookies; the connections are shared
        session.mount("http://", _connections(os.getpid()))
        session.mount("https://", _connections(os.getpid()))
        seconds = max(0.1, request.seconds)
        try:
            with (
                watched(request),
                session.request(
                    method,
                    url,
                    json=body,
                    headers=self.headers,
                    auth=_BearerAuth(self.key),
                    timeout=(min(CONNECT_SECONDS, seconds), seconds),
                    stream=True,
                    allow_redirects=False,
                ) as reply,
            ):
                text = read_body(chunks(reply), request, self.target)
                return reply.status_code, without_key(text, self.key), reply.headers
        except requests.exceptions.SSLError as e:
            raise ModelRefused(
                f"{self.target}: TLS failed: {_cause(e)} (an own certificate authority: set "
                "REQUESTS_CA_BUNDLE)"
            ) from None
        except requests.exceptions.ConnectTimeout:
            waited = min(CONNECT_SECONDS, seconds)
            raise Transient(f"{self.target}: no connection within {waited:.3g} s") from None
        except requests.exceptions.Timeout:
            raise request.timed_out(self.target) from None
        except (requests.exceptions.ConnectionError, urllib3.exceptions.HTTPError, OSError) as e:
            if isinstance(e, ValueError):  # malformed address, header or proxy: never mends
                raise ModelRefused(f"{self.target}: cannot be called: {_cause(e)}") from None
            raise Transient(f"{self.target}: {_cause(e)}") from None


class _BearerAuth(requests.auth.AuthBase):
    """Sends our key, or nothing: and keeps requests from sending a login out of ~/.netrc."""

    def __init__(self, key: str):
        self.key = key

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.key:
            r.headers["Authorization"] = f"Bearer {self.key}"
        return r


@lru_cache(maxsize=1)
def _connections(pid: int) -> WatchedAdapter:
    """The connections of this process: a fork must not write into those of its parent."""
    return WatchedAdapter(pool_connections=16, pool_maxsize=64)


def chunks(reply: requests.Response) -> Iterator[bytes]:
    """The body of an answer to a request with `stream=True`, as it arrives."""
    while chunk := reply.raw.read1(_CHUNK, decode_content=True):
        yield chunk


def _cause(error: BaseException) -> str:
    """What lies at the bottom of an error of requests: "Connection refused"."""
    reason: Any = error
    while inner := getattr(reason, "reason", None) or (reason.args or [None])[0]:
        if not isinstance(inner, BaseException):
            break
        reason = inner
    if isinstance(reason, OSError) and reason.strerror:
        return one_line(reason.strerror)
    # urllib3 puts its own object in front: "HTTPConnection(host=...): Failed ...: [Errno 111] ..."
    text = re.sub(r"^\S*Connection(Pool)?[(<].*?[)>]: ", "", str(reason))
    _, number, last = text.rpartition("[Errno ")
    if number:  # "(... [Errno -2] Name or service not known)" comes in parentheses
        text = last.partition("] ")[2].rstrip(")")
    return one_line(text, 160)


def check_key(key: str, target: str) -> str:
    """The key without surrounding space.

    Raises:
        ModelRefused: it cannot stand in a header (the HTTP library's own error would show it).
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelRefused(f"{target}: the API key holds characters that no key has")
    return key


def without_key(text: str, key: str) -> str:
    """What a service said, without our key: some tell it when they refuse it."""
    return text.replace(key, "***") if len(key) >= 8 else text


def completions_url(url: str) -> str:
    """The address of chat completions, from the address of the server or of its API.

    Raises:
        ConfigError: not an http(s) URL.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"call_target '{shown_url(url)}' is no http(s) address of a server")
    path = parts.path.rstrip("/").removesuffix("/responses")
    if not path.endswith("/chat/completions"):
        has_version = re.search(r"/v\d+\w*$", path)
        path += "/chat/completions" if has_version else "/v1/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _sibling(url: str, route: str) -> str:
    """The address of another route of the same API."""
    parts = urlsplit(url)
    path = parts.path.removesuffix("/chat/completions") + route
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def shown_url(url: str) -> str:
    """The address without what may be secret: login, query."""
    bare = re.sub(r"^(\w+://)[^/@]*@", r"\1", url.split("?", 1)[0].split("#", 1)[0])
    return one_line(bare.removesuffix("/chat/completions").removesuffix("/v1"))
