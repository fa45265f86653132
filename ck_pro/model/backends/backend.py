"""`Backend`, the interface that an `LLM` calls, and its `ChatRequest`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ck_pro.exceptions import ContentFiltered, ModelError
from ck_pro.model.backends.reply_bounds import Bounds
from ck_pro.model.retry import TimedOut
from ck_pro.model.types import CallContext, Message, RawReply, Usage


@dataclass
class ChatRequest:
    """One attempt of a model call.

    Args:
        messages: the prompt.
        params: other request parameters (`temperature`, `max_tokens`, ...).
        context: the caller.
        seconds: time limit for the whole response.
        bounds: limits on the reply that are sent to the service.
        limit: the setting that `seconds` comes from, for messages.
        abandoned: set when the caller no longer waits; the back end should then close its
            connection.
        check_target: raises a `CKError` if the caller's model cannot use another `call_target`.
    """

    messages: list[Message]
    params: dict[str, Any]
    context: CallContext
    seconds: float = 600.0
    bounds: Bounds = field(default_factory=Bounds)
    limit: str = "`request_timeout`"
    abandoned: threading.Event = field(default_factory=threading.Event)
    check_target: Callable[[str], None] = lambda target: None
    _closers: list[Callable[[], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_abandon(self, close: Callable[[], None]) -> None:
        """Call `close` when the request is abandoned, or now if it already is."""
        with self._lock:
            if not self.abandoned.is_set():
                self._closers.append(close)
                return
        close()

    def abandon(self) -> None:
        """Mark the request as abandoned and close its connections."""
        with self._lock:
            self.abandoned.set()
            for close in self._closers:
                close()
            self._closers.clear()

    def release(self) -> None:
        """Forget the connections: the request no longer uses them."""
        with self._lock:
            self._closers.clear()

    def timed_out(self, target: str) -> TimedOut:
        """Return the error for a response that exceeded `seconds`."""
        return TimedOut(f"{target}: no complete reply within {self.seconds:.3g} s ({self.limit})")


class Backend(ABC):
    """A service that completes the prompts of an `LLM`.

    Back ends hold no state of a run; several threads share one.
    """

    free: bool = False
    """Calls cost nothing, so no price is needed."""
    remote: bool = False
    """Calls wait for a service. They run in a separate thread, so that they can be abandoned."""

    @abstractmethod
    def complete(self, request: ChatRequest) -> RawReply:
        """Complete one prompt.

        Raises:
            Transient: a retry may succeed.
            ModelError: the call failed for good.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return one line for the screen, without secrets."""

    @abstractmethod
    def model_name(self, params: Mapping[str, Any]) -> str:
        """Return the name of the model, used to look up its price.

        May call the service.
        """

    def check(self) -> None:  # noqa: B027 - most back ends have nothing to check
        """Raise the `ModelError` that the first call would raise, as far as it can be foreseen."""


class HandedOver(Exception):
    """A back end hands a call over to another target. `LLM` catches it and calls that one.

    Args:
        target: the `call_target`.
        ended: called when that call ends, with its error or None. It returns whether the back end
            takes the call again.
    """

    def __init__(self, target: str, ended: Callable[[ModelError | None], bool]):
        super().__init__(target)
        self.target, self.ended = target, ended


class FilteredReply(ContentFiltered):
    """The service's content filter stopped a reply.

    Attributes:
        usage: tokens of the stopped call. `LLM` estimates missing counts.
        cost: USD, set by `LLM`; None if the price is unknown.
    """

    def __init__(self, message: str, usage: Usage | None):
        super().__init__(message)
        self.usage = usage
        self.cost: float | None = None
