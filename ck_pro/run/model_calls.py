"""Model calls of a run: budgeted and logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ck_pro.events import EventKind
from ck_pro.events.journal_events import ModelCallData, ModelFailedData, UsageCounts
from ck_pro.events.progress_events import ProgressKind
from ck_pro.exceptions import ModelError
from ck_pro.language import Prompt
from ck_pro.model import LLM, CallContext, Reply, Usage
from ck_pro.model.backends.backend import FilteredReply
from ck_pro.model.llm import ensure_reply
from ck_pro.run.prefix_cache import Prefixes
from ck_pro.run.results import jsonable
from ck_pro.session import PHASES

if TYPE_CHECKING:
    from ck_pro.run.run import Run


class ModelCaller:
    """The callable `Run.call_model`.

    Args:
        run: the run.
        prefixes: the recent prompts of the whole tree of agents.
        edited_reply: replaces the reply of the next action call, in a forked run; "" for none.
    """

    def __init__(self, run: Run, prefixes: Prefixes, edited_reply: str = ""):
        self._run, self.prefixes, self._edited_reply = run, prefixes, edited_reply

    def __call__(
        self, llm: LLM, messages: Sequence[dict[str, Any]], phase: str, **call_kwargs: Any
    ) -> Reply:
        """Call a model within the limits of the run, and log the call.

        Args:
            llm: the model.
            messages: chat messages; a `Prompt` also has the stable instructions.
            phase: "plan", "action", "end", or "tool:NAME" for the call of a tool.
            call_kwargs: further parameters of the model.

        Raises:
            ModelError, LimitReached, Cancelled: see `LLM`.
        """
        run = self._run
        run.check()
        prompt = messages if isinstance(messages, Prompt) else Prompt(messages)
        run.emit(ProgressKind.MODEL_STARTED, phase=phase)
        if phase == "action" and self._edited_reply:
            reply = Reply(self._edited_reply, messages=list(prompt), model="edited", attempts=0)
            self._edited_reply = ""
        else:
            try:
                said = llm(list(prompt), context=self._context(prompt, phase), **call_kwargs)
                reply = ensure_reply(said, prompt, llm)
            except ModelError as e:
                run.record(EventKind.MODEL_FAILED, _failed_call(e), phase=phase)
                raise
        self._log(reply, phase)
        return reply

    def _context(self, prompt: Prompt, phase: str) -> CallContext:
        run = self._run
        return CallContext(
            agent_path=run.path,
            phase=phase,
            step=max(0, len(run.session.steps) - 1),
            task=run.session.task,
            instructions=prompt.instructions,
            sid=run.session.id,
            budget=run.budget,
            cancel=run.cancel,
            workdir=str(run.workdir),
            stop=tuple(run.agent.language.stop) if phase in PHASES else (),
            on_wait=lambda text: run.emit(ProgressKind.MODEL_WAITS, phase=phase, text=text),
        )

    def _log(self, reply: Reply, phase: str) -> None:
        data = ModelCallData(
            model=reply.model,
            params=jsonable(reply.params),
            usage=_usage_counts(reply.usage),
            attempts=reply.attempts,
            finish_reason=reply.finish_reason,
            cost=reply.cost,
            shortened=reply.shortened,
            prefix_share=round(self.prefixes.share(self._run.path, reply.messages), 4),
        )
        if self._run.agent.store_io:
            data["messages"] = reply.messages
            data["output"] = str(reply)
            data["reasoning"] = reply.reasoning
            if reply.tool_calls:
                data["tool_calls"] = reply.tool_calls
            if reply.items:
                data["items"] = reply.items
        self._run.record(EventKind.MODEL_CALL, data, phase=phase, duration=reply.latency)
        self._run.emit(ProgressKind.MODEL_CALL, phase=phase)


def _failed_call(error: ModelError) -> ModelFailedData:
    """Describe a failed call, with its usage if it was billed, for the budget of a resumed run."""
    data = ModelFailedData(error=f"{type(error).__name__}: {error}")
    if isinstance(error, FilteredReply) and error.usage is not None:
        data["usage"], data["cost"] = _usage_counts(error.usage), error.cost
    return data


def _usage_counts(usage: Usage) -> UsageCounts:
    return cast(UsageCounts, {**usage.to_dict(), "total_tokens": usage.total_tokens})
