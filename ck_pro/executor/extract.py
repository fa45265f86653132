"""Find the code in a model's reply, and the text that the model invented. Pure."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_PYTHON = frozenset({"python", "py", "python3", "py3", "ipython", "code", "tool_code"})
_FENCE = re.compile(r"`{3,}|~{3,}")
_LABEL = re.compile(r"[ \t]*\{?\.?(?P<label>[A-Za-z0-9_+.#-]*)\}?[^\n]*(?:\n|\Z)")
_OPENS_PYTHON = re.compile(
    rf"[ \t]*(?:`{{3,}}|~{{3,}})[ \t]*(?:{'|'.join(sorted(_PYTHON))})[ \t]*\n", re.IGNORECASE
)
_THOUGHT = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_PYTHON_TAG = "<|python_tag|>"
_END_TAG = re.compile(r"<\|(?:eom_id|eot_id|end|im_end|endoftext)\|>")
TAGGED = re.compile(
    r"^[ \t]*<(?P<tag>code|execute)>[ \t]*\n?(?P<code>.*?)(?P<end></(?P=tag)>|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""Code in tags, as models write it that were trained on the formats of other agents."""
_TOKEN = re.compile(
    r"#[^\n]*"
    r"|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"\"\"|'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|`{3,}|~{3,}",
    re.DOTALL,
)
_TARGET = r"[\w.]+(?:\[[^\]\n]*\])*"
_STATEMENT = re.compile(
    r"^(?:import |from \w[\w.]* import |def |class |for |while |if |with |try:|@|async |return\b"
    rf"|print\()|^{_TARGET}(?:, ?{_TARGET})* ?[-+*/|&%]?= ?\S|^[\w.]+\(.*\)\s*$",
    re.MULTILINE,
)
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
_RESULT_LABEL = re.compile(
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


class _Block(NamedTuple):
    label: str
    code: str
    start: int
    end: int
    closed: bool

    def is_code(self, some_labelled: bool) -> bool:
        """Return whether the block would run if the reply ended with it.

        Next to labelled blocks, an unlabelled one must look like code.
        """
        plain = not self.label and (not some_labelled or _looks_like_code(self.code))
        return plain or self.label in _PYTHON


class FoundCode(NamedTuple):
    """The code of a reply.

    Attributes:
        code: the code of all blocks; "" if there is none.
        closed: whether the last block is complete.
        invented: the first line of invented text, which is ignored with everything after it; "" if
            there is none.
    """

    code: str
    closed: bool
    invented: str


def extract_code(reply: str) -> str:
    """Find the Python code in a model's reply; "" if there is none. See `find_code`."""
    return find_code(reply).code


def without_thinking(reply: str) -> str:
    """Remove leading `<think>` text and the start of the turn in a chat template."""
    text = _THOUGHT.sub("", reply.replace("\r\n", "\n").replace("\r", "\n"), count=1)
    return remove_turn_start(text)


def find_code(reply: str) -> FoundCode:
    """Find the Python code in a model's reply.

    The code is all fenced blocks with a Python label, joined by an empty line. If there are none,
    it is the blocks without a label. A fence inside a string does not end a block, and an unclosed
    block extends to the end of the reply. Code may also follow `<|python_tag|>`, or stand between
    `<code>` or `<execute>` at the start of a line and its end tag. Without any of these, the reply
    is code only if its first line looks like code. Leading `<think>` text is ignored.

    If the text after the first code imitates an observation or another turn, it is invented by the
    model (see `ck_pro.executor.extract`) and ignored.
    """
    text = without_thinking(reply)
    _, tag, after = text.partition(_PYTHON_TAG)
    if tag:
        text, *rest = _END_TAG.split(after, maxsplit=1)
        blocks = _find_blocks(text)
        found = _choose(text, blocks) if blocks else FoundCode(text.strip("\n").rstrip(), False, "")
        beyond = "".join(rest).strip()
        return found._replace(closed=found.closed or bool(rest), invented=_line(beyond, 0))
    blocks = _find_blocks(text)
    if not blocks:
        blocks = [
            _Block("", textwrap.dedent(t["code"]).strip(), *t.span(), bool(t["end"]))
            for t in TAGGED.finditer(text)
        ]
    if blocks:
        return _choose(text, blocks)
    bare = text.strip("\n").rstrip()
    if not _looks_like_code(bare):
        return FoundCode("", True, "")
    own = _find_invented_line(bare)
    return FoundCode(bare[:own].rstrip(), own < len(bare), _line(bare, own))


def has_python_block(reply: str) -> bool:
    """Return whether a reply has a block with a Python label."""
    return any(block.label in _PYTHON for block in _find_blocks(without_thinking(reply)))


def own_blocks(reply: str) -> tuple[str, list[tuple[str, int, int]]]:
    """Return a reply without thinking, and its complete Python, JSON and unlabelled blocks.

    Blocks in invented text are left out.

    Returns:
        The text, and the code, the start and the end of each block in it.
    """
    text = without_thinking(reply)
    own, _ = _own_blocks(text, _find_blocks(text))
    labels = {*_PYTHON, "json", ""}
    return text, [(b.code, b.start, b.end) for b in own if b.closed and b.label in labels]


def _choose(text: str, blocks: list[_Block]) -> FoundCode:
    """Choose the blocks to run from those before invented text."""
    own, invented = _own_blocks(text, blocks)
    labelled = [block for block in own if block.label in _PYTHON]
    chosen = labelled or [block for block in own if not block.label]
    code = "\n\n".join(block.code for block in chosen if block.code.strip())
    return FoundCode(code, not chosen or chosen[-1].closed, invented)


def _own_blocks(text: str, blocks: list[_Block]) -> tuple[list[_Block], str]:
    """Return the blocks before invented text, and the first line of that text."""
    own: list[_Block] = []
    has_code, some_labelled = False, any(block.label in _PYTHON for block in blocks)
    for n, block in enumerate(blocks):
        before = blocks[n - 1].end if n else 0
        if not has_code and (at := find_other_turn(text, before, block.start)) < block.start:
            return own, _line(text, at)
        if has_code and block.label in OUTPUT_LABELS:
            return own, _line(text, block.start)
        is_code = block.is_code(some_labelled)
        has_code = has_code or is_code
        at = _find_invented_line(block.code) if is_code else len(block.code)
        if at < len(block.code):
            own.append(block._replace(code=block.code[:at].rstrip(), closed=True))
            return own, _line(block.code, at)
        plain = has_code and not is_code and block.label in PLAIN_LABELS
        if plain and find_invented_text(block.code, 0, len(block.code)) < len(block.code):
            return own, _line(text, block.start)
        own.append(block)
        if has_code:
            until = blocks[n + 1].start if n + 1 < len(blocks) else len(text)
            at = find_invented_text(text, block.end, until)
            if at < until:
                return own, _line(text, at)
    return own, ""


def _find_invented_line(code: str) -> int:
    """Return the index of the first invented line outside strings, or the length of the code.

    The first line is never invented.
    """
    lines = _TOKEN.sub(_on_one_line, code).split("\n")
    at = len(lines[0]) + 1
    for line in lines[1:]:
        if is_invented_line(line):
            return at
        at += len(line) + 1
    return len(code)


def _on_one_line(token: re.Match[str]) -> str:
    return token.group().replace("\n", " ")


def _line(text: str, at: int) -> str:
    """Return the line at an index, shortened for a message."""
    return text[at:].strip().partition("\n")[0].strip()[:80]


def _find_blocks(text: str) -> list[_Block]:
    blocks = []
    position = 0
    while (opening := _FENCE.search(text, position)) is not None:
        fence, start = opening.group(), opening.end()
        indent = _indent(text, position, opening.start())
        begin = opening.start() - indent
        line_end = text.find("\n", start)
        line = text[start : line_end if line_end >= 0 else len(text)]
        if fence[0] == "`" and fence in line:  # ```x = 1``` on one line
            inner = line[: line.index(fence)]
            position = start + len(inner) + len(fence)
            blocks.append(_one_line(inner, begin, position))
            continue
        head = _LABEL.match(text, start)
        if head is None:
            break
        end, position = _find_end(text, head.end(), fence)
        code = text[head.end() : end].rstrip()
        if indent:
            code = textwrap.dedent(code)
        label, closed = head["label"].lower(), position > end
        blocks.append(_Block(label, code.strip("\n"), begin, position, closed))
    return blocks


def _indent(text: str, start: int, fence: int) -> int:
    """Return the number of blanks before a fence; 0 if its line, from `start` on, has more."""
    line = text.rfind("\n", 0, fence) + 1
    return fence - line if line >= start and not text[line:fence].strip(" \t") else 0


def _one_line(inner: str, start: int, end: int) -> _Block:
    label, _, rest = inner.strip().partition(" ")
    if label.lower() in _PYTHON and rest:
        return _Block("python", rest.strip(), start, end, True)
    return _Block("", inner.strip(), start, end, True)


def _find_end(text: str, start: int, fence: str) -> tuple[int, int]:
    """Return the end of a block's code, and the index at which to search for the next block."""
    for token in _TOKEN.finditer(text, start):
        found = token.group()
        if found[0] == fence[0] and len(found) >= len(fence):
            line = text.rfind("\n", 0, token.start()) + 1
            if _OPENS_PYTHON.match(text, line):
                return line, line  # this fence starts a new block
            if fence[0] == "`" or _alone(text, token.start(), token.end()):
                return token.start(), token.end()
        elif found in ('"""', "'''"):
            break  # an unclosed string
    # strings are not reliable in faulty code, so use the first fence that is alone on its line
    closing = re.compile(rf"^[ \t]*{re.escape(fence)}[`~]*[ \t]*$", re.MULTILINE)
    plain = closing.search(text, start)
    if plain is not None:
        return plain.start(), plain.end()
    return len(text), len(text)


def _alone(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    line_end = text.find("\n", end)
    return not before.strip() and not text[end : line_end if line_end >= 0 else len(text)].strip()


def _looks_like_code(text: str) -> bool:
    first = text.split("\n", 1)[0]
    return first.startswith("#") or _STATEMENT.match(first) is not None


# --- invented text -------------------------------------------------------------------------------
# After its code, a model may write the output that it expects, or the next message of the user, and
# then continue from there. This text and everything after it are invented.


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
    for at, line in _plain_lines(text, start, found):
        if _RESULT_LABEL.match(line) or _TAG.match(line) or _HEADING.match(line):
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


def _plain_lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
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
