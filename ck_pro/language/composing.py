"""Compose replies from the parts that a person writes. Pure; `parse` reads the results."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ck_pro.exceptions import ParseError

_TICKS = re.compile("`+")


def compose_code(thought: str, code: str, plan: str = "") -> str:
    """Return a reply with a thought, a plan and a block of Python; each may be empty."""
    head = f"Thought: {thought.strip()}" if thought.strip() else ""
    blocks = [_block(part) for part in (plan, code) if part.strip()]
    return "\n".join(part for part in (head, *blocks) if part)


def _block(code: str) -> str:
    """Return a block of Python whose fence is longer than any in the code."""
    longest = max((len(run) for run in _TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code.strip(chr(10)).rstrip()}\n{fence}"


def compose_calls(code: str, functions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls written as Python, as native calls of chat completions.

    Args:
        code: calls with literal arguments, one below the other.
        functions: the offered functions: `name`, and `parameters` as JSON schema. They name the
            positional arguments.

    Raises:
        ParseError: a line is not such a call.
    """
    known = {str(f["name"]): f for f in functions}
    calls = []
    for number, (name, arguments) in enumerate(_written_calls(code, known), 1):
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
    return calls


def _written_calls(
    code: str, known: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        body = ast.parse(textwrap.dedent(code)).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as e:
        line = getattr(e, "lineno", None)
        where = f"line {line}: " if line else ""
        raise ParseError(f"{where}not a call: {getattr(e, 'msg', e)}") from None
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            raise ParseError(f"line {statement.lineno}: not a call; write name(argument=value)")
        yield _parts(call, known)


def _parts(call: ast.Call, known: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    name = ast.unparse(call.func)
    properties = list((known.get(name, {}).get("parameters") or {}).get("properties", {}))
    if len(call.args) > len(properties):
        raise ParseError(f"line {call.lineno}: name the arguments of {name}: {name}(argument=...)")
    if any(keyword.arg is None for keyword in call.keywords):
        raise ParseError(
            f"line {call.lineno}: write the arguments of {name} one by one, without **"
        )
    written = {**dict(zip(properties, call.args, strict=False))}
    for keyword in call.keywords:
        if keyword.arg in written:
            raise ParseError(f"line {call.lineno}: {name} has two values for {keyword.arg}")
        written[str(keyword.arg)] = keyword.value
    arguments = {}
    for key, value in written.items():
        try:
            arguments[key] = ast.literal_eval(value)
            json.dumps(arguments[key], allow_nan=False)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise ParseError(f"line {call.lineno}: {key} of {name} is not a plain value") from None
    return name, arguments
