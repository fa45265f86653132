"""Calls that time out or are cancelled: the error, and the closed connection."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from ck_main.runner import service_checks as checks
from ck_main.runner.attempt import Assignment, Attempt
from ck_main.tasks.dataset import Task
from ck_pro import MultiStepAgent
from ck_pro.exceptions import Cancelled, LimitReached, ModelTimeout, ModelUnavailable
from ck_pro.model import LLM, Budget, CallContext
from ck_pro.model.backends import http_endpoint
from ck_pro.session import StopReason

pytestmark = pytest.mark.integration
HELLO = [{"role": "user", "content": "Hello"}]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
BODY = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()
LONG = 30.0


class SlowServer:
    """A server on loopback that completes the first responses and then stalls.

    Args:
        answered: how many calls it answers whole.
        beginning: what it sends of the answer to each further call.

    Attributes:
        asked: set when such a call has been read.
        left: set when its client closed the connection.
    """

    def __init__(self, answered: int = 0, beginning: bytes = b""):
        self._answered, self._beginning = answered, beginning
        self.asked, self.left = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> SlowServer:
        self._accepting.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join(LONG)

    def _accept(self) -> None:
        threads = []
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            self._connections.append(connection)
            threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join(LONG)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(LONG)
        with connection:
            try:
                while self._read_request(connection):
                    if self._answered > 0:
                        self._answered -= 1
                        connection.sendall(HEAD % len(BODY) + BODY)
                        continue
                    connection.sendall(self._beginning)
                    self.asked.set()
                    if connection.recv(1) == b"":
                        self.left.set()
                    return
                self.left.set()  # before it had asked anything more
            except ConnectionError:
                self.left.set()

    @staticmethod
    def _read_request(connection: socket.socket) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            got = connection.recv(65536)
            if not got:
                return False
            data += got
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")]
        missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
        while missing > 0:
            missing -= len(connection.recv(65536))
        return True


@pytest.fixture(params=["http", "gpt"])
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LLM]:
    """A function from a URL to a model, for each back end."""

    def make(url: str, **settings: Any) -> LLM:
        target = url
        if request.param == "gpt":
            pytest.importorskip("openai")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
            monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
            target = "gpt:m"
        return LLM(call_target=target, call_kwargs={"model": "m"}, **settings)

    return make


BEGINNINGS = [
    pytest.param(b"", id="nothing"),
    pytest.param(HEAD[:20], id="half a head"),
    pytest.param(HEAD % 500, id="a head"),
    pytest.param(HEAD % 500 + b'{"choices"', id="half a body"),
]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_timeout_reports_its_limit_and_closes_the_connection(
    model: Callable[..., LLM], beginning: bytes
) -> None:
    with SlowServer(beginning=beginning) as server:
        with pytest.raises(ModelTimeout) as raised:
            model(server.url, request_timeout=0.4, max_retry_seconds=0.1)(HELLO)
        assert server.left.wait(LONG)
    message = str(raised.value)
    assert "no complete reply within 0.4 s (`request_timeout`); gave up after 1 attempt" in message
    assert "raise `request_timeout`" in message and "check that the service is up" not in message


def test_a_body_whose_read_times_out_first_is_a_timeout_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(response: Any) -> Iterator[bytes]:
        raise urllib3.exceptions.ReadTimeoutError(response.raw, None, "Read timed out.")

    monkeypatch.setattr(http_endpoint, "chunks", late)
    with SlowServer(answered=1) as server, pytest.raises(ModelTimeout):
        LLM(call_target=server.url, call_kwargs={"model": "m"}, max_retry_seconds=0.1)(HELLO)


@pytest.mark.parametrize("answered", [0, 1])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_cancelled_call_closes_its_connection_at_once(
    model: Callable[..., LLM], beginning: bytes, answered: int
) -> None:
    cancel = threading.Event()
    with SlowServer(answered=answered, beginning=beginning) as server:
        llm = model(server.url, request_timeout=600)
        if answered:  # then the second call goes over the same connection
            assert str(llm(HELLO)) == "ok"
        threading.Thread(target=lambda: server.asked.wait(LONG) and cancel.set()).start()
        with pytest.raises(Cancelled):
            llm(HELLO, context=CallContext(cancel=cancel))
        assert server.left.wait(LONG)


def test_a_limit_of_the_run_is_not_reported_as_a_model_timeout(model: Callable[..., LLM]) -> None:
    budget = Budget(max_seconds=0.3)
    with SlowServer() as server:
        with pytest.raises(LimitReached) as raised:
            model(server.url, request_timeout=600)(HELLO, context=CallContext(budget=budget))
        assert server.left.wait(LONG)
    assert raised.value.reason == "time"


def test_calls_after_a_cancelled_call_succeed(model: Callable[..., LLM]) -> None:
    with SlowServer() as server, pytest.raises(ModelTimeout):
        model(server.url, request_timeout=0.2, max_retry_times=0)(HELLO)
    with SlowServer(answered=2) as server:
        llm = model(server.url)
        assert [str(llm(HELLO)), str(llm(HELLO))] == ["ok", "ok"]


# --- after a timeout ------------------------------------------------------------------------------


def test_the_test_prompt_uses_the_models_own_request_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[LLM] = []

    def answer(self: LLM, *args: Any, **kwargs: Any) -> str:
        asked.append(self)
        raise ModelTimeout("model at x: no complete reply within 600 s (`request_timeout`)")

    monkeypatch.setattr(LLM, "__call__", answer)
    with pytest.raises(ModelTimeout) as raised:
        checks._ask(LLM(call_target="http://127.0.0.1:9", request_timeout=600.0))
    assert [one.request_timeout for one in asked] == [600.0]
    message = (
        "after a failed call, a one-line test prompt failed too: model at x: no complete reply"
    )
    assert str(raised.value).startswith(message)


def test_a_run_with_a_slow_model_ends_with_the_timeout_as_reason(tmp_path: Path) -> None:
    with SlowServer() as server:
        llm = LLM(
            call_target=server.url,
            call_kwargs={"model": "m"},
            request_timeout=0.3,
            max_retry_seconds=0.1,
        )
        agent = MultiStepAgent(model=llm, language="function_calls")
        with Attempt(
            agent,
            Assignment(Task("a", "t", "a"), tmp_path),
            budget=Budget(),
            cancel=threading.Event(),
            on_event=lambda event: None,
        ) as attempt:
            attempt.run()
            session = attempt.session
            assert attempt.transient_failure() and attempt.may_be_outage()
    assert session.stop_reason is StopReason.MODEL_FAILURE
    assert "no complete reply within 0.3 s (`request_timeout`)" in session.message


def test_a_failed_connection_is_not_a_request_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    llm = LLM(call_target=url, call_kwargs={"model": "m"}, max_retry_times=0)
    with pytest.raises(ModelUnavailable, match="Connection refused") as raised:
        llm(HELLO)
    assert not isinstance(raised.value, ModelTimeout)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Check that abandoned calls ended their threads."""
    before = set(threading.enumerate())  # servers of other tests in this process live on
    yield
    busy = [t for t in set(threading.enumerate()) - before if t.name.startswith("Thread-")]
    for thread in busy:
        thread.join(LONG)
    assert not [t for t in busy if t.is_alive()]
