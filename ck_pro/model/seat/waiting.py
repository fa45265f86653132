"""The queue of model calls that wait for a person."""

from __future__ import annotations

import functools
import itertools
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ck_pro.exceptions import InputError, ModelError
from ck_pro.model.backends.backend import ChatRequest, HandedOver
from ck_pro.model.seat.hand_overs import HandOvers, run_of
from ck_pro.model.shorten import estimate_tokens
from ck_pro.model.types import Message, RawReply

_POLL_SECONDS = 0.1
_STORED_PROMPTS = 100
_TASK_CHARS = 500


@dataclass(eq=False)
class WaitingCall:
    """One model call that waits for its reply.

    Attributes:
        id: name in addresses.
        request: the call.
        same_messages: number of messages that the previous prompt of this agent begins with, too.
        same_characters: number of equal characters at the start of the message after them.
        since: start of the wait, in Unix seconds.
        draft: what the person has written so far, by part.
        notice: why a model to which the person handed the call did not complete it; else "".
    """

    id: str
    request: ChatRequest
    same_messages: int = 0
    same_characters: int = 0
    since: float = field(default_factory=time.time)
    draft: dict[str, str] = field(default_factory=dict)
    notice: str = ""
    _done: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Lock = field(default_factory=threading.Lock)
    _outcome: RawReply | ModelError | HandedOver | None = None

    def answer(self, outcome: RawReply | ModelError | HandedOver) -> None:
        """End the wait with a reply, an error, or another model.

        Raises:
            InputError: it has ended already.
        """
        with self._ended:
            if self._done.is_set():
                raise InputError("this call has its reply already")
            self._outcome = outcome
            self._done.set()

    def wait(self) -> RawReply:
        """Return the reply; only the limits and the cancel of the run end the wait earlier.

        Raises:
            ModelError: the person ended the call.
            HandedOver: the person handed it over to a model.
            Cancelled, LimitReached: see `CallContext.check`.
        """
        while not self._done.wait(_POLL_SECONDS):
            self.request.context.check()
        assert self._outcome is not None
        if not isinstance(self._outcome, RawReply):
            raise self._outcome
        return self._outcome

    @functools.cached_property
    def tokens(self) -> int:
        """The estimated tokens of the prompt."""
        return estimate_tokens(self.request.messages)

    def facts(self) -> dict[str, Any]:
        """Return the entry of the queue, as JSON data; the agents of one task have one `run`."""
        context = self.request.context
        return {
            "id": self.id,
            "agent": context.agent,
            "phase": context.phase,
            "step": context.step,
            "sid": context.sid,
            "run": run_of(context),
            "task": context.task[:_TASK_CHARS],
            "since": self.since,
            "messages": len(self.request.messages),
            "tokens": self.tokens,
            "notice": self.notice,
            "written": any(text.strip() for text in self.draft.values()),
        }


class WaitingCalls:
    """The waiting calls of this process, oldest first. Thread-safe.

    Attributes:
        version: changes with every change of the queue.
        answered: number of calls that got a reply.
    """

    def __init__(self) -> None:
        self.version = 0
        self.answered = 0
        self._changed = threading.Condition()
        self.handed = HandOvers(self._notify_change)
        self._calls: dict[str, WaitingCall] = {}
        self._previous: OrderedDict[tuple[str, str], Sequence[Message]] = OrderedDict()

    def ask(self, request: ChatRequest) -> RawReply:
        """Add a call and return its reply; see `WaitingCall.wait`."""
        context = request.context
        self.handed.check(context)
        call = WaitingCall(secrets.token_hex(6), request)
        call.notice = self.handed.failure_of(context)
        self._compare(call)
        with self._changed:
            self._calls[call.id] = call
            self._notify()
        try:
            self.handed.check(context)  # it may have been handed over meanwhile
            reply = call.wait()
            self.answered += 1
            return reply
        finally:
            with self._changed:
                del self._calls[call.id]
                self._notify()

    def hand_over(self, call: WaitingCall, scope: str, target: str) -> None:
        """Hand a call over to a model, with all later ones of its agent or its run.

        Args:
            call: the call.
            scope: "agent" or "run".
            target: the `call_target`, checked by the caller.
        """
        handed = self.handed.add(call.request.context, scope, target)
        for one in self.all():
            if handed.covers(one.request.context):
                with suppress(InputError):  # it got a reply meanwhile
                    one.answer(handed.signal(one.request.context))

    def find(self, name: str) -> WaitingCall:
        """Return a call by its id.

        Raises:
            InputError: it does not wait.
        """
        with self._changed:
            if name not in self._calls:
                raise InputError("this call waits no longer: it has its reply, or its run ended")
            return self._calls[name]

    def all(self) -> list[WaitingCall]:
        """Return the waiting calls, oldest first."""
        with self._changed:
            return [*self._calls.values()]

    def wait_for_change(self, version: int, seconds: float) -> None:
        """Return when the queue has another version than `version`, at most after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)

    def _notify_change(self) -> None:
        with self._changed:
            self._notify()

    def _notify(self) -> None:
        self.version += 1
        self._changed.notify_all()

    def _compare(self, call: WaitingCall) -> None:
        """Set which part of the prompt the previous one of this agent and phase had."""
        context, messages = call.request.context, call.request.messages
        key = (context.sid, context.phase)
        with self._changed:
            previous = self._previous.pop(key, ())
            self._previous[key] = messages
            if len(self._previous) > _STORED_PROMPTS:
                self._previous.popitem(last=False)
        same = common_length(previous, messages)
        call.same_messages = same
        if same < min(len(previous), len(messages)):
            old, new = previous[same].get("content"), messages[same].get("content")
            if isinstance(old, str) and isinstance(new, str):
                call.same_characters = common_length(old, new)


def common_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the length of the common prefix of two sequences."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    return sum(1 for _ in pairs)
