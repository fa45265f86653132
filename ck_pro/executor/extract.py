"""Finds the code in a model's reply."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

_PYTHON = frozenset({"python", "py", "python3", "py3", "ipython", "code", "tool_code"})
_OPENING = re.compile(r"(?P<indent>(?:(?<=\n)|\A)[ \t]*)?(?P<fence>`{3,}|~{3,})")
_LABEL = re.compile(r"[ \t]*\{?\.?(?P<label>[A-Za-z0-9_+.#-]*)\}?[^\n]*(?:\n|\Z)")
_OPENS_PYTHON = re.compile(
    rf"[ \t]*(?:`{{3,}}|~{{3,}})[ \t]*(?:{'|'.join(sorted(_PYTHON))})[ \t]*\n", re.IGNORECASE
)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_PYTHON_TAG = "<|python_tag|>"
_END_TAG = re.compile(r"<\|(?:eom_id|eot_id|end|im_end|endoftext)\|>")
TAGGED = re.compile(
    r"^[ \t]*<(?P<tag>code|execute)>[ \t]*\n?(?P<code>.*?)(?:</(?P=tag)>|\Z)",
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


def extract_code(reply: str) -> str:
    """Find the Python code in a model's reply.

    Blocks in fences labelled as Python are taken, all of them, in order, joined by an empty line;
    if there are none, those without a label. A fence inside a string of the code ends nothing. A
    block that is not closed runs to the end. After `<|python_tag|>` comes code without a fence, and
    where there is no fence, between `<code>` or `<execute>` at the beginning of a line and its end
    tag. A reply with none of these is code only if it reads like code from its first line on. What
    a reply thinks aloud first, between `<think>` and `</think>`, is no code.

    Returns:
        The code, or "" if there is none.
    """
    text = _THOUGHT.sub("", reply.replace("\r\n", "\n").replace("\r", "\n"), count=1)
    _, tag, after = text.partition(_PYTHON_TAG)
    if tag:
        text = _END_TAG.split(after, maxsplit=1)[0]
    blocks = _find_blocks(text)
    if not blocks and not tag:
        blocks = [_Block("", textwrap.dedent(t["code"]).strip()) for t in TAGGED.finditer(text)]
    if not blocks:
        bare = text.strip("\n").rstrip()
        return bare if tag or _reads_like_code(bare) else ""
    labelled = [block.code for block in blocks if block.label in _PYTHON]
    chosen = labelled or [block.code for block in blocks if not block.label]
    return "\n\n".join(code for code in chosen if code.strip())


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
            blocks.append(_one_line(inner))
            continue
        head = _LABEL.match(text, begin)
        if head is None:
            break
        end, position = _find_end(text, head.end(), fence)
        code = text[head.end() : end].rstrip()
        if opening["indent"]:
            code = textwrap.dedent(code)
        blocks.append(_Block(head["label"].lower(), code.strip("\n")))
    return blocks


def _one_line(inner: str) -> _Block:
    label, _, rest = inner.strip().partition(" ")
    if label.lower() in _PYTHON and rest:
        return _Block("python", rest.strip())
    return _Block("", inner.strip())


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
