"""What bounds a reply, where the service can: its length, and texts at which it ends.

Services differ in the names of these parameters, and some refuse them. One that a service refuses
is dropped and the call is sent again at once; that is remembered for the process.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ck_pro.model.retry import is_filtered

LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names of the limit of a reply's length."""
_REFUSALS = (400, 422)
_FAULTS = (500, 501)
"""Of services that fail at a parameter that they do not know."""
_OF_THIS_PROMPT = re.compile("context", re.IGNORECASE)
_OF_PARAMETERS = re.compile(
    r"param|field|argument|extra|unrecogni|unknown|unsupport|not (?:supported|permitted|allowed)"
    r"|unexpected|bad request|invalid.request|\A\W*\Z",
    re.IGNORECASE,
)
_refused: dict[tuple[str, str], frozenset[str]] = {}
_lock = threading.Lock()

Answer = tuple[int, str, Mapping[str, str]]
"""Status, body, headers."""


@dataclass(frozen=True)
class Bounds:
    """What bounds a reply.

    Args:
        stop: texts at which the reply ends.
        max_tokens: of the reply, reasoning included; None: no limit.
    """

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None

    def params(
        self, given: Mapping[str, Any], lengths: Sequence[str], without: frozenset[str]
    ) -> dict[str, Any]:
        """The parameters for a call.

        Args:
            given: those that the user set; they win.
            lengths: the service's names of the limit of length, the likeliest first.
            without: names that it refuses.
        """
        found: dict[str, Any] = {}
        if self.stop and "stop" not in given and "stop" not in without and lengths != RESPONSES:
            found["stop"] = list(self.stop)
        if self.max_tokens is not None and not any(name in given for name in LENGTHS):
            usable = [name for name in lengths if name not in without]
            found.update(dict.fromkeys(usable[:1], self.max_tokens))
        return found


RESPONSES = ("max_output_tokens",)
"""The names of the Responses API, which knows no stop texts."""


def send_bounded(
    bounds: Bounds,
    given: Mapping[str, Any],
    service: tuple[str, str],
    lengths: Sequence[str],
    send: Callable[[dict[str, Any]], Answer],
) -> tuple[Answer, dict[str, Any]]:
    """Send a call with its bounds; without those that the service refuses.

    Args:
        bounds: see `Bounds`.
        given: the parameters that the user set.
        service: address and model: what refused parameters are remembered by.
        lengths: see `Bounds.params`.
        send: sends the call with these parameters.

    Returns:
        The answer, and the bounds that were sent with it.
    """
    known = _refused.get(service, frozenset())
    without = known
    learned: frozenset[str] = frozenset()
    while True:
        extra = bounds.params(given, lengths, without)
        answer = send({**extra, **given})
        status, body, _ = answer
        if status not in (*_REFUSALS, *_FAULTS) or not extra or is_filtered(body):
            break
        dropped, lasting = _refused_by(body, extra, lengths)
        if not dropped or (status in _FAULTS and not _named(_message(body), extra)):
            break
        without |= dropped
        learned |= dropped if lasting else frozenset()
    if learned and 200 <= status < 300:
        with _lock:
            _refused[service] = _refused.get(service, frozenset()) | learned
    return answer, extra


def _refused_by(
    body: str, extra: Mapping[str, Any], lengths: Sequence[str]
) -> tuple[frozenset[str], bool]:
    """Which bounds a refusal is about, if any, and whether it holds for every prompt."""
    said = _message(body)
    named = _named(said, extra)
    long = any(n in extra for n in lengths) and (named or re.search("completion", said))
    if long and _OF_THIS_PROMPT.search(said):
        return frozenset(lengths), False
    if named or not _OF_PARAMETERS.search(said):
        return named, True
    return frozenset((*extra, *lengths)), True  # it does not say which


def _named(said: str, extra: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(n for n in extra if re.search(rf"\b{n}\b", said))


def _message(body: str) -> str:
    """What a refusal says, without what it repeats of the request."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body[:2000]
    error = data.get("error", data) if isinstance(data, Mapping) else data
    if isinstance(error, Mapping) and "detail" in error:
        error = error["detail"]
    entries = error if isinstance(error, list) else [error]
    kept = ("message", "msg", "param", "loc", "code", "type")
    found = [{k: e[k] for k in kept if k in e} if isinstance(e, Mapping) else e for e in entries]
    return json.dumps(found)[:4000]
