"""Parse replies: thought and code, and literals. Pure."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from typing import Any

from ck_pro.events.journal_events import ParsedReply
from ck_pro.exceptions import ParseError
from ck_pro.executor.extract import TAGGED, extract_code, find_code, own_blocks
from ck_pro.session.goals import PROGRESS_KEYS

TRUNCATED = (
    "Your reply reached the length limit and was truncated; {}. Write less: a short thought and "
    "one small step."
)
INVENTED = (
    "Only the {0} before '{1}' ran, because you invented the observation or turn that follows. "
    "End your reply after the {0}. The next step shows you the real result."
)
_THOUGHT = re.compile(
    r"\A\s*(?:#{1,6}[ \t]*|\*\*)?thoughts?(?:\*\*)?(?:[ \t]*:(?:\*\*)?|[ \t]*(?=\n))", re.I
)
_CODE_LABEL = re.compile(r"(?:#{1,6}[ \t]*|\*\*)?code(?:\*\*)?[ \t]*:?(?:\*\*)?", re.I)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_FENCE_HEAD = re.compile(r"[^\n]{0,80}\n\s*")
_PLAN_KEYS = frozenset((*PROGRESS_KEYS, "question"))
_PLAN_START = re.compile(rf"""\{{\s*['"](?:{"|".join(sorted(_PLAN_KEYS))})['"]\s*:""")
_PYTHON_TAG = "<|python_tag|>"


def parse_thought_code(reply: str) -> ParsedReply:
    """Split a reply into `thought` (the prose before the code) and `code` (see `extract_code`)."""
    code = extract_code(reply)
    return {"thought": thought_before(reply, code), "code": code}


def thought_before(reply: str, code: str) -> str:
    """Return the prose of a reply before its code."""
    prose = _before_code(reply, code).rstrip()
    before, _, last = prose.rpartition("\n")
    if code and _CODE_LABEL.fullmatch(last.strip()):
        prose = before
    return _THOUGHT.sub("", prose).strip()


def was_truncated(reply: str) -> bool:
    """Return whether the reply ended at its length limit (`max_reply_tokens`)."""
    return getattr(reply, "finish_reason", "") == "length"


def code_of(reply: str) -> tuple[str, str]:
    """Return the code of a reply, and a note for the model if a part of the reply is ignored.

    Raises:
        ParseError: the reply has no code, or its code is truncated and therefore must not run.
    """
    found = find_code(reply)
    cut = was_truncated(reply)
    if cut and not (found.code.strip() and found.closed):
        raise ParseError(TRUNCATED.format("no code ran"))
    if not found.code.strip():
        raise ParseError(
            "The reply contains no code. Write a short thought, then one Python block between "
            "```python and ```."
        )
    if found.invented:
        return found.code, INVENTED.format("code", found.invented)
    return found.code, TRUNCATED.format("only the code before that ran") if cut else ""


def _before_code(reply: str, code: str) -> str:
    """Return the reply up to the fence or tag that opens its code."""
    if not code.strip():
        return reply
    if _PYTHON_TAG in reply:
        return reply.partition(_PYTHON_TAG)[0]
    first_line = code.strip().partition("\n")[0].strip()
    for fence in _FENCE.finditer(reply):
        head = _FENCE_HEAD.match(reply, fence.end())
        if head is not None and reply.startswith(first_line, head.end()):
            return reply[: fence.start()]
    tagged = None if "```" in reply else TAGGED.search(reply)
    if tagged is not None:
        return reply[: tagged.start()]
    return reply.partition("```")[0] if "```" in reply else ""


def split_plan(reply: str) -> tuple[str, str]:
    """Return the plan in a reply of an action, and the reply without it.

    A plan is a block that contains only a dict with the keys of a plan. A faulty dict counts too if
    it starts with such a key and another block follows. A plan that the code assigns to a variable
    counts, but stays in the code, which may use the variable. Any other block with a dict is code.

    Returns:
        The plan as written and the rest, or "" and the whole reply.
    """
    text, blocks = own_blocks(reply)
    for n, (code, start, end) in enumerate(blocks):
        if _is_plan(code.strip(), followed=bool(blocks[n + 1 :])):
            return code.strip(), text[:start] + text[end:].lstrip("\n")
    for code, _, _ in blocks:
        if assigned := _assigned_plan(code):
            return assigned, reply
    return "", reply


def _assigned_plan(code: str) -> str:
    """Return the last plan that top-level code assigns to a variable; "" if there is none.

    It has at least two keys of a plan, and only lists of texts.
    """
    if "_list" not in code and "information" not in code:
        return ""
    try:
        body = ast.parse(textwrap.dedent(code)).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    for statement in reversed(body):
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if not isinstance(value, ast.Dict):
            continue
        try:
            plan = ast.literal_eval(value)
            lists = [plan[key] for key in PROGRESS_KEYS if key in plan]
        except (ValueError, TypeError):
            continue
        if len(plan.keys() & _PLAN_KEYS) >= 2 and all(map(_is_list_of_texts, lists)):
            return ast.unparse(value)
    return ""


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_plan(code: str, *, followed: bool) -> bool:
    """Whether a block contains only a plan; see `split_plan`."""
    if not _PLAN_START.match(code):
        return False
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError:
        return followed and code.endswith("}") and not _has_statements(code)
    except (ValueError, MemoryError, RecursionError):
        return False
    if not isinstance(tree, ast.Dict):
        return False
    try:
        keys = ast.literal_eval(tree).keys()
    except (ValueError, TypeError):  # it contains expressions
        return followed
    return len(keys & _PLAN_KEYS) >= 2 or keys <= _PLAN_KEYS


def _has_statements(code: str) -> bool:
    """Whether code is valid Python."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def parse_literal(text: str) -> Any:
    """Return the Python or JSON literal in a reply, from a fence or from prose.

    Raises:
        ParseError: the reply has no literal.
    """
    for candidate in _literal_candidates(text):
        for read in (ast.literal_eval, json.loads):
            try:
                return read(candidate)
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
    raise ParseError("The reply contains no dict that is a valid Python or JSON literal.")


def _literal_candidates(text: str) -> list[str]:
    """Return possible literals, most likely first: fenced blocks, the whole text, outer braces."""
    fenced = re.findall(r"```[\w+.-]*[ \t]*\n(.*?)```", text, flags=re.DOTALL)
    start, end = text.find("{"), text.rfind("}")
    braces = [text[start : end + 1]] if 0 <= start < end else []
    # the reply may be `state = {...}`
    assigned = [re.sub(r"\A\s*\w+\s*=\s*", "", f) for f in fenced]
    return [c.strip() for c in (*fenced, *assigned, text, *braces) if c.strip()]
