"""`LLM` with an HTTP server on loopback: retries, faults, usage and limits."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import date
from urllib.parse import urlsplit

import pytest

from ck_pro.exceptions import (
    Cancelled,
    ConfigError,
    ContentFiltered,
    LimitReached,
    ModelRefused,
    ModelUnavailable,
)
from ck_pro.model import LLM, Budget, CallContext, Reply, Usage
from ck_pro.testing import FakeChatServer, Fault

pytestmark = pytest.mark.integration

HELLO = [{"role": "user", "content": "Hello"}]


class Waits(list):
    """Records the seconds instead of waiting."""

    def __call__(self, seconds, cancel):
        self.append(seconds)


def model(url, **kwargs):
    waits = kwargs.pop("waits", Waits())
    return LLM(call_target=url, wait=waits, **kwargs)


@pytest.mark.parametrize("form", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_urls_of_server_api_and_route_are_accepted(form):
    with FakeChatServer(text="hi") as server:
        reply = model(server.url + form)(HELLO)
        assert isinstance(reply, Reply)
        assert (str(reply), reply.model, reply.usage.total_tokens) == ("hi", "fake-model", 15)
        assert server.calls[0].path == "/v1/chat/completions"
        assert server.calls[0].body["model"] == "fake-model"


def test_parameters_images_and_headers_are_sent():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    prompt = [{"role": "user", "content": [{"type": "text", "text": "what"}, image]}]
    with FakeChatServer() as server:
        llm = model(
            server.url,
            call_kwargs={"model": "m", "temperature": 0},
            headers={"X-At": "{agent} {step}"},
        )
        context = CallContext(agent_path=("ck_agent", "web_agent"), step=3)
        reply = llm(prompt, context=context, max_tokens=5)
        call = server.calls[0]
        assert call.body == {"model": "m", "temperature": 0, "max_tokens": 5, "messages": prompt}
        assert call.headers["X-At"] == "ck_agent/web_agent 3"
        assert reply.messages == prompt
        assert reply.params == {"model": "m", "temperature": 0, "max_tokens": 5}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(503),
        Fault(429),
        Fault(408),
        Fault(drop="before"),
        Fault(drop="body"),
        Fault(200, body="<html>busy</html>"),
        Fault(200, body='{"choices": []}'),
        Fault(200, body='{"error": {"code": 502, "message": "upstream"}}'),
        Fault(200, body='{"error": {"type": "server_error", "message": "busy"}}'),
        Fault(200, body='{"error": {"code": "503", "message": "upstream"}}'),
        Fault(200, body='{"error": {"code": null, "message": "upstream reset"}}'),
        Fault(200, body='{"error": "overloaded"}'),
        Fault(200, body='{"code": 50603, "message": "too busy"}'),
        Fault(200, body='{"choices": null}'),
        Fault(200, body='"busy"'),
        Fault(202, body='{"status": "queued"}'),
        Fault(200, body="[" * 100_000),
    ],
)
def test_transient_failures_are_retried(fault):
    waits = Waits()
    with FakeChatServer([fault, fault, "fine"]) as server:
        reply = model(server.url, waits=waits, call_kwargs={"model": "m"})(HELLO)
    assert (str(reply), reply.attempts, len(waits)) == ("fine", 3, 2)
    assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (Fault(401, message="bad key"), ModelRefused, "check the API key"),
        (Fault(404, message="no such model"), ModelRefused, "call_target"),
        (Fault(400, message="too long"), ModelRefused, "max_prompt_tokens"),
        (Fault(429, code="insufficient_quota", message="pay"), ModelRefused, "quota"),
        (Fault(400, code="content_filter", message="bad words"), ContentFiltered, "bad words"),
        (Fault(307, {"Location": "http://elsewhere"}), ModelRefused, "http://elsewhere"),
        (
            Fault(307, {"Location": "http://me:pw@elsewhere/x?sig=1"}),
            ModelRefused,
            "//elsewhere/x'",
        ),
        (Fault(501), ModelRefused, "501"),
        (Fault(304), ModelRefused, "HTTP 304"),
        (
            Fault(200, body='{"error": {"code": "model_not_found", "message": "no gpt-9"}}'),
            ModelRefused,
            r"returned an error: no gpt-9 \(no such model",
        ),
        (
            Fault(200, body='{"error": {"type": "invalid_request_error", "message": "bad"}}'),
            ModelRefused,
            "returned an error: bad",
        ),
        (Fault(200, body='{"error": {"code": "insufficient_quota"}}'), ModelRefused, "used up"),
        (Fault(200, body='{"error": {"code": "bio_policy"}}'), ContentFiltered, "bio_policy"),
    ],
)
def test_permanent_failures_fail_at_once_with_one_line(fault, error, message):
    with FakeChatServer([fault]) as server:
        with pytest.raises(error, match=message) as caught:
            model(server.url, call_kwargs={"model": "m"})(HELLO)
        assert len(server.calls) == 1
        assert "\n" not in str(caught.value) and server.url in str(caught.value)


def test_a_url_of_another_service_is_reported_at_each_attempt(caplog):
    with FakeChatServer([Fault(200, body='{"hello": 1}')]) as server:
        llm = model(server.url, call_kwargs={"model": "m"}, max_retry_times=2)
        with pytest.raises(ModelUnavailable, match=r"OpenAI-compatible API.* after 3 attempts"):
            llm(HELLO)
    assert [r.message.count("OpenAI-compatible") for r in caplog.records] == [1, 1]


def test_any_2xx_status_is_a_success():
    with FakeChatServer(
        [Fault(201, body='{"choices": [{"message": {"content": "fine"}}]}')]
    ) as server:
        assert model(server.url, call_kwargs={"model": "m"})(HELLO) == "fine"


def test_retry_after_is_honoured():
    waits = Waits()
    with FakeChatServer([Fault(429, {"Retry-After": "7"}), "fine"]) as server:
        model(server.url, waits=waits, call_kwargs={"model": "m"})(HELLO)
    assert 7 <= waits[0] <= 8


def test_a_retry_after_of_zero_does_not_use_up_all_retries():
    waits = Waits()
    with FakeChatServer([Fault(429, {"Retry-After": "0"})] * 3 + ["fine"]) as server:
        model(server.url, waits=waits, call_kwargs={"model": "m"})(HELLO)
    assert len(waits) == 3 and min(waits) >= 0.5 and waits[-1] >= 2


def test_a_retry_after_beyond_max_retry_seconds_fails_at_once():
    waits = Waits()
    server = FakeChatServer([Fault(429, {"Retry-After": "4000"})])
    with server, pytest.raises(ModelUnavailable, match="asks to wait 4000 s"):
        model(server.url, waits=waits, call_kwargs={"model": "m"})(HELLO)
    assert waits == []


def test_retries_are_limited_by_number_and_by_time():
    with FakeChatServer([Fault(500)]) as server:
        with pytest.raises(ModelUnavailable, match="3 attempts"):
            model(server.url, max_retry_times=2, call_kwargs={"model": "m"})(HELLO)
        assert len(server.calls) == 3
        llm = model(
            server.url, max_retry_times=50, max_retry_seconds=10, call_kwargs={"model": "m"}
        )
        waits = llm.wait
        with pytest.raises(ModelUnavailable):
            llm(HELLO)
        assert sum(waits) <= 10 and len(waits) >= 2


def test_a_refused_connection_is_reported():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        with pytest.raises(ModelUnavailable, match="Connection refused; gave up after 2 attempts"):
            model(url, max_retry_times=1, call_kwargs={"model": "m"})(HELLO)


def test_an_unknown_host_is_reported(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ModelUnavailable, match="http://host:1: Name or service not known; gave up"):
        model("http://host:1", max_retry_times=0, call_kwargs={"model": "m"})(HELLO)


@pytest.mark.parametrize("fault", [Fault(delay=60), Fault(drip=0.05)])
def test_a_slow_response_is_abandoned_after_the_timeout(fault):
    with FakeChatServer([fault, "fine"]) as server:
        reply = model(server.url, request_timeout=0.2, call_kwargs={"model": "m"})(HELLO)
    assert str(reply) == "fine" and reply.attempts >= 2


@pytest.mark.parametrize("first", [[], [Fault(status=503, headers={"Retry-After": "0.01"})]])
def test_max_retry_seconds_does_not_limit_one_slow_reply(first):
    with FakeChatServer([*first, Fault(delay=0.6)], text="slow") as server:
        reply = model(server.url, max_retry_seconds=0.3, call_kwargs={"model": "m"})(HELLO)
    assert str(reply) == "slow" and reply.attempts == 1 + len(first)


def test_cancel_ends_a_pending_call_and_a_wait():
    cancel = threading.Event()
    context = CallContext(cancel=cancel)
    with FakeChatServer([Fault(delay=60)]) as server:
        threading.Timer(0.1, cancel.set).start()
        with pytest.raises(Cancelled):
            model(server.url, call_kwargs={"model": "m"})(HELLO, context=context)
    cancel.clear()
    with FakeChatServer([Fault(429, {"Retry-After": "100"})]) as server:
        threading.Timer(0.1, cancel.set).start()
        with pytest.raises(Cancelled):
            LLM(call_target=server.url, call_kwargs={"model": "m"})(HELLO, context=context)


def test_the_time_budget_limits_a_call():
    context = CallContext(budget=Budget(max_seconds=0.1))
    with FakeChatServer([Fault(delay=60)]) as server, pytest.raises(LimitReached) as caught:
        model(server.url, call_kwargs={"model": "m"})(HELLO, context=context)
    assert caught.value.reason == "time"


def test_usage_details_cost_and_budget():
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    body = {
        "model": "gpt-4o-2024-08-06",
        "usage": usage,
        "choices": [{"message": {"content": "x", "reasoning_content": "hm"}}],
    }
    budget = Budget(max_money=1)
    with FakeChatServer([body]) as server:
        llm = model(server.url, call_kwargs={"model": "gpt-4o"})
        reply = llm(HELLO, context=CallContext(budget=budget))
    assert reply.usage.to_dict() == {
        "prompt_tokens": 1000,
        "cached_tokens": 600,
        "completion_tokens": 100,
        "reasoning_tokens": 40,
        "estimated": False,
    }
    assert reply.reasoning == "hm"
    assert reply.cost == pytest.approx((400 * 2.5 + 600 * 1.25 + 100 * 10) / 1e6)
    assert budget.snapshot()["money"] == reply.cost
    assert budget.snapshot()["tokens"] == 1100


def test_missing_usage_is_estimated():
    body = {"choices": [{"message": {"content": "word " * 70}}]}
    with FakeChatServer([body]) as server:
        usage = model(server.url, call_kwargs={"model": "m"})(HELLO).usage
    assert usage.estimated and usage.prompt_tokens > 0 and usage.completion_tokens == 100


def test_a_missing_token_count_is_estimated():
    usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 99}}
    choice = {"message": {"content": "word " * 70, "tool_calls": 5}}
    with FakeChatServer([{"choices": [choice], "usage": usage}]) as server:
        reply = model(server.url, call_kwargs={"model": "m"})(HELLO)
    assert reply.usage == Usage(7, 7, 100, estimated=True)
    assert reply.tool_calls == []


def test_a_money_limit_refuses_a_model_without_a_price():
    context = CallContext(budget=Budget(max_money=1))
    with FakeChatServer() as server:
        with pytest.raises(ModelRefused, match="price of 'fake-model' is unknown: set `price`"):
            model(server.url)(HELLO, context=context)
        assert server.calls == []
        llm = model(server.url, price={"prompt": 1, "completion": 2})
        assert llm(HELLO, context=context).cost == pytest.approx(20e-6)


def test_a_filtered_reply_is_charged():
    budget = Budget()
    body = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    with FakeChatServer([body]) as server, pytest.raises(ContentFiltered):
        model(server.url)(HELLO, context=CallContext(budget=budget))
    assert budget.snapshot()["tokens"] > 0


def test_a_key_in_an_error_of_the_service_is_not_shown(monkeypatch):
    monkeypatch.setenv("CK_API_KEY", "key-0123456789")
    with FakeChatServer([Fault(401, message="no such key: key-0123456789")]) as server:
        llm = model(server.url, call_kwargs={"model": "m"})
        with pytest.raises(ModelRefused, match=r"no such key: \*\*\* "):
            llm(HELLO)


def test_an_endless_response_is_abandoned(monkeypatch):
    monkeypatch.setattr("ck_pro.model.backends.chat_completions.LARGEST_BODY", 1 << 20)
    with FakeChatServer(["x" * (2 << 20)]) as server:
        llm = model(server.url, call_kwargs={"model": "m"})
        with pytest.raises(ModelRefused, match="exceeds 1 MB"):
            llm(HELLO)


def test_a_byte_order_mark_is_removed():
    body = "\ufeff" + json.dumps({"choices": [{"message": {"content": "fine"}}]})
    with FakeChatServer([Fault(200, body=body)]) as server:
        assert model(server.url, call_kwargs={"model": "m"})(HELLO) == "fine"


def test_only_the_configured_key_is_sent(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("MY_KEY", " my-key\n")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password pass\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with FakeChatServer() as server:
        model(server.url)(HELLO)
        model(server.url, api_key_env="MY_KEY")(HELLO)
        assert "Authorization" not in server.calls[0].headers
        assert server.calls[1].headers["Authorization"] == "Bearer my-key"
    monkeypatch.setenv("MY_KEY", "two words")
    with pytest.raises(ModelRefused) as caught:
        model("http://127.0.0.1:1", api_key_env="MY_KEY")(HELLO)
    assert "two words" not in str(caught.value)


def test_a_server_without_a_model_list_is_reported():
    with FakeChatServer() as server:  # which knows no address of models with a query
        with pytest.raises(ModelRefused, match="call_kwargs") as caught:
            model(server.url + "/other/v1?x=secret")(HELLO)
        assert "secret" not in str(caught.value)


def test_descriptions_contain_no_secrets():
    shown = LLM(call_target="https://me:pass@host.example/v1?key=abc").describe()
    assert shown == "model at https://host.example"


def test_threads_can_share_a_model():
    def echo(call):
        return str(call.messages[-1]["content"]).upper()

    results, budget = {}, Budget()
    with FakeChatServer(echo) as server:
        llm = model(server.url)

        def work(name):
            context = CallContext(budget=Budget(parent=budget))
            results[name] = [
                str(llm([{"role": "user", "content": f"{name}-{i}"}], context=context))
                for i in range(5)
            ]

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(10)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert results == {f"t{n}": [f"T{n}-{i}" for i in range(5)] for n in range(10)}
    assert budget.snapshot()["llm_call"] == 50


def test_settings_are_checked_on_creation():
    for target in ("", "gtp:x", "gpt:", "http://", "record:x", "replay:", "replay:x?check=maybe"):
        with pytest.raises(ConfigError):
            LLM(call_target=target)
    for wrong in ({"price": {"prompt": 1}}, {"call_kwargs": {"stream": True}}):
        with pytest.raises(ConfigError):
            LLM(**wrong)
    for value in ({"a"}, b"a", float("nan"), date(2026, 1, 31)):
        with pytest.raises(ConfigError, match="call_kwargs: the value of 'stop' is not valid JSON"):
            LLM(call_kwargs={"stop": [value]})
    with pytest.raises(ConfigError, match="did you mean 'replay'"):
        LLM(call_target="repaly:x")


def test_settings_round_trip_through_a_dict():
    llm = LLM(call_target="gpt:gpt-4o", price={"prompt": 1, "completion": 2})
    assert LLM(**llm.to_dict()).to_dict() == llm.to_dict()
    assert json.dumps(llm.to_dict())


def test_latency_covers_the_whole_call():
    with FakeChatServer([Fault(500), "x"]) as server:
        start = time.monotonic()
        reply = model(server.url, call_kwargs={"model": "m"})(HELLO)
        assert 0 < reply.latency <= time.monotonic() - start


def test_the_fake_server_ignores_an_incomplete_request(capfd: pytest.CaptureFixture[str]) -> None:
    with FakeChatServer(["fine"]) as chat:
        place = urlsplit(chat.url)
        with socket.create_connection((place.hostname, place.port)) as caller:
            caller.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(100) == b""
        assert LLM(call_target=f"{chat.url}/v1")([{"role": "user", "content": "x"}]) == "fine"
        assert len(chat.calls) == 1
    assert capfd.readouterr().err == ""
