"""`LLM`: one call of a model, whatever answers it: retries, limits, usage, reasoning apart."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError, ModelRefused
from ck_pro.model.backends.backend import Backend, ChatRequest, FilteredReply, call_bounded
from ck_pro.model.backends.reply_bounds import Bounds
from ck_pro.model.backends.targets import check_target, open_target
from ck_pro.model.prices import Price, price_of
from ck_pro.model.reasoning import split_reasoning
from ck_pro.model.retry import Wait, call_with_retries, wait_interruptibly
from ck_pro.model.shorten import estimate_tokens, fit
from ck_pro.model.types import CallContext, Message, RawReply, Reply, Usage


class LLM(KwargsInitializable):
    """A language model: settings only, to be shared by any number of threads and runs.

    Raises:
        ConfigError: a setting, or the form of `call_target`, is wrong.
    """

    string_setting: ClassVar[str | None] = "call_target"
    former_names = {"seed": "call_kwargs.seed", "max_token_num": "max_prompt_tokens?"}

    call_target: str = "manual"
    """What answers: "manual", "gpt:NAME", "http(s)://...", "replay:FILE", "record:FILE:TARGET"."""
    call_kwargs: dict[str, Any] = {}
    """Parameters of every call, as the service names them: temperature, max_tokens, model, ..."""
    max_retry_times: int = 5
    """Tries after the first, for failures that may pass."""
    max_retry_seconds: float = 300.0
    """Bound on all tries of one call and the waits between them."""
    request_timeout: float = 600.0
    """Seconds for one whole reply."""
    max_prompt_tokens: int | None = None
    """Longer prompts are shortened, by our estimate of tokens; see `ck_pro.model.shorten`."""
    max_reply_tokens: int | None = 16_384
    """Limit of one reply, reasoning included, in tokens; None: no limit. A limit in `call_kwargs`
    (max_tokens, max_completion_tokens, ...) replaces it. Not sent to a service that refuses it. A
    reply that reaches the limit is reported to the model, and half of its code never runs."""
    price: dict[str, float] = {}
    """USD per million tokens: prompt, completion, cached. Overrides our table."""
    api_key_env: str = "CK_API_KEY"
    """The environment variable with the key for an http(s) target, when it needs one."""
    headers: dict[str, str] = {}
    """Further HTTP headers, for gateways; {agent}, {phase}, {step}, {sid}, {task}, {workdir} are
    filled in (percent-encoded). Not for secrets: settings are logged."""
    backend: Backend | None = None
    """An object that answers instead of what `call_target` names."""
    wait: Wait = wait_interruptibly
    """How to wait between tries."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_target(self.call_target)
        price_of("", self.price)
        if self.backend is None:  # another one may take what it likes
            _check_json(self.call_kwargs)
        if self.call_kwargs.get("stream"):
            raise ConfigError("call_kwargs: 'stream' cannot be set; replies are read whole")
        for name in ("max_retry_times", "max_retry_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: must not be negative")
        if self.request_timeout <= 0:
            raise ConfigError("request_timeout: must be more than 0 seconds")
        for name in ("max_prompt_tokens", "max_reply_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name}: must be at least 1")

    def __call__(
        self,
        messages: Sequence[Message] | str,
        *,
        context: CallContext | None = None,
        **call_kwargs: Any,
    ) -> Reply:
        """Ask the model.

        Args:
            messages: chat messages, images as `image_url` parts; a text is one user message.
            context: who asks, and the limits; its budget is charged here, by nobody else.
            call_kwargs: parameters of this call, over `self.call_kwargs`.

        Raises:
            ModelError: the call failed for good; the class says how (see `ck_pro.exceptions`).
            LimitReached: a limit of the context's budget is used up.
            Cancelled: the context's `cancel` was set.
        """
        context = context or CallContext()
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
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
        """One line for the screen: what answers. Never holds a secret."""
        return self._open(CallContext()).describe()

    def check(self) -> None:
        """Find out, before a run, what the first call would complain about: a missing key, an
        unreadable recording, a missing package. Sends nothing.

        Raises:
            ModelError: one line that says what to do.
        """
        self._open(CallContext()).check()

    def _open(self, context: CallContext) -> Backend:
        if self.backend is not None:
            return self.backend
        headers = {k: _filled(v, context) for k, v in self.headers.items()}
        return open_target(self.call_target, api_key_env=self.api_key_env, headers=headers)

    def _attempt(
        self, backend: Backend, sent: list[Message], params: dict[str, Any], context: CallContext
    ) -> tuple[RawReply, str]:
        """One try: the reply, and the name of the model that was asked."""
        seconds = context.seconds_left(self.request_timeout)
        bounds = Bounds(context.stop, self.max_reply_tokens)
        request = ChatRequest(sent, params, context, seconds, bounds)
        if seconds < self.request_timeout:
            request.limit = "what the time limit of the run left"

        def ask() -> tuple[RawReply, str]:
            model = backend.model_name(params)
            self._require_price(backend, model, context)
            try:
                return backend.complete(request), model
            except FilteredReply as e:
                e.usage = e.usage or _estimated(sent)
                e.cost = self._charge(backend, model, model, e.usage, context)
                raise

        return call_bounded(ask, request, backend.describe()) if backend.remote else ask()

    def _require_price(self, backend: Backend, model: str, context: CallContext) -> None:
        limited = context.budget is not None and context.budget.limits_money
        if limited and not backend.free and price_of(model, self.price) is None:
            raise ModelRefused(
                f"there is a money limit, but the price of '{model}' is not known: set `price` of "
                "this model, {'prompt': ..., 'completion': ...} in USD per million tokens"
            )

    def _charge(
        self, backend: Backend, answered: str, asked: str, usage: Usage, context: CallContext
    ) -> float | None:
        price: Price | None = Price(0, 0, 0) if backend.free else None
        price = price or price_of(answered, self.price) or price_of(asked, self.price)
        cost = price.cost(usage) if price is not None else None
        if context.budget is not None:
            context.budget.charge(usage, cost)
        return cost


def _check_json(params: dict[str, Any]) -> None:
    """Raise ConfigError where a parameter could not be sent."""
    for name, value in params.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ConfigError(f"call_kwargs: '{name}' is no value that JSON has") from None


def ensure_reply(said: Any, messages: Sequence[Message], llm: LLM) -> Reply:
    """What a model returned, with the facts of the call; a subclass's own `__call__` may have
    returned a plain text.

    Raises:
        ModelRefused: it is no text.
    """
    if isinstance(said, Reply):
        return said
    kind = type(llm).__name__
    if not isinstance(said, str):
        raise ModelRefused(f"{kind}.__call__ returned {type(said).__name__}: have it return a text")
    usage = _estimated(messages, RawReply(text=said))
    return Reply(said, usage=usage, messages=list(messages), model=kind)


def _counted(sent: Sequence[Message], raw: RawReply) -> Usage:
    """What the service counted, and an estimate of what it did not: some leave one of them out."""
    told = raw.usage
    if told is None:
        return _estimated(sent, raw)
    if not told.estimated:
        return told
    guessed = _estimated(sent, raw)
    return replace(
        told,
        prompt_tokens=told.prompt_tokens or guessed.prompt_tokens,
        completion_tokens=told.completion_tokens or guessed.completion_tokens,
    )


def _estimated(sent: Sequence[Message], raw: RawReply | None = None) -> Usage:
    if raw is None:
        return Usage(prompt_tokens=estimate_tokens(sent), estimated=True)
    reasoning = estimate_tokens(raw.reasoning)
    calls = estimate_tokens(str(raw.tool_calls)) if raw.tool_calls else 0
    return Usage(
        prompt_tokens=estimate_tokens(sent),
        completion_tokens=estimate_tokens(raw.text) + reasoning + calls,
        reasoning_tokens=reasoning,
        estimated=True,
    )


def _filled(template: str, context: CallContext) -> str:
    """A header's value with the facts of the call in it, safe for the wire."""
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
