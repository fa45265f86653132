"""The messages of model calls, by hash: a call names what is new since the call before.

The entries of `message_hashes` are the prompt's messages in order. An entry of 32 hexadecimal
digits is the hash of a message, which stands in a line of kind `message` before. An entry
`START:END` is a run of the messages of the call before it in the file of the same session and
phase, from index START up to END (as Python's slices). Where there is no call before, or the writer
does not know it (it has just opened the journal), all entries are hashes; so a cut at any line
leaves a journal that can be read and written on. A `status` of the session ends the chain.
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
class Told:
    """A message as a prompt held it.

    Attributes:
        source: the very object.
        given: a copy of it, whose texts are the very objects (so comparing costs next to nothing).
        stored: the same, masked.
        name: its hash; "" until it is needed.
    """

    __slots__ = ("given", "name", "source", "stored")

    source: Any
    given: Any
    stored: Any
    name: str


class LastPrompts:
    """The last prompt of each session and phase, for the writer.

    Most of a prompt was in the one before, and is known again by its texts being the same objects:
    what a call costs goes with what is new in it. A session's prompts are kept until it ends.

    Args:
        secrets: masked in all messages.
    """

    def __init__(self, secrets: Secrets):
        self._secrets = secrets
        self._last: dict[tuple[str, str | None], list[Told]] = {}

    def compared(
        self, sid: str, phase: str | None, messages: Sequence[Any]
    ) -> tuple[list[Told], int]:
        """The messages of a prompt, and how many of them at its beginning are as in the last."""
        last = self._last.get((sid, phase), [])
        same = _same_beginning(messages, last)
        known = {key: told for told in last[same:] if (key := _plain_key(told.given))}
        prompt = last[:same]
        for message in messages[same:]:
            key = _plain_key(message)
            found = known.get(key) if key else None
            if found is None:
                found = Told(message, _copy(message), self._secrets.masked(message), "")
            prompt.append(found)
        return prompt, same

    def entries(self, sid: str, phase: str | None, prompt: Sequence[Told], same: int) -> list[str]:
        """What stands in `message_hashes` for a prompt whose messages have their names."""
        last = [told.name for told in self._last.get((sid, phase), [])[same:]]
        names = [told.name for told in prompt[same:]]
        return [*([f"0:{same}"] if same else []), *_folded(names, last, same)]

    def keep(self, sid: str, phase: str | None, prompt: list[Told]) -> None:
        """A prompt is stored: the next call is told by it."""
        self._last[sid, phase] = prompt

    def forget(self, sid: str | None = None) -> None:
        """The session has ended; without one, all are forgotten."""
        self._last = {k: v for k, v in self._last.items() if sid is not None and k[0] != sid}


def _same_beginning(messages: Sequence[Any], last: Sequence[Told]) -> int:
    # nearly all of a prompt is the very messages of the one before; a change made in one of them
    # shows in the copy
    same = _leading(map(is_, messages, map(_SOURCE, last)))
    same = _leading(map(eq, messages, map(_GIVEN, last[:same])))
    for message, told in zip(messages[same:], last[same:], strict=False):
        if not ((message is told.source and message == told.given) or _same(message, told.given)):
            break
        same += 1
    return same


def _leading(flags: Iterable[bool]) -> int:
    """How many flags are set at the beginning."""
    found = list(flags)
    return found.index(False) if False in found else len(found)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are the same JSON text: types and the order of keys count."""
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
    """A value whose lists and dicts are its own: the caller may change theirs."""
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_copy(v) for v in value]
    return value


def _plain_key(message: Any) -> tuple[str, str] | None:
    """What makes two messages of role and text alone the same; None for any other.

    A text keeps its own hash, so that looking for one that was there before costs nothing.
    """
    if isinstance(message, dict) and list(message) == ["role", "content"]:
        role, content = message["role"], message["content"]
        if isinstance(role, str) and isinstance(content, str):
            return role, content
    return None


def _folded(names: Sequence[str], last: Sequence[str], offset: int) -> Iterator[str]:
    """Names, with those that follow each other in the last prompt, too, as one entry.

    Args:
        names: of the prompt.
        last: of the last prompt, from `offset` on.
        offset: see there.
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


class NamesRead:
    """The hashes that the entries of `message_hashes` stand for, for readers."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str | None], list[str]] = {}

    def of_call(self, sid: str, phase: str | None, entries: Sequence[str]) -> list[str]:
        """The hashes of a model call's messages; calls must come in the order of the file.

        Raises:
            ValueError: an entry names what the call before does not have.
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
                raise ValueError(f"the call before it has no messages {entry}")
            names += last[start:end]
        self._last[sid, phase] = names
        return names

    def forget(self, sid: str) -> None:
        """The session has ended."""
        self._last = {k: v for k, v in self._last.items() if k[0] != sid}
