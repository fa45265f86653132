"""Chat with any OpenAI-compatible server over HTTP, with the requests package."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import requests
import requests.auth
import urllib3.exceptions

from ck_pro.exceptions import ModelRefused
from ck_pro.model.backends.api_keys import check_key, without_key
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.backends.chat_completions import parse_completion, read_body
from ck_pro.model.backends.hang_up import TrackedAdapter, tracked
from ck_pro.model.backends.reply_bounds import RESPONSES, Answer, send_bounded
from ck_pro.model.backends.responses import parse_response
from ck_pro.model.backends.responses_input import chat_params, request_body, wants_responses
from ck_pro.model.backends.service_errors import one_line, service_error
from ck_pro.model.backends.urls import completions_url, shown_url, sibling_url
from ck_pro.model.retry import Transient
from ck_pro.model.types import CallContext, RawReply

CONNECT_SECONDS = 10.0
"""Time limit for a connection."""
_CHUNK = 65536
_MODEL_NAMES: dict[str, str] = {}
"""URL of a server's model list -> its first model."""
_MODEL_NAMES_LOCK = threading.Lock()


class HttpBackend(Backend):
    """An OpenAI-compatible server such as vLLM, llama.cpp, Ollama or a gateway.

    Args:
        url: URL of the server (`http://host:8000`), of its API (`.../v1`), or of a route
            (`.../v1/chat/completions`; `.../v1/responses` selects the Responses API).
        key: API key, sent as a bearer token; "" sends none.
        headers: additional headers.
    """

    remote = True

    def __init__(self, url: str, key: str = "", headers: Mapping[str, str] | None = None):
        self.url = completions_url(url)
        is_responses = urlsplit(url.strip()).path.rstrip("/").endswith("/responses")
        self._own_params = {"api": "responses"} if is_responses else {}
        self.target = f"model at {shown_url(self.url)}"
        self.key = check_key(key, self.target)
        self.headers = dict(headers or {})

    def complete(self, request: ChatRequest) -> RawReply:
        name = self.model_name(request.params)
        given = {**self._own_params, **request.params}
        use_responses = wants_responses(given, request.messages)
        url = sibling_url(self.url, "/responses") if use_responses else self.url

        def send(params: dict[str, Any]) -> Answer:
            if use_responses:
                body = {**request_body(request.messages, params), "model": name}
            else:
                body = {**chat_params(params), "model": name, "messages": request.messages}
            return self._exchange("POST", url, request, body)

        lengths = RESPONSES if use_responses else ("max_tokens", "max_completion_tokens")
        answer, bounds = send_bounded(request.bounds, given, (url, name), lengths, send)
        parse = parse_response if use_responses else parse_completion
        return replace(parse(self.target, *answer), bounds=bounds)

    def model_name(self, params: Mapping[str, Any]) -> str:
        """Return `call_kwargs["model"]`, else the first model that the server lists.

        The list is requested once per process.
        """
        if params.get("model"):
            return str(params["model"])
        url = sibling_url(self.url, "/models")
        with _MODEL_NAMES_LOCK:
            if url not in _MODEL_NAMES:
                _MODEL_NAMES[url] = self._request_model_name(url)
            return _MODEL_NAMES[url]

    def _request_model_name(self, url: str) -> str:
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
    ) -> Answer:
        """Send a request and read the complete response."""
        session = requests.Session()  # separate cookies; the connections are shared
        session.mount("http://", _connections(os.getpid()))
        session.mount("https://", _connections(os.getpid()))
        seconds = max(0.1, request.seconds)
        connect_seconds = min(CONNECT_SECONDS, seconds)
        try:
            with (
                tracked(request),
                session.request(
                    method,
                    url,
                    json=body,
                    headers=self.headers,
                    auth=_BearerAuth(self.key),
                    # limits each read; `call_abandonable` limits the whole response
                    timeout=(connect_seconds, seconds),
                    stream=True,
                    allow_redirects=False,
                ) as response,
            ):
                text = read_body(chunks(response), request, self.target)
                return response.status_code, without_key(text, self.key), response.headers
        except requests.exceptions.SSLError as e:
            raise ModelRefused(
                f"{self.target}: TLS failed: {_root_cause(e)} (for a private certificate "
                "authority, set REQUESTS_CA_BUNDLE)"
            ) from None
        except requests.exceptions.ConnectTimeout:
            raise Transient(
                f"{self.target}: no connection within {connect_seconds:.3g} s"
            ) from None
        except (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError):
            raise request.timed_out(self.target) from None
        except (requests.exceptions.ConnectionError, urllib3.exceptions.HTTPError, OSError) as e:
            if isinstance(e, ValueError):  # malformed URL, header or proxy: a retry cannot help
                raise ModelRefused(f"{self.target}: invalid request: {_root_cause(e)}") from None
            raise Transient(f"{self.target}: {_root_cause(e)}") from None


class _BearerAuth(requests.auth.AuthBase):
    """Send the configured key or none, so that requests does not send a login from ~/.netrc."""

    def __init__(self, key: str):
        self.key = key

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.key:
            r.headers["Authorization"] = f"Bearer {self.key}"
        return r


@lru_cache(maxsize=1)
def _connections(pid: int) -> TrackedAdapter:
    """Return this process's connections: a forked child must not use those of its parent."""
    return TrackedAdapter(pool_connections=16, pool_maxsize=64)


def chunks(response: requests.Response) -> Iterator[bytes]:
    """Yield the body of a response to a request with `stream=True`, as it arrives."""
    while chunk := response.raw.read1(_CHUNK, decode_content=True):
        yield chunk


def _root_cause(error: BaseException) -> str:
    """Return the text of the innermost error: "Connection refused"."""
    reason: Any = error
    while inner := getattr(reason, "reason", None) or (reason.args or [None])[0]:
        if not isinstance(inner, BaseException):
            break
        reason = inner
    if isinstance(reason, OSError) and reason.strerror:
        return one_line(reason.strerror)
    # urllib3 writes "HTTPConnection(host=...): Failed ...: [Errno 111] Connection refused"
    text = re.sub(r"^\S*Connection(Pool)?[(<].*?[)>]: ", "", str(reason))
    _, number, last = text.rpartition("[Errno ")
    if number:  # or "(... [Errno -2] Name or service not known)"
        text = last.partition("] ")[2].rstrip(")")
    return one_line(text, 160)
