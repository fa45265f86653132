"""Finds where a reply stops being the model's own: invented observations, turns of others. Pure.

A model may continue past its code: it writes what it expects to be printed, or the next message of
the user, and then acts on that. Everything from there on is invented.
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
"""The beginning of another's turn in a chat template. Never part of a reply."""
_TURN_TOKEN = re.compile(
    r"<\|(?:im_start|im_end|start_header_id|eot_id|eom_id|end_of_text|endoftext|end|start|user"
    r"|assistant|system|observation|tool)\|>|<\uff5c[^\uff5c\n]{1,40}\uff5c>|<(?:start|end)_of_turn>"
    r"|\[/?INST\]|</s>",
    re.IGNORECASE,
)
"""The beginning or the end of any turn."""
_OWN_HEAD = re.compile(
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
"""What begins a part of this project's own prompts."""
_WITHIN = re.compile(r"\b(?:Observation(?: of step \d+)?|OBSERVATION):")
_IN_CODE = re.compile(rf"(?:{_SPEAKERS}){_NUMBER}:(?P<rest>.*)", re.IGNORECASE)
OUTPUT_LABELS = frozenset(
    f"{source}{kind}{plural}"
    for source in ("", "tool_", "tool_call_", "code_", "execution_")
    for kind in ("output", "result", "response", "observation", "stdout", "console")
    for plural in ("", "s")
)
"""Labels of fences that hold what a program printed."""
PLAIN_LABELS = frozenset(("", "text", "txt", "plaintext", "plain", "log"))
"""Labels of fences that may hold an observation as well as the model's own text."""


def without_own_head(reply: str) -> str:
    """A reply without the chat template's beginning of the model's own turn."""
    return _OWN_HEAD.sub("", reply, count=1)


def others_turn(text: str, begin: int, end: int) -> int:
    """Where another's turn begins by the tokens of a chat template; `end` if nowhere before."""
    found = _OTHERS_TURN.search(text, begin, end)
    return found.start() if found else end


def invented_in_prose(text: str, begin: int, end: int) -> int:
    """Where text outside code, after the first code, imitates an observation or a turn.

    Args:
        text: the reply.
        begin, end: the part of it to look at.

    Returns:
        An index of `text`; `end` if nothing does.
    """
    found = end
    token = _TURN_TOKEN.search(text, begin, end)
    while token is not None:
        if text[token.end() :].strip():  # else it only ends the reply
            found = token.start()
            break
        token = _TURN_TOKEN.search(text, token.end(), end)
    for start, line in _lines(text, begin, found):
        if _LABEL.match(line) or _TAG.match(line) or _HEADING.match(line):
            return start
        within = _WITHIN.search(text, start, min(found, start + len(line)))
        if within is not None:
            return within.start()
    return found


def invented_in_code(line: str) -> bool:
    """Whether a line of code, outside strings, is the beginning of an observation or a turn.

    `Observation: {...}` is also Python: an annotation, which does nothing.
    """
    if _TURN_TOKEN.match(line) or _TAG.match(line):
        return True
    label = _IN_CODE.match(_plain(line))
    return label is not None and re.search(r"[^=!<>]=[^=]", label["rest"]) is None


def _lines(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    """Each line with its place; without invisible characters, full-width letters as plain ones."""
    while begin < end:
        stop = text.find("\n", begin, end)
        stop = end if stop < 0 else stop
        yield begin, _plain(text[begin:stop])
        begin = stop + 1


def _plain(line: str) -> str:
    if line.isascii():
        return line
    shown = (c for c in unicodedata.normalize("NFKC", line) if unicodedata.category(c) != "Cf")
    return "".join(shown)
