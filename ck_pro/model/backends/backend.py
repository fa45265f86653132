"""What an `LLM` calls: the `Backend` interface, the chat-completions wire, bounded calls."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ck_pro import threads
from ck_pro.exceptions import ContentFiltered, ModelRefused
from ck_pro.model.backends.reply_bounds import Bounds
from ck_pro.model.retry import TimedOut, Transient, one_line, service_error, told_error
from ck_pro.model.types import CallContext, Message, RawReply, Usage

_T = TypeVar("_T")
_POLL = 0.05  # seconds between looks at `cancel` while a call is in flight
_CUT_OFF = ("length", "max_tokens", "model_length", "max_output_tokens")
"""What services call the end of a reply that reached the limit of its length."""
_NO_JSON = object()
LARGEST_REPLY = 64 << 20
"""Bytes of a reply's body."""


@dataclass
class ChatRequest:
    """One attempt of a call.

    Args:
        messages: the prompt to send.
        params: parameters beside it (`temperature`, `max_tokens`, ...).
        context: who calls.
        seconds: time for the whole reply.
        bounds: what bounds the reply, where the service can.
        limit: what set `seconds`, for messages.
        abandoned: set when nobody waits any more: the back end should hang up.
    """

    messages: list[Message]
    params: dict[str, Any]
    context: CallContext
    seconds: float = 600.0
    bounds: Bounds = field(default_factory=Bounds)
    limit: str = "`request_timeout`"
    abandoned: threading.Event = field(default_factory=threading.Event)
    _closers: list[Callable[[], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_abandon(self, close: Callable[[], None]) -> None:
        """Have something closed when the call is abandoned; at once if it was."""
        with self._lock:
            if not self.abandoned.is_set():
                self._closers.append(close)
                return
        close()

    def abandon(self) -> None:
        """Stop waiting: close what the call uses."""
        with self._lock:
            self.abandoned.set()
            for close in self._closers:
                close()
            self._closers.clear()

    def release(self) -> None:
        """The call uses nothing any more."""
        with self._lock:
            self._closers.clear()

    def timed_out(self, target: str) -> TimedOut:
        """The error for a reply that did not come in time."""
        return TimedOut(f"{target}: no whole reply within {self.seconds:.3g} s ({self.limit})")


class Backend(ABC):
    """What answers the prompts of an `LLM`. Holds no state of a run; used by many threads."""

    free: bool = False
    """Calls cost nothing, so no price is needed."""
    remote: bool = False
    """Calls wait for a service: they run in a thread of their own, so that they can be left."""

    @abstractmethod
    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one prompt.

        Raises:
            Transient: another try may succeed.
            ModelError: no further try can.
        """

    @abstractmethod
    def describe(self) -> str:
        """One line for the screen, never with a secret."""

    @abstractmethod
    def model_name(self, params: Mapping[str, Any]) -> str:
        """The name of the model that will answer; prices go by it. May ask the service."""

    def check(self) -> None:  # noqa: B027 - most have nothing to check
        """Raise the `ModelError` that a first call would meet, as far as is known without one."""


def parse_completion(target: str, status: int, body: str, headers: Mapping[str, str]) -> RawReply:
    """Read a reply in the form of OpenAI's chat completions API, or raise what it means.

    Args:
        target: which service, for messages.
        status: HTTP status.
        body: as text.
        headers: of the reply.
    """
    data = parse_json(target, status, body, headers)
    if isinstance(data, dict) and data.get("error"):  # some gateways answer 200 with an error
        raise told_error(target, data, headers)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):  # a wrong address, or a gateway that tells of its trouble
        raise Transient(
            f"{target}: the reply is no chat completion: '{one_line(body, 120)}'; "
            "is this an OpenAI-compatible address?"
        )
    if not choices or not isinstance(choices[0], dict):
        raise Transient(f"{target}: the reply holds no choice")
    return _choice(target, choices[0], data)


def parse_json(target: str, status: int, body: str, headers: Mapping[str, str]) -> Any:
    """The body of a reply as JSON data, or the error that the reply is; as `parse_completion`."""
    data = _json(body)
    if not 200 <= status < 300:
        raise service_error(target, status, body if data is _NO_JSON else data, headers)
    if data is _NO_JSON:
        shown = one_line(body, 120)
        raise Transient(f"{target}: the reply is cut off or not JSON: '{shown}'")
    return data


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _NO_JSON


def read_body(chunks: Iterable[bytes], request: ChatRequest, target: str) -> str:
    """The body of a reply, read as it arrives.

    Raises:
        Transient: the call was left meanwhile.
        ModelRefused: the body has no end.
    """
    read, size = [], 0
    for chunk in chunks:
        if request.abandoned.is_set():
            raise Transient(f"{target}: nobody waits for this reply any more")
        size += len(chunk)
        if size > LARGEST_REPLY:
            raise ModelRefused(f"{target}: the reply is longer than {LARGEST_REPLY >> 20} MB")
        read.append(chunk)
    return b"".join(read).decode("utf-8-sig", "replace")


def _choice(target: str, choice: dict[str, Any], data: dict[str, Any]) -> RawReply:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Transient(f"{target}: the reply's choice holds no message")
    finish = str(choice.get("finish_reason") or "stop")
    finish = "length" if finish.lower() in _CUT_OFF else finish
    refusal = message.get("refusal")
    if finish == "content_filter" or (refusal and not message.get("content")):
        said = f": {one_line(str(refusal))}" if refusal else ""
        raise FilteredReply(f"{target}: the content filter stopped the reply{said}", _usage(data))
    return RawReply(
        text=_text(message.get("content")),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        tool_calls=calls if isinstance(calls := message.get("tool_calls"), list) else [],
        usage=_usage(data),
        finish_reason=finish,
        model=str(data.get("model") or ""),
    )


class FilteredReply(ContentFiltered):
    """A reply that the content filter stopped.

    Attributes:
        usage: the tokens that it cost all the same; None if the service did not say, until `LLM`
            has put its estimate there.
        cost: USD, once `LLM` has charged it; None if the price is not known.
    """

    def __init__(self, message: str, usage: Usage | None):
        super().__init__(message)
        self.usage = usage
        self.cost: float | None = None


def _text(content: Any) -> str:
    """Text of a message's content, which may come as a list of parts."""
    if isinstance(content, list):
        parts = [p.get("text", "") if isinstance(p, dict) else p for p in content]
        return "".join(str(p) for p in parts)
    return str(content or "")


def _usage(data: dict[str, Any]) -> Usage | None:
    """The `usage` object, also with DeepSeek's name for cached tokens; None when there is none.

    One that lacks one of the two counts is marked as estimated: `LLM` fills that in.
    """
    raw = data.get("usage")
    if not isinstance(raw, dict):
        return None
    if not _count(raw, "prompt_tokens") and not _count(raw, "completion_tokens"):
        return None
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    cached = _count(prompt, "cached_tokens") or _count(raw, "prompt_cache_hit_tokens")
    return Usage(
        prompt_tokens=_count(raw, "prompt_tokens"),
        cached_tokens=min(cached, _count(raw, "prompt_tokens")),
        completion_tokens=_count(raw, "completion_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        estimated=raw.get("prompt_tokens") is None or raw.get("completion_tokens") is None,
    )


def _count(raw: Any, name: str) -> int:
    value = raw.get(name) if isinstance(raw, dict) else None
    try:
        return max(0, int(float(value or 0)))  # some services send numbers as text
    except (TypeError, ValueError, OverflowError):
        return 0


class _Outcome(Generic[_T]):
    """What a thread leaves behind: a value or an error."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: _T | None = None
        self.error: BaseException | None = None

    def fill(self, call: Callable[[], _T]) -> None:
        try:
            self.value = call()
        except BaseException as e:  # noqa: BLE001 - handed on to the thread that waits
            self.error = e
        finally:
            self.done.set()


def call_bounded(call: Callable[[], _T], request: ChatRequest, target: str) -> _T:
    """Run `call` in a thread and wait for it as long as the request allows.

    The HTTP libraries bound each read, not the whole reply, and cannot be interrupted while they
    wait for one. So only that thread waits for them. When the call is abandoned, its connection is
    closed, and the thread ends.

    Raises:
        Transient: the time is up.
        Cancelled: the context says so.
    """
    outcome: _Outcome[_T] = _Outcome()
    cancel = request.context.cancel
    deadline = time.monotonic() + request.seconds
    threads.submit(lambda: outcome.fill(call))
    try:
        while not outcome.done.wait(min(_POLL, max(0.0, deadline - time.monotonic()))):
            if cancel is not None and cancel.is_set():
                request.context.check()
            if time.monotonic() >= deadline:
                raise request.timed_out(target)
    finally:
        if not outcome.done.is_set():
            request.abandon()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]
