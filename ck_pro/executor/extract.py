"""Finds the code in a model's reply."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from ck_pro.executor.invented_text import (
    OUTPUT_LABELS,
    PLAIN_LABELS,
    invented_in_code,
    invented_in_prose,
    others_turn,
    without_own_head,
)

_PYTHON = frozenset({"python", "py", "python3", "py3", "ipython", "code", "tool_code"})
_OPENING = re.compile(r"(?P<indent>(?:(?<=\n)|\A)[ \t]*)?(?P<fence>`{3,}|~{3,})")
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
"""Code as models that were trained on other agents' forms write it."""
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


class _Block(NamedTuple):
    label: str
    code: str
    begin: int
    end: int
    closed: bool

    def is_code(self, some_labelled: bool) -> bool:
        """Whether it would run if the reply ended with it; a plain block beside labelled ones only
        if it reads like code."""
        plain = not self.label and (not some_labelled or _reads_like_code(self.code))
        return plain or self.label in _PYTHON


class FoundCode(NamedTuple):
    """The code of a reply.

    Attributes:
        code: all of it; "" if there is none.
        closed: the reply has the end of the last block, not only its beginning.
        invented: the line at which the reply stops being the model's own, and after which nothing
            was read; "" if it is the model's own to its end.
    """

    code: str
    closed: bool
    invented: str


def extract_code(reply: str) -> str:
    """Find the Python code in a model's reply; "" if there is none. See `find_code`."""
    return find_code(reply).code


def without_thinking(reply: str) -> str:
    """A reply without what it thinks aloud first, and without a chat template's beginning."""
    text = _THOUGHT.sub("", reply.replace("\r\n", "\n").replace("\r", "\n"), count=1)
    return without_own_head(text)


def find_code(reply: str) -> FoundCode:
    """Find the Python code in a model's reply.

    Blocks in fences labelled as Python are taken, all of them, in order, joined by an empty line;
    if there are none, those without a label. A fence inside a string of the code ends nothing. A
    block that is not closed runs to the end. After `<|python_tag|>` comes code without a fence, and
    where there is no fence, between `<code>` or `<execute>` at the beginning of a line and its end
    tag. A reply with none of these is code only if it reads like code from its first line on. What
    a reply thinks aloud first, between `<think>` and `</think>`, is no code.

    Nothing is read after the first code where the reply goes on with an observation, or with a turn
    of somebody else: the model invented it (see `ck_pro.executor.invented_text`).
    """
    text = without_thinking(reply)
    _, tag, after = text.partition(_PYTHON_TAG)
    if tag:
        text, *rest = _END_TAG.split(after, maxsplit=1)
        blocks = _find_blocks(text)
        found = _chosen(text, blocks) if blocks else FoundCode(text.strip("\n").rstrip(), False, "")
        beyond = "".join(rest).strip()
        return found._replace(closed=found.closed or bool(rest), invented=_line(beyond, 0))
    blocks = _find_blocks(text)
    if not blocks:
        blocks = [
            _Block("", textwrap.dedent(t["code"]).strip(), *t.span(), bool(t["end"]))
            for t in TAGGED.finditer(text)
        ]
    if blocks:
        return _chosen(text, blocks)
    bare = text.strip("\n").rstrip()
    if not _reads_like_code(bare):
        return FoundCode("", True, "")
    own = _invented_line(bare)
    return FoundCode(bare[:own].rstrip(), own < len(bare), _line(bare, own))


def has_python_block(reply: str) -> bool:
    """Whether a reply has a block that is labelled as Python."""
    return any(block.label in _PYTHON for block in _find_blocks(without_thinking(reply)))


def _chosen(text: str, blocks: list[_Block]) -> FoundCode:
    """What is run of the blocks, up to where the reply stops being the model's own."""
    own, invented = _own_blocks(text, blocks)
    labelled = [block for block in own if block.label in _PYTHON]
    chosen = labelled or [block for block in own if not block.label]
    code = "\n\n".join(block.code for block in chosen if block.code.strip())
    return FoundCode(code, not chosen or chosen[-1].closed, invented)


def _own_blocks(text: str, blocks: list[_Block]) -> tuple[list[_Block], str]:
    """The blocks that are the model's own, and the line that follows them where it is not."""
    own: list[_Block] = []
    began, some_labelled = False, any(block.label in _PYTHON for block in blocks)
    for n, block in enumerate(blocks):
        before = blocks[n - 1].end if n else 0
        if not began and (at := others_turn(text, before, block.begin)) < block.begin:
            return own, _line(text, at)
        if began and block.label in OUTPUT_LABELS:
            return own, _line(text, block.begin)
        is_code = block.is_code(some_labelled)
        began = began or is_code
        at = _invented_line(block.code) if is_code else len(block.code)
        if at < len(block.code):
            own.append(block._replace(code=block.code[:at].rstrip(), closed=True))
            return own, _line(block.code, at)
        plain = began and not is_code and block.label in PLAIN_LABELS
        if plain and invented_in_prose(block.code, 0, len(block.code)) < len(block.code):
            return own, _line(text, block.begin)
        own.append(block)
        if began:
            until = blocks[n + 1].begin if n + 1 < len(blocks) else len(text)
            at = invented_in_prose(text, block.end, until)
            if at < until:
                return own, _line(text, at)
    return own, ""


def _invented_line(code: str) -> int:
    """Where a line of code, outside strings, begins an observation or a turn; its length if none
    does. The first line never does."""
    lines = _TOKEN.sub(_on_one_line, code).split("\n")
    at = len(lines[0]) + 1
    for line in lines[1:]:
        if invented_in_code(line):
            return at
        at += len(line) + 1
    return len(code)


def _on_one_line(token: re.Match[str]) -> str:
    """A token without line ends, as long as before."""
    return token.group().replace("\n", " ")


def _line(text: str, at: int) -> str:
    """The line at a place, as a message shows it."""
    return text[at:].strip().partition("\n")[0].strip()[:80]


def _find_blocks(text: str) -> list[_Block]:
    blocks = []
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        begin = opening.end()
        fence = opening["fence"]
        line_end = text.find("\n", begin)
        line = text[begin : line_end if line_end >= 0 else len(text)]
        if fence[0] == "`" and fence in line:  # ```x = 1``` on one line
            inner = line[: line.index(fence)]
            position = begin + len(inner) + len(fence)
            blocks.append(_one_line(inner, opening.start(), position))
            continue
        head = _LABEL.match(text, begin)
        if head is None:
            break
        end, position = _find_end(text, head.end(), fence)
        code = text[head.end() : end].rstrip()
        if opening["indent"]:
            code = textwrap.dedent(code)
        label, closed = head["label"].lower(), position > end
        blocks.append(_Block(label, code.strip("\n"), opening.start(), position, closed))
    return blocks


def _one_line(inner: str, begin: int, end: int) -> _Block:
    label, _, rest = inner.strip().partition(" ")
    if label.lower() in _PYTHON and rest:
        return _Block("python", rest.strip(), begin, end, True)
    return _Block("", inner.strip(), begin, end, True)


def _find_end(text: str, begin: int, fence: str) -> tuple[int, int]:
    """Give where a block's code ends, and where the search goes on."""
    for token in _TOKEN.finditer(text, begin):
        found = token.group()
        if found[0] == fence[0] and len(found) >= len(fence):
            line = text.rfind("\n", 0, token.start()) + 1
            if _OPENS_PYTHON.match(text, line):
                return line, line  # it ends this block, and begins another
            if fence[0] == "`" or _alone(text, token.start(), token.end()):
                return token.start(), token.end()
        elif found in ('"""', "'''"):
            break  # a string that is never closed
    # the code is faulty, and what is inside a string cannot be told: the first fence on a line
    closing = re.compile(rf"^[ \t]*{re.escape(fence)}[`~]*[ \t]*$", re.MULTILINE)
    plain = closing.search(text, begin)
    if plain is not None:
        return plain.start(), plain.end()
    return len(text), len(text)


def _alone(text: str, begin: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, begin) + 1 : begin]
    line_end = text.find("\n", end)
    return not before.strip() and not text[end : line_end if line_end >= 0 else len(text)].strip()


def _reads_like_code(text: str) -> bool:
    first = text.split("\n", 1)[0]
    return first.startswith("#") or _STATEMENT.match(first) is not None
