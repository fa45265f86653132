"""Model calls of a run: budgeted, logged, and compared with earlier prompts."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any

from ck_pro.events import EventKind
from ck_pro.events.journal_events import ModelCallData, ModelFailedData
from ck_pro.events.progress_events import ProgressKind
from ck_pro.exceptions import ModelError
from ck_pro.language import Prompt, text_of
from ck_pro.model import LLM, CallContext, Reply
from ck_pro.model.backends.backend import FilteredReply
from ck_pro.model.llm import reply_of
from ck_pro.model.types import ReplyGuide
from ck_pro.run.results import jsonable
from ck_pro.session import PHASES

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_STORED_PROMPTS = 8
_ROLE, _CONTENT = itemgetter("role"), itemgetter("content")


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
        self,
        llm: LLM,
        messages: Sequence[dict[str, Any]],
        phase: str,
        guide: ReplyGuide | None = None,
        **call_kwargs: Any,
    ) -> Reply:
        """Call a model within the limits of the run, and log the call.

        Args:
            llm: the model.
            messages: chat messages; a `Prompt` also has the stable instructions.
            phase: "plan", "action", "end", or "tool:NAME" for the call of a tool.
            guide: describes the expected reply, for a person who is the model.
            call_kwargs: further parameters of the model.

        Raises:
            ModelError, LimitReached, Cancelled: see `LLM`.
        """
        run = self._run
        prompt = messages if isinstance(messages, Prompt) else Prompt(messages)
        run.emit(ProgressKind.MODEL_STARTED, phase=phase)
        if phase == "action" and self._edited_reply:
            reply = Reply(self._edited_reply, messages=list(prompt), model="edited", attempts=0)
            self._edited_reply = ""
        else:
            try:
                said = llm(list(prompt), context=self._context(prompt, phase, guide), **call_kwargs)
                reply = said if isinstance(said, Reply) else reply_of(said, prompt, llm)
            except ModelError as e:
                run.record(EventKind.MODEL_FAILED, _failed_call(e), phase=phase)
                raise
        self._log(reply, phase)
        return reply

    def _context(self, prompt: Prompt, phase: str, guide: ReplyGuide | None) -> CallContext:
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
            reply_schema=run.agent.language.reply_schema(phase) if phase in PHASES else None,
            on_wait=lambda text: run.emit(ProgressKind.MODEL_WAITS, phase=phase, text=text),
            guide=guide,
            asking=run.asking,
        )

    def _log(self, reply: Reply, phase: str) -> None:
        data = ModelCallData(
            model=reply.model,
            params=jsonable(reply.params),
            usage=reply.usage.counts(),
            attempts=reply.attempts,
            finish_reason=reply.finish_reason,
            cost=reply.cost,
            shortened=reply.shortened,
            prefix_share=round(self.prefixes.share(self._run.path, reply.messages), 4),
        )
        if reply.target:
            data["target"] = reply.target
        if self._run.agent.store_io:
            data["messages"] = reply.messages
            data["output"] = str(reply)
            data["reasoning"] = reply.reasoning
            if reply.tool_calls:
                data["tool_calls"] = reply.tool_calls
            if reply.items:
                data["items"] = reply.items
        self._run.record(EventKind.MODEL_CALL, data, phase=phase, duration=reply.latency)


def _failed_call(error: ModelError) -> ModelFailedData:
    """Describe a failed call, with its usage if it was billed, for the budget of a resumed run."""
    data = ModelFailedData(error=f"{type(error).__name__}: {error}")
    if isinstance(error, FilteredReply) and error.usage is not None:
        data["usage"], data["cost"] = error.usage.counts(), error.cost
    return data


# --- prefix cache ------------------------------------------------------------------------


class Prefixes:
    """The recent prompts of all agents in one tree of runs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, ...], list[_Texts]] = {}

    def share(self, path: tuple[str, ...], messages: Sequence[Mapping[str, Any]]) -> float:
        """Return the share of a prompt that is a prefix of an earlier prompt of the agent; 0 to 1.

        The earlier prompt may come from another run of this agent in the tree.

        Args:
            path: the names of the agents, from the main agent down.
            messages: the prompt; it is stored for later calls.
        """
        prompt = _Texts(messages)
        with self._lock:
            earlier = self._earlier.get(path, [])
            best = prompt.longest_common_prefix(earlier)
            self._earlier[path] = [*earlier[1 - _STORED_PROMPTS :], prompt]
        return best / max(1, prompt.length(len(prompt.texts)))


class _Texts:
    """The text of a prompt: "role:text" for each message, with one character in between.

    The parts are never joined, so comparing two prompts with equal messages is cheap.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]):
        try:
            self.roles = [*map(str, map(_ROLE, messages))]
            self.texts = [*map(_CONTENT, messages)]
        except KeyError:  # a message without text
            self.roles = [str(m.get("role")) for m in messages]
            self.texts = [m.get("content") for m in messages]
        if {*map(type, self.texts)} != {str}:  # most prompts contain only text
            self.texts = [c if c.__class__ is str else text_of(c) for c in self.texts]
        self._sums = [*accumulate(map(add, map(len, self.roles), map(len, self.texts)))]

    def length(self, count: int) -> int:
        """Return the number of characters of the first `count` messages."""
        return self._sums[count - 1] + 2 * count - 1 if count else 0

    def longest_common_prefix(self, others: Sequence[_Texts]) -> int:
        """Return the number of characters of the longest prefix shared with one of `others`.

        Args:
            others: earlier prompts; later ones are more similar.
        """
        best = whole = 0
        for other in reversed(others):
            if whole and self._part(whole - 1) != other._part(whole - 1):
                continue  # it differs before the end of the best prefix, as most do
            same = min(_common(self.texts, other.texts), _common(self.roles, other.roles))
            shared = self.length(same)
            if same < min(len(self.texts), len(other.texts)):
                shared += bool(same) + _common(self._part(same), other._part(same))
            if shared > best:
                best, whole = shared, same
        return best

    def _part(self, index: int) -> str:
        return f"{self.roles[index]}:{self.texts[index]}" if index < len(self.texts) else ""


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the length of the common prefix, by bisection (comparing slices is fast)."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
