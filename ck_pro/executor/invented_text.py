"""Find invented text in a reply: observations and turns that the model wrote itself. Pure.

After its code, a model may write the output that it expects, or the next message of the user, and
then continue from there. This text and everything after it are invented.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ROLES = "user|human|system|tool|function|ipython|environment|env|observation"
_OTHERS_TURN = re.compile(
    rf"<\|(?:im_start|start)\|>\s*(?:{_ROLES})\b|<\|start_header_id\|>\s*(?:{_ROLES})\b"
    rf"|<\|(?:{_ROLES})\|>|<\uff5c(?:{_ROLES})\uff5c>|<start_of_turn>\s*user\b|\[INST\]",
    re.IGNORECASE,
)
"""The start of another role's turn in a chat template, which is never part of a reply."""
_TURN_TOKEN = re.compile(
    r"<\|(?:im_start|im_end|start_header_id|eot_id|eom_id|end_of_text|endoftext|end|start|user"
    r"|assistant|system|observation|tool)\|>|<\uff5c[^\uff5c\n]{1,40}\uff5c>|<(?:start|end)_of_turn>"
    r"|\[/?INST\]|</s>",
    re.IGNORECASE,
)
"""The start or the end of any turn."""
_TURN_START = re.compile(
    r"\A\s*(?:<\|im_start\|>\s*assistant|<\|assistant\|>|<start_of_turn>\s*model"
    r"|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>)[ \t]*\n?",
    re.IGNORECASE,
)
_SOURCES = "execution|code|tool|function|console|terminal|command|program|script|python|step|real"
_SPEAKERS = (
    rf"(?:{_SOURCES}|your|the)?(?:[ _-]*\d+)?[ _-]*"
    r"(?:observations?|outputs?|results?|responses?|stdout)"
    r"|obs|user|human|system|assistant|tool|environment|env|ipython"
    r"|观察(?:结果)?|执行结果|工具(?:结果|返回|输出)|输出|结果|用户|系统"
)
_NUMBER = r"(?:[ \t]*(?:of|for|from)?[ \t]*(?:the )?(?:step|call)?[ \t]*#?\d+)?"
_DECOR = r"[ \t#>*_=\[(|-]*"
_LABEL = re.compile(
    rf"{_DECOR}(?:{_SPEAKERS}){_NUMBER}(?:[ \t]+(?:is|was|shows|says))?[ \t*_\])>|=-]*(?::|$)"
    rf"|{_DECOR}observations?{_NUMBER}[ \t*_\])>]*(?:\||[ \t][-=\u2013\u2014])"
    r"|[ \t]*\{\s*\"(?:observation|output|result|tool_result|tool_output)\"\s*:",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[ \t]*</?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?"
    r"|execution_?(?:result|output)s?|code_?(?:result|output)s?|observations?|results?|outputs?"
    r"|stdout|user|human|environment|system)(?:\s[^>\n]*)?>",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"[ \t]*(?:#{1,6}[ \t]*(?:task|rules|goals|progress so far|files in the working directory"
    r"|mind|notes|(?:the|current) (?:page|screen)\b.*|page at step \d.*|how it ended"
    r"|planning and acting"
    r"|example of a reply|functions you can call\b.*|available functions)[ \t]*$"
    r"|call \d+, [^\s(]{1,80}(?: \([^)\n]{1,80}\))?:[ \t]*$"
    r"|\(steps \d+ to \d+ are not shown|\(earlier steps omitted|now (?:act|plan):)",
    re.IGNORECASE,
)
"""Headings of this project's prompts."""
_WITHIN = re.compile(r"\b(?:Observation(?: of step \d+)?|OBSERVATION):")
_IN_CODE = re.compile(rf"(?:{_SPEAKERS}){_NUMBER}:(?P<rest>.*)", re.IGNORECASE)
OUTPUT_LABELS = frozenset(
    f"{source}{kind}{plural}"
    for source in ("", "tool_", "tool_call_", "code_", "execution_")
    for kind in ("output", "result", "response", "observation", "stdout", "console")
    for plural in ("", "s")
)
"""Labels of fenced blocks with the output of a program."""
PLAIN_LABELS = frozenset(("", "text", "txt", "plaintext", "plain", "log"))
"""Labels of fenced blocks with an observation or with the model's own text."""


def remove_turn_start(reply: str) -> str:
    """Remove the chat template's start of the model's own turn from a reply."""
    return _TURN_START.sub("", reply, count=1)


def find_other_turn(text: str, start: int, end: int) -> int:
    """Return the index in a part of a text at which another role's turn starts, or `end`."""
    found = _OTHERS_TURN.search(text, start, end)
    return found.start() if found else end


def find_invented_text(text: str, start: int, end: int) -> int:
    """Find the text after the first code that imitates an observation or another turn.

    Args:
        text: the reply.
        start: start of the part to search.
        end: end of that part.

    Returns:
        The index of the invented text, or `end` if there is none.
    """
    found = end
    token = _TURN_TOKEN.search(text, start, end)
    while token is not None:
        if text[token.end() :].strip():  # a token at the end of the reply is not invented
            found = token.start()
            break
        token = _TURN_TOKEN.search(text, token.end(), end)
    for at, line in _lines(text, start, found):
        if _LABEL.match(line) or _TAG.match(line) or _HEADING.match(line):
            return at
        within = _WITHIN.search(text, at, min(found, at + len(line)))
        if within is not None:
            return within.start()
    return found


def is_invented_line(line: str) -> bool:
    """Return whether a line of code, outside strings, imitates an observation or another turn.

    `Observation: {...}` is valid Python: an annotation without effect.
    """
    if _TURN_TOKEN.match(line) or _TAG.match(line):
        return True
    label = _IN_CODE.match(_plain(line))
    return label is not None and re.search(r"[^=!<>]=[^=]", label["rest"]) is None


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the index and the plain form of each line."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield start, _plain(text[start:stop])
        start = stop + 1


def _plain(line: str) -> str:
    """Remove invisible characters, and replace full-width letters by ordinary ones."""
    if line.isascii():
        return line
    shown = (c for c in unicodedata.normalize("NFKC", line) if unicodedata.category(c) != "Cf")
    return "".join(shown)
