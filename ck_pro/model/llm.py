"""`LLM`: call a model with retries, limits, usage counts and separated reasoning."""

from __future__ import annotations

import copy
import inspect
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError, ModelError, ModelRefused
from ck_pro.model.backends.abandonable import call_abandonable
from ck_pro.model.backends.backend import Backend, ChatRequest, FilteredReply, HandedOver
from ck_pro.model.backends.function import FunctionBackend, FunctionPrompt
from ck_pro.model.backends.reply_bounds import Bounds
from ck_pro.model.backends.targets import Access, check_target, open_target, without_secrets
from ck_pro.model.budget import Price, price_of
from ck_pro.model.retry import Wait, call_with_retries, wait_interruptibly
from ck_pro.model.shorten import estimate_tokens, fit
from ck_pro.model.types import (
    CallContext,
    Message,
    RawReply,
    Reply,
    Usage,
    require_messages,
    split_reasoning,
)


class LLM(KwargsInitializable):
    """A language model. Holds settings only, so threads and runs can share it.

    Raises:
        ConfigError: a setting or `call_target` is invalid.
    """

    string_setting: ClassVar[str | None] = "call_target"
    former_names = {"seed": "call_kwargs.seed", "max_token_num": "max_prompt_tokens?"}

    call_target: str = "manual"
    """The back end: "manual", "gpt:NAME", "http://HOST", ...; the schemes are in docs/models.md."""
    call_kwargs: dict[str, Any] = {}
    """Request parameters of every call, by the service's names: temperature, max_tokens, ..."""
    max_retry_times: int = 5
    """Attempts after the first, for transient failures."""
    max_retry_seconds: float = 300.0
    """Seconds after the start of the first attempt within which a retry may start."""
    request_timeout: float = 600.0
    """Seconds for one attempt: from the request to the end of the response."""
    max_prompt_tokens: int | None = None
    """Limit of the prompt, in estimated tokens. Longer prompts are shortened: see `shorten.py`."""
    max_reply_tokens: int | None = 16_384
    """Limit of one reply including reasoning, in tokens; None: no limit. A limit in `call_kwargs`
    (max_tokens, max_completion_tokens, ...) replaces it. The model is informed when a reply reached
    the limit, and incomplete code does not run."""
    response_schema: bool = True
    """Send the JSON schema of a reply that is only data, such as a separate plan, as
    `response_format`. A service that rejects it gets the next prompts without it."""
    price: dict[str, float] = {}
    """USD per million tokens: prompt, completion, cached. Default: `PRICES` in `budget.py`."""
    api_key_env: str = "CK_API_KEY"
    """Environment variable with the API key of an http(s) target."""
    headers: dict[str, str] = {}
    """Additional HTTP headers, for gateways. {agent}, {phase}, {step}, {sid}, {task} and {workdir}
    are replaced (percent-encoded). Not for secrets: settings are logged."""
    backend: Backend | None = None
    """A back end object; replaces `call_target`."""
    wait: Wait = wait_interruptibly
    """The function that waits between attempts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_target(self.call_target)
        price_of("", self.price)
        if self.backend is None:  # a custom back end may accept other values
            _check_json(self.call_kwargs)
        if self.call_kwargs.get("stream"):
            raise ConfigError("call_kwargs: 'stream' is not supported; remove it")
        for name in ("max_retry_times", "max_retry_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: must not be negative")
        if self.request_timeout <= 0:
            raise ConfigError("request_timeout: must be more than 0 seconds")
        for name in ("max_prompt_tokens", "max_reply_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name}: must be at least 1")

    @classmethod
    def of(cls, function: Callable[[FunctionPrompt], Any], **settings: Any) -> LLM:
        """Return a model that calls a Python function.

        Args:
            function: takes the chat messages (a list with `tools`, the schemas of the functions,
                as attribute). Returns the reply: text, or a message or response of chat
                completions. Its errors are not retried, except `Transient`.
            settings: settings of `LLM`, such as `price`.
        """
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise ConfigError(f"LLM.of: {function!r} is not a plain function")
        return cls(backend=FunctionBackend(function), **settings)

    def __call__(
        self,
        messages: Sequence[Message] | str,
        *,
        context: CallContext | None = None,
        **call_kwargs: Any,
    ) -> Reply:
        """Call the model.

        Args:
            messages: chat messages, with images as `image_url` parts; a str is one user message.
            context: the caller and its limits. This method charges its budget.
            call_kwargs: parameters of this call; they override `self.call_kwargs`.

        Raises:
            InputError: `messages` are not chat messages.
            ModelError: the call failed for good; for the subclasses see `ck_pro.exceptions`.
            LimitReached: a limit of the context's budget is used up.
            Cancelled: the context's `cancel` was set.
        """
        context = context or CallContext()
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        require_messages(messages)
        while True:
            try:
                return self._complete(messages, context, call_kwargs)
            except HandedOver as e:
                handed = e
            try:
                reply = self.with_target(handed.target)._complete(messages, context, call_kwargs)
            except ModelError as e:
                if not handed.ended(e):
                    raise
            else:
                handed.ended(None)
                reply.target = without_secrets(handed.target)
                return reply

    def with_target(self, target: str) -> LLM:
        """Return a model with the same settings and another `call_target`.

        Raises:
            ConfigError: the scheme is unknown, or its argument is malformed.
        """
        check_target(target)
        other = copy.copy(self)
        other.call_target, other.backend = target, None
        return other

    def _complete(
        self, messages: Sequence[Message], context: CallContext, call_kwargs: dict[str, Any]
    ) -> Reply:
        """Call the back end; see `__call__`.

        Raises:
            HandedOver: another target completes the call.
        """
        start = time.monotonic()
        params = {**self.call_kwargs, **call_kwargs}
        sent, shortened = fit(messages, self.max_prompt_tokens)
        backend = self._open(context)
        (raw, model), attempts = call_with_retries(
            lambda: self._attempt(backend, sent, params, context),
            context,
            max_retry_times=self.max_retry_times,
            max_retry_seconds=self.max_retry_seconds,
            wait=self.wait,
        )
        text, inline = split_reasoning(raw.text)
        usage = _counted(sent, raw)
        cost = self._charge(backend, raw.model or model, model, usage, context)
        return Reply(
            text,
            tool_calls=raw.tool_calls,
            items=raw.items,
            reasoning="\n".join(r for r in (raw.reasoning, inline) if r),
            usage=usage,
            finish_reason=raw.finish_reason,
            messages=sent,
            model=raw.model or model,
            params={**raw.bounds, **params},
            attempts=attempts,
            latency=time.monotonic() - start,
            cost=cost,
            shortened=shortened,
        )

    def describe(self) -> str:
        """Describe the back end in one line, without secrets."""
        return self._open(CallContext()).describe()

    def check(self) -> None:
        """Check before a run for a missing key, package or recording. Sends no request.

        Raises:
            ModelError: one line that says what to do.
        """
        self._open(CallContext()).check()

    def _open(self, context: CallContext) -> Backend:
        if self.backend is not None:
            return self.backend
        headers = {k: _filled(v, context) for k, v in self.headers.items()}
        return open_target(self.call_target, Access(self.api_key_env, headers))

    def _attempt(
        self, backend: Backend, sent: list[Message], params: dict[str, Any], context: CallContext
    ) -> tuple[RawReply, str]:
        """Make one attempt; return the reply and the name of the requested model."""
        seconds = context.seconds_left(self.request_timeout)
        schema = context.reply_schema if self.response_schema else None
        bounds = Bounds(context.stop, self.max_reply_tokens, schema)
        request = ChatRequest(sent, params, context, seconds, bounds)
        request.check_target = lambda target: self.with_target(target).check()
        if seconds < self.request_timeout:
            request.limit = "the rest of the run's time limit"

        def send() -> tuple[RawReply, str]:
            model = backend.model_name(params)
            self._require_price(backend, model, context)
            try:
                return backend.complete(request), model
            except FilteredReply as e:
                e.usage = e.usage or _estimated(sent)
                e.cost = self._charge(backend, model, model, e.usage, context)
                raise

        return call_abandonable(send, request, backend.describe()) if backend.remote else send()

    def _require_price(self, backend: Backend, model: str, context: CallContext) -> None:
        limited = context.budget is not None and context.budget.limits_money
        if limited and not backend.free and price_of(model, self.price) is None:
            raise ModelRefused(
                f"a money limit is set, but the price of '{model}' is unknown: set `price` to "
                "{'prompt': ..., 'completion': ...}, in USD per million tokens"
            )

    def _charge(
        self, backend: Backend, used: str, requested: str, usage: Usage, context: CallContext
    ) -> float | None:
        """Charge the context's budget; return the cost in USD, None if the price is unknown.

        Args:
            used: name of the model in the response, often a dated version.
            requested: name of the model in the request.
        """
        price: Price | None = Price(0, 0, 0) if backend.free else None
        price = price or price_of(used, self.price) or price_of(requested, self.price)
        cost = price.cost(usage) if price is not None else None
        if context.budget is not None:
            context.budget.charge(usage, cost)
        return cost


def _check_json(params: dict[str, Any]) -> None:
    """Raise ConfigError if a parameter cannot be sent."""
    for name, value in params.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ConfigError(f"call_kwargs: the value of '{name}' is not valid JSON") from None


def reply_of(value: Any, messages: Sequence[Message], llm: LLM) -> Reply:
    """Return the plain str that a subclass's `__call__` returned as a `Reply`.

    Raises:
        ModelRefused: the value is not a str.
    """
    kind = type(llm).__name__
    if not isinstance(value, str):
        raise ModelRefused(f"{kind}.__call__ returned {type(value).__name__}; it must return a str")
    usage = _estimated(messages, RawReply(text=value))
    return Reply(value, usage=usage, messages=list(messages), model=kind)


def _counted(sent: Sequence[Message], raw: RawReply) -> Usage:
    """Return the service's token counts; estimate those that it does not report."""
    counted = raw.usage
    if counted is None:
        return _estimated(sent, raw)
    if not counted.estimated:
        return counted
    estimate = _estimated(sent, raw)
    return replace(
        counted,
        prompt_tokens=counted.prompt_tokens or estimate.prompt_tokens,
        completion_tokens=counted.completion_tokens or estimate.completion_tokens,
    )


def _estimated(sent: Sequence[Message], raw: RawReply | None = None) -> Usage:
    if raw is None:
        return Usage(prompt_tokens=estimate_tokens(sent), estimated=True)
    reasoning = estimate_tokens(raw.reasoning) if raw.reasoning else 0
    calls = estimate_tokens(str(raw.tool_calls)) if raw.tool_calls else 0
    return Usage(
        prompt_tokens=estimate_tokens(sent),
        completion_tokens=estimate_tokens(raw.text) + reasoning + calls,
        reasoning_tokens=reasoning,
        estimated=True,
    )


def _filled(template: str, context: CallContext) -> str:
    """Return a header's value with its placeholders replaced, percent-encoded."""
    facts = {
        "agent": context.agent,
        "phase": context.phase,
        "step": str(context.step),
        "sid": context.sid,
        "task": context.task,
        "workdir": context.workdir,
    }
    for name, value in facts.items():
        template = template.replace("{" + name + "}", quote(value, safe="/: "))
    return template
