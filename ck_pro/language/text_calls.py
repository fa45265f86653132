"""Parse function calls that a model wrote as text. Pure.

Models write the forms of their training data or of their history: `<tool_call>` tags, JSON with
name and arguments, `Action:` lines, or Python calls with named arguments.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ck_pro.executor.extract import find_invented_text, without_thinking

_TAGS = re.compile(
    r"</?(?:tool_calls?|function_calls?|tools?)>|\[/?TOOL_CALLS?\]|<\|/?tool_calls?\|>"
    r"|^[ \t]*`{3,}(?:json|tool_call)?[ \t]*$",
    re.MULTILINE,
)
_FUNCTION_TAG = re.compile(
    r"<(?P<tag>function|invoke)[= ](?:name=)?[\"']?(?P<name>[\w.]+)[\"']?>\s*"
)
_PARAMETER = re.compile(
    r"<parameter[= ](?:name=)?[\"']?(\w+)[\"']?>\s*(.*?)\s*</parameter>", re.DOTALL
)
_ACTION = re.compile(r"Action:\s*(?P<name>[\w.]+)\s*\nAction[ _]Input:\s*(?=\{)", re.IGNORECASE)
_HEAD = re.compile(
    r"(?:(?:Action|Call|Tool):[ \t]*)?`{0,2}(?P<call>\[?[A-Za-z_][\w.]*\()", re.IGNORECASE
)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs")
_NAMESPACE = re.compile(r"(?:functions|tools|default_api)\.")
_DECODER = json.JSONDecoder()
_CALL_CHARS = 20_000
_CALLS = 100
_LINES = 20
_ATTEMPTS = 200
"""Limit of examined lines that look like the start of a call."""
_ENDS = re.compile(r"[)\]][ \t;.`]*$", re.MULTILINE)
_CALL_MARKS = re.compile(
    r"<tool_calls?\b|<function[=_ ]|<invoke\b|\[TOOL_CALLS?\]|<\|tool_call|<\uff5ctool"
    r"|\bto=functions\.|<\|python_tag\|>"
)


class TextCall(NamedTuple):
    """A call in a reply."""

    name: str
    arguments: dict[str, Any]
    end: int


def text_calls(reply: str) -> tuple[list[TextCall], str]:
    """Return the calls that a reply contains as text, up to any invented observation.

    Returns:
        The calls in order, and the first line of the invented observation; "" if there is none.
    """
    text = _TAGS.sub(lambda tag: " " * len(tag.group()), without_thinking(reply))
    calls: list[TextCall] = []
    starts = _call_starts(text)
    at = 0
    while at < len(text) and len(calls) < _CALLS:
        begin, found = _next_call(text, at, starts)
        until = begin if found else len(text)
        if calls and (own := find_invented_text(text, at, until)) < until:
            return calls, text[own:].strip().partition("\n")[0][:80]
        if not found:
            break
        calls += found
        at = found[-1].end
    return calls, ""


def has_call_marks(reply: str) -> bool:
    """Return whether a reply has the syntax marks of a call in any form."""
    return _CALL_MARKS.search(without_thinking(reply)) is not None


def named_call(text: str, names: Collection[str]) -> str | None:
    """Return the function that a text without a parsed call seems to call; None if there is none.

    It finds `search(...)` within a sentence, and malformed JSON with the name of a function.

    Args:
        text: the text of a reply.
        names: names of the functions.
    """
    text = without_thinking(text)
    for name in names:
        written = re.escape(name)
        if re.search(
            rf"""(?<![\w.]){written}\(|["'](?:{"|".join(_NAMES)})["']\s*:\s*["']{written}["']""",
            text,
        ):
            return name
    return None


def _next_call(text: str, at: int, starts: Iterator[int]) -> tuple[int, list[TextCall]]:
    """Return the start of the next call or list of calls, and the calls."""
    for begin in starts:
        found = _calls_at(text, begin) if begin >= at else []
        if found:
            return begin, found
    return len(text), []


def _call_starts(text: str) -> Iterator[int]:
    """Yield the positions of lines that look like calls."""
    lines = re.compile(r"^[ \t]*(?=[{\[<]|`{0,2}[A-Za-z_][\w.]*[(:])", re.MULTILINE)
    return (line.end() for line in itertools.islice(lines.finditer(text), _ATTEMPTS))


def _calls_at(text: str, begin: int) -> list[TextCall]:
    if text[begin] in "{[" and (found := _json_calls(text, begin)):
        return found
    if text[begin] == "<":
        tag = _FUNCTION_TAG.match(text, begin)
        return _tagged(text, tag) if tag is not None else []
    action = _ACTION.match(text, begin)
    if action is not None:
        value, end = _decoded(text, action.end())
        ok = isinstance(value, dict)
        return [TextCall(_bare(action["name"]), value, end)] if ok else []
    head = _HEAD.match(text, begin)
    return _python_call(text, head.start("call")) if head is not None else []


def _decoded(text: str, begin: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None, begin


def _json_calls(text: str, begin: int) -> list[TextCall]:
    value, end = _decoded(text, begin)
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    entries = value if isinstance(value, list) else [value]
    found = [_json_call(entry) for entry in entries]
    if not found or None in found:
        return []
    return [TextCall(name, arguments, end) for name, arguments in filter(None, found)]


def _json_call(entry: Any) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments of a JSON call; None for other objects, such as an answer."""
    if not isinstance(entry, Mapping):
        return None
    if isinstance(entry.get("function"), Mapping):
        entry = entry["function"]
    name = next((entry[k] for k in _NAMES if isinstance(entry.get(k), str)), "")
    arguments = next((entry[k] for k in _ARGUMENTS if k in entry), None)
    if isinstance(arguments, str):
        arguments, _ = _decoded(arguments.strip(), 0)
    if isinstance(arguments, dict) and re.fullmatch(r"[\w.]+", name):
        return _bare(name), arguments
    return None


def _tagged(text: str, tag: re.Match[str]) -> list[TextCall]:
    close = f"</{tag['tag']}>"
    end = text.find(close, tag.end(), tag.end() + _CALL_CHARS)
    if end < 0:
        return []
    body = text[tag.end() : end].strip()
    value, _ = _decoded(body, 0) if body.startswith("{") else (None, 0)
    if not isinstance(value, dict):
        value = {name: _literal(given) for name, given in _PARAMETER.findall(body)}
    return [TextCall(_bare(tag["name"]), value, end + len(close))]


def _literal(text: str) -> Any:
    """Return a JSON value; other text unchanged."""
    value, end = _decoded(text, 0)
    return value if end == len(text) and end else text


def _python_call(text: str, begin: int) -> list[TextCall]:
    """Return a Python call, or a list of calls, with named literal arguments on separate lines."""
    for end in itertools.islice(_ENDS.finditer(text, begin, begin + _CALL_CHARS), _LINES):
        source = text[begin : end.end()].strip(" \t;.`")
        calls = _parsed(source)
        if calls:
            return [TextCall(name, arguments, end.end()) for name, arguments in calls]
    return []


def _parsed(source: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        tree = ast.parse(source, mode="eval").body
        calls = [_python_parts(e) for e in (tree.elts if isinstance(tree, ast.List) else [tree])]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []
    return [c for c in calls if c is not None] if None not in calls else []


def _python_parts(tree: ast.expr) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(tree, ast.Call) or tree.args or any(k.arg is None for k in tree.keywords):
        return None
    arguments = {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}
    json.dumps(arguments)
    return _bare(ast.unparse(tree.func)), arguments


def _bare(name: str) -> str:
    return _NAMESPACE.sub("", name, count=1)
