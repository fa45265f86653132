"""What goes into a model call and what comes out: `CallContext`, `Reply`, `Usage`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ck_pro.exceptions import Cancelled

if TYPE_CHECKING:
    from ck_pro.model.budget import Budget

Message = dict[str, Any]
"""A chat message: `role`, `content` (text or a list of parts), maybe `tool_calls`."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call or of many.

    Args:
        prompt_tokens: all tokens of the prompt, the cached ones among them.
        cached_tokens: those of the prompt that the service had in its prefix cache.
        completion_tokens: all tokens of the reply, those of the reasoning among them.
        reasoning_tokens: those of the reply that were reasoning, where the service says so.
        estimated: the service gave no numbers (for one call at least); they are our estimate.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
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
        """The fields as JSON-able data."""
        return asdict(self)


class Reply(str):
    """A model's reply: its text, and beside it everything else that came of the call.

    Attributes:
        tool_calls: function calls, in the form of chat completions.
        items: output items of computer-use models.
        reasoning: the reasoning text, kept apart from the reply.
        usage: tokens, all attempts that the service answered among them.
        finish_reason: "stop", "length", "tool_calls", ... as the service says it.
        messages: the prompt as it was really sent, after any shortening.
        model: the name of the model that answered.
        params: the parameters that were sent with the prompt.
        attempts: how often the service was asked, the successful one among them.
        latency: seconds from call to reply, waits between attempts among them.
        cost: USD; None when the price is not known.
        shortened: the prompt was longer than allowed, and `messages` is the shortened one.
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
        return self


@dataclass
class CallContext:
    """Who calls a model, for what, and within which limits.

    Args:
        agent_path: names from the main agent down: `("ck_agent", "web_agent")`.
        phase: "plan", "action", "end", or "tool:<name>" for a call made by a tool.
        step: index of the agent's step, from 0.
        task: the task that this agent was given.
        instructions: the stable instruction text of the prompt; a replay compares it.
        sid: id of the session.
        budget: charged with every call; its remaining time bounds calls and waits.
        cancel: when set, the call ends with `Cancelled`.
        workdir: the run's working directory; recordings write it as `{{workdir}}`.
        stop: texts at which the service is asked to end the reply.
        on_wait: told one line before each wait for another try, for a display.
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
    on_wait: Callable[[str], None] | None = None

    @property
    def agent(self) -> str:
        """The path as one text: "ck_agent/web_agent"."""
        return "/".join(self.agent_path)

    def where(self) -> str:
        """For messages to a person: "ck_agent/web_agent, action, step 3"."""
        named = [p for p in (self.agent, self.phase) if p]
        return ", ".join([*named, f"step {self.step}"])

    def check(self) -> None:
        """Raise `Cancelled` or `LimitReached` where the call must not go on."""
        if self.budget is not None:  # first: a limit may be why the run was cancelled
            self.budget.check(steps=False)
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled(f"the run was cancelled during a model call ({self.where()})")

    def seconds_left(self, at_most: float) -> float:
        """The smaller of `at_most` and what the budget leaves, in seconds."""
        left = self.budget.remaining_seconds() if self.budget is not None else None
        return at_most if left is None else max(0.0, min(at_most, left))


@dataclass
class RawReply:
    """What a back end got, before reasoning is split off and usage is counted.

    `bounds` are the parameters that it was bounded by, beside those that the user set.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage | None = None
    finish_reason: str = "stop"
    model: str = ""
    bounds: dict[str, Any] = field(default_factory=dict)
