"""Recognise answers that say only that there is no answer. A heuristic for English answers."""

from __future__ import annotations

import re

MAX_CHARS = 200
"""A longer answer contains more than that."""

_NOT = (
    r"(?:do not|don't|did not|didn't|could not|couldn't|cannot|can't|can not"
    r"|(?:was|were|am|are) (?:not able|unable) to|wasn't able to|'m (?:not able|unable) to)"
)
_VERBS = (
    "know|find|determine|answer|access|help|open|load|reach|identify|locate|retrieve|complete|"
    "verify|confirm|solve|establish|provide|give an|give the|see any|get any"
)
_DONE = (
    "determined|found|answered|done|completed|loaded|opened|accessed|reached|retrieved|identified|"
    "located|verified|established|confirmed|solved|provided"
)
_KNOWN = (
    "available|found|specified|stated|given|known|provided|mentioned|listed|determined|applicable|"
    "possible"
)
_FACTS = "information|data|answer|answers|result|results|match|matches|record|records"
_WHERE = (
    r"(?: (?:on|from|in|at|with|by|to) "
    r"(?:the|this|that|these|any|my|given|determine|find)\b.{0,100}| for .{0,60})?"
)
_WHAT = r"(?:the|this|that|it|your|such)\b(?: \w+){0,4} "
_FORMS = (
    r"(?:n\.?/?a\.?|none|null|nil|unknown|undetermined|unavailable|unclear|no answer|nothing found|"
    r"(?:information|data) unavailable|no such \w+|i give up|no idea|-+|\?+)(?: \(.{0,100}\))?",
    rf"(?:{_WHAT})?(?:(?:is|was|are|were) )?(?:not (?:{_KNOWN}){_WHERE}|impossible to .{{0,100}})",
    rf"{_WHAT}(?:is|was|are|were) (?:unknown|unavailable|unclear|missing){_WHERE}",
    rf"(?:information|data|page|answer) not (?:{_KNOWN}){_WHERE}",
    rf"(?:.{{1,100}},? so )?(?:i|we) ?{_NOT} (?:{_VERBS})\b.{{0,120}}",
    r"(?:i|we) have no (?:access|information|data|answer|idea)\b.{0,100}",
    rf"(?:unable to|failed to|could not|couldn't|cannot|can't) (?:{_VERBS})\b.{{0,120}}",
    rf"(?:.{{1,100}},? so )?(?:{_WHAT})?(?:could not|couldn't|cannot|can't) be (?:{_DONE})\b"
    r".{0,120}",
    rf"{_WHAT}(?:does not|doesn't|do not|did not|didn't) (?:exist|contain|say|state|give|list|"
    r"mention|respond|load|open|provide|show|have)\b.{0,100}",
    r"there (?:is|was|are|were) (?:no|not enough|insufficient)(?: \w+)? "
    rf"(?:{_FACTS}|evidence)\b.{{0,120}}",
    rf"(?:no|not enough|insufficient)(?: \w+)? (?:{_FACTS}|evidence)"
    rf"(?: (?:is|was|were|are))?(?: (?:{_KNOWN}))?(?:{_WHERE}|(?: to .{{0,100}}))",
)
_GIVEN_UP = re.compile(
    rf"(?:(?:sorry|error|unfortunately)[,:.]? (?:but )?)?(?:{'|'.join(_FORMS)})[.!]?",
    re.IGNORECASE | re.DOTALL,
)


def gives_up(answer: str) -> bool:
    """Whether an answer says only that it could not be found, or that there is none."""
    text = " ".join(answer.replace("\u2019", "'").split()).strip("'\"* ")
    return len(text) <= MAX_CHARS and _GIVEN_UP.fullmatch(text) is not None
