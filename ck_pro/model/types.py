"""Input and output of a model call: `CallContext`, `Reply`, `RawReply`, `Usage`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from ck_pro.events.event_parts import UsageCounts
from ck_pro.exceptions import Cancelled, InputError

if TYPE_CHECKING:
    from ck_pro.model.budget import Budget

Message = dict[str, Any]
"""A chat message: `role`, `content` (a text or a list of parts), optionally `tool_calls`."""
_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking)>", re.IGNORECASE)
_CLOSE_ALONE = re.compile(r"(?<![`'\"])</(think|thinking)>", re.IGNORECASE)


@dataclass(frozen=True)
class Usage:
    """Tokens of one or several calls.

    Args:
        prompt_tokens: all tokens of the prompt, including cached ones.
        cached_tokens: prompt tokens from the service's prefix cache.
        completion_tokens: all tokens of the reply, including reasoning.
        reasoning_tokens: reasoning tokens of the reply, if the service reports them.
        estimated: for at least one call the service reported no numbers, so they are estimates.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Sum of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated or other.estimated,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)

    def counts(self) -> UsageCounts:
        """Return the fields and the sum of tokens, as the journal has them."""
        return cast(UsageCounts, {**asdict(self), "total_tokens": self.total_tokens})


class Reply(str):
    """A model's reply: the text, with the other results of the call as attributes.

    Attributes:
        tool_calls: function calls, in the form of chat completions.
        items: output items of the Responses API.
        reasoning: the reasoning text, separate from the reply.
        usage: tokens of the call.
        finish_reason: the service's value: "stop", "length", "tool_calls", ...
        messages: the prompt as sent, after any shortening.
        model: name of the model, as the service reports it.
        params: the parameters sent with the prompt.
        attempts: number of attempts, including the successful one.
        latency: seconds from the call to the reply, including waits between attempts.
        cost: USD; None if the price is unknown.
        shortened: whether `messages` was shortened to fit `max_prompt_tokens`.
        target: the `call_target` that completed the call instead of the configured one; else "".
    """

    tool_calls: list[dict[str, Any]]
    items: list[dict[str, Any]]
    reasoning: str
    usage: Usage
    finish_reason: str
    messages: list[Message]
    model: str
    params: dict[str, Any]
    attempts: int
    latency: float
    cost: float | None
    shortened: bool
    target: str

    def __new__(
        cls,
        text: str = "",
        *,
        tool_calls: list[dict[str, Any]] | None = None,
        items: list[dict[str, Any]] | None = None,
        reasoning: str = "",
        usage: Usage | None = None,
        finish_reason: str = "stop",
        messages: list[Message] | None = None,
        model: str = "",
        params: dict[str, Any] | None = None,
        attempts: int = 1,
        latency: float = 0.0,
        cost: float | None = None,
        shortened: bool = False,
        target: str = "",
    ) -> Reply:
        self = super().__new__(cls, text)
        self.tool_calls = list(tool_calls or [])
        self.items = list(items or [])
        self.reasoning = reasoning
        self.usage = usage if usage is not None else Usage()
        self.finish_reason = finish_reason
        self.messages = list(messages or [])
        self.model = model
        self.params = dict(params or {})
        self.attempts = attempts
        self.latency = latency
        self.cost = cost
        self.shortened = shortened
        self.target = target
        return self

    def with_text(self, text: str) -> Reply:
        """Return a copy with another text."""
        return type(self)(text, **vars(self))


class ReplyGuide(Protocol):
    """Describes the reply that a caller expects, for a person who writes it; the caller gives it.

    The person writes parts ("thought", "code", "plan", or the whole reply as "text"), and need not
    know the form of a reply.
    """

    def describe(self) -> dict[str, Any]:
        """Return what the person needs, as JSON data.

        `form` is "code", "calls", "data" or "text"; `language` its name; `plan` whether the reply
        may carry a plan; `example` the data of a "data" form to start from; `functions` a list of
        the functions offered: `name`, `help`, `parameters` (JSON schema), `terminal`, and
        `element_roles`, the roles of page elements that it acts on.
        """
        ...

    def compose(self, parts: Mapping[str, str]) -> RawReply:
        """Return the reply that the parts make.

        Raises:
            ParseError: a part is malformed.
        """
        ...

    def preview(self, reply: Reply) -> list[dict[str, str]]:
        """Return what the caller would do with a reply, by its own parser; nothing runs.

        Each entry has a `kind` and a `text`. The kind "error" means that nothing would run, and
        that the model would read the text.
        """
        ...

    def picture(self) -> Mapping[str, Any] | None:
        """Return a picture of what the caller's environment shows; None if there is none.

        `image` is a data URL; `width` and `height` are in CSS pixels; `elements` has the box
        `[x, y, width, height]` of each element by its id.
        """
        ...


@dataclass
class CallContext:
    """The caller of a model, and the limits of the call.

    Args:
        agent_path: names from the main agent down: `("ck_agent", "web_agent")`.
        phase: "plan", "action", "end", or "tool:<name>" for a tool's call.
        step: index of the agent's step, from 0.
        task: the agent's task.
        instructions: the constant part of the prompt; a replay compares it.
        sid: id of the session.
        budget: charged with the call; its remaining time limits attempts and waits.
        cancel: when set, the call ends with `Cancelled`.
        workdir: the run's working directory; recordings write it as `{{workdir}}`.
        stop: stop texts: the service ends the reply before them.
        reply_schema: JSON schema of the reply; None for a reply of another form.
        on_wait: called with one line before each wait for a retry.
        guide: describes the expected reply, for a person who writes it.
        asking: returns a context manager for the wait for that person; see `asking_for`.
    """

    agent_path: tuple[str, ...] = ()
    phase: str = ""
    step: int = 0
    task: str = ""
    instructions: str = ""
    sid: str = ""
    budget: Budget | None = None
    cancel: threading.Event | None = None
    workdir: str = ""
    stop: tuple[str, ...] = ()
    reply_schema: Mapping[str, Any] | None = None
    on_wait: Callable[[str], None] | None = None
    guide: ReplyGuide | None = None
    asking: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def agent(self) -> str:
        """The agent path as one text: "ck_agent/web_agent"."""
        return "/".join(self.agent_path)

    def where(self) -> str:
        """Return the caller for messages: "ck_agent/web_agent, action, step 3"."""
        named = [p for p in (self.agent, self.phase) if p]
        return ", ".join([*named, f"step {self.step}"])

    def check(self) -> None:
        """Raise `Cancelled` or `LimitReached` if the call must end."""
        if self.budget is not None:  # first: a limit may be the cause of a cancel
            self.budget.check(steps=False)
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled(f"the run was cancelled during a model call ({self.where()})")

    def seconds_left(self, at_most: float) -> float:
        """Return the budget's remaining seconds, but no more than `at_most`."""
        left = self.budget.remaining_seconds() if self.budget is not None else None
        return at_most if left is None else max(0.0, min(at_most, left))


@dataclass
class RawReply:
    """A back end's result, before `LLM` separates the reasoning and counts usage.

    `bounds` are the limits that the back end sent in addition to the user's parameters.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage | None = None
    finish_reason: str = "stop"
    model: str = ""
    bounds: dict[str, Any] = field(default_factory=dict)


def require_messages(messages: Any) -> None:
    """Return if a value is a list of chat messages.

    Raises:
        InputError: it is not.
    """
    if not isinstance(messages, Sequence):
        raise InputError(f"messages: {messages!r:.80} is not a text or a list of chat messages")
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(f"messages: {message!r:.80} is not a dict with a role and content")


def split_reasoning(text: str) -> tuple[str, str]:
    """Remove `<think>...</think>` from the beginning of a reply.

    Open models write reasoning in this form if the server does not extract it. Three forms occur:

    - closed blocks at the beginning;
    - a block without an end: the reply was truncated, and all of it is reasoning;
    - only an end tag: chat templates of DeepSeek-R1 and Qwen put the start tag into the prompt.

    Tags elsewhere, in quotes or in a code fence, are part of the reply.

    Returns:
        The reply and the reasoning; stripped if there was reasoning.
    """
    reasoning: list[str] = []
    rest = text
    while opened := _OPEN.match(rest):
        closed = _CLOSE.search(rest, opened.end())
        if closed is None:
            reasoning.append(rest[opened.end() :])
            rest = ""
        else:
            reasoning.append(rest[opened.end() : closed.start()])
            rest = rest[closed.end() :]
    if not reasoning:
        closed = _CLOSE_ALONE.search(rest)
        if closed is not None and rest[: closed.start()].count("```") % 2 == 0:
            reasoning.append(rest[: closed.start()])
            rest = rest[closed.end() :]
    if not reasoning:
        return text, ""
    return rest.strip(), "\n".join(r.strip() for r in reasoning).strip()
