"""Encode the messages of model calls by hash, relative to the previous call.

The entries of `message_hashes` stand for the prompt's messages, in order. An entry is either:

- 32 hexadecimal digits: the hash of a message in an earlier line of kind `message`; or
- `START:END`: a slice of the messages of the previous call of the same session and phase.

Without a previous call, or if the writer has just opened the journal, all entries are hashes. A
journal truncated after any line can therefore be read and extended. A `status` event of the
session ends the chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, eq, is_
from typing import Any

from ck_pro.journal.masking import Secrets

_RUN = re.compile(r"(\d+):(\d+)")
_SHORTEST_RUN = 2
_PLAIN = (str, int, float, bool, type(None))
_SOURCE, _GIVEN = attrgetter("source"), attrgetter("given")


@dataclass(eq=False)
class PromptMessage:
    """A message of a prompt.

    Attributes:
        source: the object from the prompt.
        given: a copy that shares its strings, so that comparing is cheap.
        stored: the same, masked.
        name: its hash; "" until it is computed.
    """

    __slots__ = ("given", "name", "source", "stored")

    source: Any
    given: Any
    stored: Any
    name: str


class LastPrompts:
    """The last prompt of each session and phase, for the writer.

    Most of a prompt repeats the previous one, with the same string objects. The cost of a call
    therefore depends only on its new messages. Prompts are cached until the session ends.

    Args:
        secrets: masked in all messages.
    """

    def __init__(self, secrets: Secrets):
        self._secrets = secrets
        self._last: dict[tuple[str, str | None], list[PromptMessage]] = {}

    def compare(
        self, sid: str, phase: str | None, messages: Sequence[Any]
    ) -> tuple[list[PromptMessage], int]:
        """Return the prompt's messages, and the number of leading ones equal to the last prompt."""
        last = self._last.get((sid, phase), [])
        same = _same_beginning(messages, last)
        known = {key: message for message in last[same:] if (key := _plain_key(message.given))}
        prompt = last[:same]
        for message in messages[same:]:
            key = _plain_key(message)
            found = known.get(key) if key else None
            if found is None:
                stored = self._secrets.masked(message) if self._secrets.known else message
                found = PromptMessage(message, _copy(message), stored, "")
            prompt.append(found)
        return prompt, same

    def entries(
        self, sid: str, phase: str | None, prompt: Sequence[PromptMessage], same: int
    ) -> list[str]:
        """Return the `message_hashes` of a prompt whose messages have their hashes."""
        last = [message.name for message in self._last.get((sid, phase), [])[same:]]
        names = [message.name for message in prompt[same:]]
        return [*([f"0:{same}"] if same else []), *_folded(names, last, same)]

    def remember(self, sid: str, phase: str | None, prompt: list[PromptMessage]) -> None:
        """Remember a stored prompt for the next call."""
        self._last[sid, phase] = prompt

    def forget(self, sid: str | None = None) -> None:
        """Drop the prompts of a session, or of all sessions."""
        self._last = {k: v for k, v in self._last.items() if sid is not None and k[0] != sid}


def _same_beginning(messages: Sequence[Any], last: Sequence[PromptMessage]) -> int:
    # usually the same objects as in the last prompt; the copy reveals changes made in place
    same = _leading(map(is_, messages, map(_SOURCE, last)))
    same = _leading(map(eq, messages, map(_GIVEN, last[:same])))
    for message, old in zip(messages[same:], last[same:], strict=False):
        if not ((message is old.source and message == old.given) or _same(message, old.given)):
            break
        same += 1
    return same


def _leading(flags: Iterable[bool]) -> int:
    """Count the leading true flags."""
    found = list(flags)
    return found.index(False) if False in found else len(found)


def _same(a: Any, b: Any) -> bool:
    """Return whether two values have the same JSON text, including types and order of keys."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, dict):
        if len(a) != len(b) or list(a) != list(b):
            return False
        return all(_same(x, y) for x, y in zip(a.values(), b.values(), strict=True))
    if isinstance(a, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a.__class__ in _PLAIN and bool(a == b)


def _copy(value: Any) -> Any:
    """Copy lists and dicts, since the caller may change them."""
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_copy(v) for v in value]
    return value


def _plain_key(message: Any) -> tuple[str, str] | None:
    """Return a key that equal messages of only role and text share; None for other messages.

    A string caches its hash, so looking up an old text is cheap.
    """
    if isinstance(message, dict) and list(message) == ["role", "content"]:
        role, content = message["role"], message["content"]
        if isinstance(role, str) and isinstance(content, str):
            return role, content
    return None


def _folded(names: Sequence[str], last: Sequence[str], offset: int) -> Iterator[str]:
    """Yield hashes, and slices for runs of hashes that are also consecutive in the last prompt.

    Args:
        names: hashes of the prompt.
        last: hashes of the last prompt, from `offset` on.
        offset: index in the last prompt.
    """
    places = {name: n for n, name in enumerate(last)}
    at = 0
    while at < len(names):
        start = end = places.get(names[at], len(last))
        stop = at
        while end < len(last) and stop < len(names) and names[stop] == last[end]:
            end, stop = end + 1, stop + 1
        if stop - at >= _SHORTEST_RUN:
            yield f"{offset + start}:{offset + end}"
            at = stop
        else:
            yield names[at]
            at += 1


class HashDecoder:
    """Decode the entries of `message_hashes`, for readers."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str | None], list[str]] = {}

    def decode(self, sid: str, phase: str | None, entries: Sequence[str]) -> list[str]:
        """Return the hashes of a call's messages; pass calls in the order of the file.

        Raises:
            ValueError: an entry refers to a message that the previous call does not have.
        """
        last = self._last.get((sid, phase), [])
        names: list[str] = []
        for entry in entries:
            run = _RUN.fullmatch(entry)
            if run is None:
                names.append(entry)
                continue
            start, end = int(run[1]), int(run[2])
            if not start < end <= len(last):
                raise ValueError(f"the previous call has no messages {entry}")
            names += last[start:end]
        self._last[sid, phase] = names
        return names

    def forget(self, sid: str) -> None:
        """Drop the state of a session that has ended."""
        self._last = {k: v for k, v in self._last.items() if k[0] != sid}
