"""`gpt:NAME` with the openai package and a fake server."""

from __future__ import annotations

import gc
import importlib.util
import os

import pytest

from ck_pro.exceptions import ContentFiltered, ModelRefused, ModelUnavailable
from ck_pro.model import LLM
from ck_pro.model.backends import openai_service
from ck_pro.testing import FakeChatServer, Fault

pytestmark = [
    pytest.mark.integration,
    # not with an import, which takes a second in every collection
    pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="needs openai"),
]
HELLO = [{"role": "user", "content": "Hello"}]
NAMES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_KEY",
    "OPENAI_API_VERSION",
)


@pytest.fixture(autouse=True)
def no_access(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service(monkeypatch):
    def use(server):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        return LLM(call_target="gpt:gpt-4o", wait=lambda seconds, cancel: None, max_retry_times=3)

    return use


def test_a_call_returns_the_reply_with_usage(service):
    with FakeChatServer(text="<think>hm</think>hi", model="gpt-4o-2024-08-06") as server:
        reply = service(server)(HELLO, temperature=0.5, top_k=3)
        call = server.calls[0]
    params = {"temperature": 0.5, "top_k": 3, "max_tokens": 16_384}
    assert call.body == {"model": "gpt-4o", "messages": HELLO, **params}
    assert call.headers["Authorization"] == "Bearer sk-test-key"
    assert (str(reply), reply.reasoning, reply.model) == ("hi", "hm", "gpt-4o-2024-08-06")
    assert reply.cost == pytest.approx((10 * 2.5 + 5 * 10) / 1e6)


@pytest.mark.parametrize(
    "fault",
    [Fault(500), Fault(429), Fault(drop="before"), Fault(drop="body"), Fault(200, body="{")],
)
def test_only_llm_retries_not_the_openai_package(service, fault):
    with FakeChatServer([fault, "fine"]) as server:
        reply = service(server)(HELLO)
        assert (str(reply), reply.attempts, len(server.calls)) == ("fine", 2, 2)


@pytest.mark.parametrize("fault", [Fault(delay=60), Fault(drip=0.05)])
def test_a_slow_response_is_abandoned(service, fault):
    with FakeChatServer([fault]) as server:
        llm = service(server).updated({"request_timeout": 0.2, "max_retry_times": 0})
        with pytest.raises(ModelUnavailable, match=r"within 0\.2 s"):
            llm(HELLO)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (Fault(401, message="wrong key"), ModelRefused, "wrong key.*check the API key"),
        (Fault(429, code="insufficient_quota"), ModelRefused, "quota"),
        (Fault(400, code="content_filter"), ContentFiltered, "content filter"),
        (Fault(401, message="not sk-test-key"), ModelRefused, r"not \*\*\*"),
        (Fault(307, {"Location": "http://127.0.0.1:9/v1"}), ModelRefused, "redirects to"),
    ],
)
def test_refused_requests_are_reported(service, fault, error, message):
    with FakeChatServer([fault]) as server:
        with pytest.raises(error, match=message) as caught:
            service(server)(HELLO)
        assert len(server.calls) == 1
    assert "sk-test-key" not in str(caught.value)


def test_a_refused_connection_is_reported(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailable, match="Connection refused"):
        LLM(call_target="gpt:x", max_retry_times=0)(HELLO)


def test_azure_is_used_if_its_endpoint_is_set(monkeypatch):
    with FakeChatServer(text="hi") as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        llm = LLM(call_target="gpt:my-deployment")
        with pytest.raises(ModelRefused, match="AZURE_OPENAI_API_KEY is not set"):
            llm.check()
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-key")
        with pytest.raises(ModelRefused, match="OPENAI_API_VERSION is not set"):
            llm.check()
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        llm.check()
        assert str(llm(HELLO)) == "hi"
        call = server.calls[0]
    assert call.path.startswith("/openai/deployments/my-deployment/chat/completions?api-version=")
    assert call.headers["api-key"] == "az-key"
    assert "Azure" in llm.describe()


def test_missing_access_is_reported_in_one_line(monkeypatch):
    llm = LLM(call_target="gpt:gpt-4o")
    for ask in (llm.check, lambda: llm(HELLO)):
        with pytest.raises(ModelRefused, match=r"gpt-4o .*OPENAI_API_KEY is not set"):
            ask()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelRefused, match=r"pip install 'ck-pro\[openai\]'"):
        llm.check()


def test_a_client_that_the_cache_drops_closes_its_connections():
    client = openai_service._openai_client(os.getpid(), "sk-test-key", "http://127.0.0.1:9/v1")
    http = client._client
    openai_service._openai_client.cache_clear()
    gc.collect()
    assert not http.is_closed, "the client is still in use"
    del client
    gc.collect()
    assert http.is_closed
