"""Fold lines about similar actions into one line with their differences.

>>> fold(["type [4] textbox 'Name' 'Ann': now value: Ann",
...       "type [5] textbox 'Town' 'Ulm': now value: Ulm",
...       "type [6] textbox 'Code' '7': now value: 07"])
["type 3 times, each now value (as given, unless shown): [4] textbox 'Name' 'Ann'; \
[5] textbox 'Town' 'Ulm'; [6] textbox 'Code' '7' -> 07"]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

_MIN_LINES = 3
_KEY_WORDS = 2
_HEAD = re.compile(r"((?:'(?:[^'\\\n]|\\.)*'|[^'\n])*?): ")
"""The part before the first colon outside quotation marks."""
_WORD = re.compile(r"[A-Za-z]+:?")


@dataclass(frozen=True)
class _Line:
    """A line `VERB TARGET: RESULT`; `verb` is "" for a line of another form."""

    text: str
    verb: str = ""
    target: str = ""
    result: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> _Line:
        head = _HEAD.match(text)
        if head is None or "\n" in text or head[1].endswith(" failed"):
            return cls(text)
        verb, _, target = head[1].partition(" ")
        return cls(text, verb, target, tuple(text[head.end() :].split(" ")))

    def key(self) -> tuple[str, ...]:
        """Return what the lines of one fold have in common."""
        return (self.verb, *self.result[:_KEY_WORDS]) if self.target else (self.text, "")


def fold(lines: Sequence[str]) -> list[str]:
    """Return the lines; of three or more adjacent similar ones, one with all differences.

    Lines are similar if their verb and the first words of their result are equal.

    Args:
        lines: `VERB TARGET: RESULT`; others stay unchanged.
    """
    folded: list[str] = []
    for _, group in itertools.groupby(map(_Line.of, lines), _Line.key):
        similar = list(group)
        if len(similar) < _MIN_LINES or not similar[0].target:
            folded += [line.text for line in similar]
        else:
            folded.append(_one_line(similar))
    return folded


def _one_line(similar: Sequence[_Line]) -> str:
    common = _common_words([line.result for line in similar])
    rests = [" ".join(line.result[common:]) for line in similar]
    given = [line.target.endswith(f"'{rest}'") for line, rest in zip(similar, rests, strict=True)]
    outcome = " ".join(similar[0].result[:common]).rstrip(":")
    if any(given):
        outcome += " as given" if all(given) else " (as given, unless shown)"
    parts = [
        line.target if is_given or not rest else f"{line.target} -> {rest}"
        for line, rest, is_given in zip(similar, rests, given, strict=True)
    ]
    return f"{similar[0].verb} {len(similar)} times, each {outcome}: {'; '.join(parts)}"


def _common_words(results: Sequence[tuple[str, ...]]) -> int:
    """Return the number of first words to state once: all words, or those up to a first value."""
    if len(set(results)) == 1:
        return len(results[0])
    count = 0
    for words in zip(*results, strict=False):
        if len(set(words)) > 1 or not _WORD.fullmatch(words[0]):
            break
        count += 1
        if words[0].endswith(":"):
            break
    return count
