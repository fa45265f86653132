"""Chat with OpenAI or Azure OpenAI, with the openai package."""

from __future__ import annotations

import importlib
import importlib.util
import os
import ssl
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ck_pro.exceptions import ModelError, ModelRefused
from ck_pro.model.backends.api_keys import check_key, without_key
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.backends.chat_completions import parse_completion, read_body
from ck_pro.model.backends.hang_up import track_client, tracked
from ck_pro.model.backends.http_endpoint import CONNECT_SECONDS
from ck_pro.model.backends.reply_bounds import RESPONSES, Answer, send_bounded
from ck_pro.model.backends.responses import parse_response
from ck_pro.model.backends.responses_input import chat_params, request_body, wants_responses
from ck_pro.model.backends.service_errors import one_line
from ck_pro.model.backends.urls import shown_url
from ck_pro.model.retry import Transient
from ck_pro.model.types import Message, RawReply


class OpenAIBackend(Backend):
    """A hosted GPT model; the environment gives access.

    Reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`. If `AZURE_OPENAI_ENDPOINT` is set, uses that
    resource with `AZURE_OPENAI_API_KEY` and `OPENAI_API_VERSION`.

    Args:
        name: model, or Azure deployment.
        headers: additional headers.
    """

    remote = True

    def __init__(self, name: str, headers: Mapping[str, str] | None = None):
        self.name = name
        self.headers = dict(headers or {})
        self.azure = bool(os.environ.get("AZURE_OPENAI_ENDPOINT"))

    def check(self) -> None:
        self._client()

    def model_name(self, params: Mapping[str, Any]) -> str:
        return str(params.get("model") or self.name)

    def describe(self) -> str:
        if self.azure:
            return f"{self.name} at {shown_url(os.environ['AZURE_OPENAI_ENDPOINT'])} (Azure)"
        base = os.environ.get("OPENAI_BASE_URL")
        return f"{self.name} at {shown_url(base)}" if base else f"{self.name} (OpenAI)"

    def complete(self, request: ChatRequest) -> RawReply:
        client = self._client()
        key = str(client.api_key)
        import openai

        seconds = max(0.1, request.seconds)
        name = self.model_name(request.params)
        use_responses = wants_responses(request.params, request.messages)

        def send(params: dict[str, Any]) -> Answer:
            make = self._responses if use_responses else self._chat
            create, sent = make(client, request.messages, params)
            try:
                # read the raw body: one parser serves every back end, and a slow body can be
                # abandoned
                with create(
                    model=name,
                    **sent,
                    extra_headers=self.headers,
                    timeout=openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
                ) as response:
                    text = read_body(response.iter_bytes(), request, self.describe())
                    return response.status_code, without_key(text, key), response.headers
            except openai.APIStatusError as e:
                return e.status_code, without_key(e.response.text, key), e.response.headers
            except _connection_errors() as e:
                raise self._connection_error(e, request) from None

        service = (str(client.base_url), name)
        lengths = RESPONSES if use_responses else self._lengths(str(client.base_url.host))
        with tracked(request):
            answer, bounds = send_bounded(request.bounds, request.params, service, lengths, send)
        parse = parse_response if use_responses else parse_completion
        return replace(parse(self.describe(), *answer), bounds=bounds)

    def _lengths(self, host: str) -> tuple[str, ...]:
        """Return the names of the length limit, best first: OpenAI's new name may be unknown to,
        and ignored by, other servers."""
        names = ("max_completion_tokens", "max_tokens")
        return names if self.azure or host.endswith(".openai.com") else names[::-1]

    # The SDK rejects unknown parameter names; `extra_body` passes those of other servers.

    @staticmethod
    def _chat(
        client: Any, messages: list[Message], params: dict[str, Any]
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        sent = {"messages": messages, "extra_body": chat_params(params)}
        return client.chat.completions.with_streaming_response.create, sent

    def _responses(
        self, client: Any, messages: list[Message], params: dict[str, Any]
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        if not hasattr(client, "responses"):
            raise ModelRefused(
                f"{self.describe()}: the Responses API needs a newer openai package: "
                "pip install -U 'openai>=1.66'"
            )
        body = request_body(messages, params)
        sent = {"input": body.pop("input"), "extra_body": body}
        return client.responses.with_streaming_response.create, sent

    def _connection_error(self, error: Exception, request: ChatRequest) -> ModelError:
        causes = list(_chain(error))
        if any(isinstance(c, ssl.SSLCertVerificationError) for c in causes):
            return ModelRefused(
                f"{self.describe()}: TLS failed: {one_line(str(causes[-1]))} (for a private "
                "certificate authority, set SSL_CERT_FILE)"
            )
        if any("connecttimeout" in type(c).__name__.lower() for c in causes):
            waited = min(CONNECT_SECONDS, request.seconds)
            return Transient(f"{self.describe()}: no connection within {waited:.3g} s")
        if any("timeout" in type(c).__name__.lower() for c in causes):
            return request.timed_out(self.describe())
        return Transient(f"{self.describe()}: {one_line(str(causes[-1])) or type(error).__name__}")

    def _client(self) -> Any:
        """Return the SDK's client for the current environment; threads share it."""
        if importlib.util.find_spec("openai") is None:
            raise ModelRefused(
                f"{self.describe()}: the openai package is missing: pip install 'ck-pro[openai]'"
            )
        names = _AZURE_NAMES if self.azure else _OPENAI_NAMES
        for name in names:
            if not os.environ.get(name):
                raise ModelRefused(
                    f"{self.describe()}: the environment variable {name} is not set; set it, or "
                    "choose another `call_target`"
                )
        _connection_errors()  # the SDK fails while another thread imports its HTTP library
        key_name = names[0]
        key = check_key(os.environ[key_name], self.describe())
        if self.azure:
            version = os.environ["OPENAI_API_VERSION"]
            return _azure_client(os.getpid(), key, os.environ["AZURE_OPENAI_ENDPOINT"], version)
        return _openai_client(os.getpid(), key, os.environ.get("OPENAI_BASE_URL") or None)


_OPENAI_NAMES = ("OPENAI_API_KEY",)
_AZURE_NAMES = ("AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")


@lru_cache(maxsize=8)
def _openai_client(pid: int, key: str, base_url: str | None) -> Any:
    """Return one client per process and access. `LLM` retries, so the client does not."""
    from openai import OpenAI

    return _direct(OpenAI(api_key=key, base_url=base_url, max_retries=0))


@lru_cache(maxsize=8)
def _azure_client(pid: int, key: str, endpoint: str, version: str) -> Any:
    from openai import AzureOpenAI

    return _direct(
        AzureOpenAI(api_key=key, azure_endpoint=endpoint, api_version=version, max_retries=0)
    )


def _direct(client: Any) -> Any:
    """Return the client, changed to follow no redirects, so that prompts reach only its URL."""
    track_client(client._client)
    client._client.follow_redirects = False  # the SDK would not close an HTTP client passed to it
    # close the connections of a client that the cache dropped
    weakref.finalize(client, client._client.close).atexit = False
    return client


@lru_cache(maxsize=1)
def _connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the SDK and of its HTTP library, whose name depends on the version."""
    import openai

    names = [n for n in ("httpx", "httpx2") if importlib.util.find_spec(n) is not None]
    return (openai.OpenAIError, *(importlib.import_module(n).HTTPError for n in names))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
