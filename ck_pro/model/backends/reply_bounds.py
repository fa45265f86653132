"""Limits on a reply that are sent to the service: its length, stop texts, a JSON schema.

Services use different names for these parameters, and some reject them. If a service rejects one,
the call is repeated at once without it, and the process remembers that.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ck_pro.model.backends.service_errors import is_prompt_filtered

LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""All names of the length limit."""
RESPONSES = ("max_output_tokens",)
"""Names of the length limit in the Responses API, which has no stop texts."""
SCHEMA = "response_format"
"""Name of the parameter with the JSON schema of a reply, in chat completions."""
_NAMED_AS = {SCHEMA: r"response_format|json_schema|text\.format|structured|grammar"}
"""How errors name a parameter, if not by its name."""
_REJECTED = (400, 422)
_FAILED = (500, 501)
"""Statuses of services that fail at unknown parameters."""
_OF_THIS_PROMPT = re.compile("context", re.IGNORECASE)
_OF_PARAMETERS = re.compile(
    r"param|field|argument|extra|unrecogni|unknown|unsupport|not (?:supported|permitted|allowed)"
    r"|unexpected|bad request|invalid.request|\A\W*\Z",
    re.IGNORECASE,
)
_rejected: dict[tuple[str, str], frozenset[str]] = {}
_lock = threading.Lock()

Answer = tuple[int, str, Mapping[str, str]]
"""Status, body and headers of a response."""


@dataclass(frozen=True)
class Bounds:
    """Limits on a reply.

    Args:
        stop: texts that end the reply.
        max_tokens: limit of the reply, including reasoning; None: no limit.
        schema: JSON schema of the reply, in the strict form; None: no schema.
    """

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None

    def params(
        self, given: Mapping[str, Any], lengths: Sequence[str], without: frozenset[str]
    ) -> dict[str, Any]:
        """Return the request parameters for these limits.

        Args:
            given: the user's parameters, which take precedence.
            lengths: the service's names of the length limit, most likely first.
            without: names that the service rejects.
        """
        found: dict[str, Any] = {}
        if self.stop and "stop" not in given and "stop" not in without and lengths != RESPONSES:
            found["stop"] = list(self.stop)
        if self.max_tokens is not None and not any(name in given for name in LENGTHS):
            usable = [name for name in lengths if name not in without]
            found.update(dict.fromkeys(usable[:1], self.max_tokens))
        if self.schema is not None and not {SCHEMA} & (given.keys() | without):
            form = {"name": "reply", "strict": True, "schema": self.schema}
            found[SCHEMA] = {"type": "json_schema", "json_schema": form}
        return found


def send_bounded(
    bounds: Bounds,
    given: Mapping[str, Any],
    service: tuple[str, str],
    lengths: Sequence[str],
    send: Callable[[dict[str, Any]], Answer],
) -> tuple[Answer, dict[str, Any]]:
    """Send a request with its limits, without those that the service rejects.

    Args:
        bounds: the limits.
        given: the user's parameters.
        service: URL and model, the key under which rejected parameters are remembered.
        lengths: see `Bounds.params`.
        send: sends the request with these parameters.

    Returns:
        The response, and the limits that were sent with it.
    """
    known = _rejected.get(service, frozenset())
    without = known
    learned: frozenset[str] = frozenset()
    while True:
        extra = bounds.params(given, lengths, without)
        answer = send({**extra, **given})
        status, body, _ = answer
        if status not in (*_REJECTED, *_FAILED) or not extra or is_prompt_filtered(body):
            break
        dropped, lasting = _rejected_bounds(body, extra, lengths)
        if not dropped or (status in _FAILED and not _named(_message(body), extra)):
            break
        without |= dropped
        learned |= dropped if lasting else frozenset()
    if learned and 200 <= status < 300:
        with _lock:
            _rejected[service] = _rejected.get(service, frozenset()) | learned
    return answer, extra


def _rejected_bounds(
    body: str, extra: Mapping[str, Any], lengths: Sequence[str]
) -> tuple[frozenset[str], bool]:
    """Return the limits that an error rejects, and whether it would reject them for any prompt."""
    text = _message(body)
    named = _named(text, extra)
    long = any(n in extra for n in lengths) and (named or re.search("completion", text))
    if long and _OF_THIS_PROMPT.search(text):
        return frozenset(lengths), False
    if named or not _OF_PARAMETERS.search(text):
        return named, True
    return frozenset((*extra, *lengths)), True  # the error names no parameter


def _named(text: str, extra: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(n for n in extra if re.search(rf"\b(?:{_NAMED_AS.get(n, n)})\b", text))


def _message(body: str) -> str:
    """Return the text of an error, without the parts of the request that it repeats."""
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
