"""Check the tool calls of a corrected reply against the functions that its prompt offers."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any


def tool_call_problem(
    calls: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> str:
    """Return what is wrong with tool calls; "" if they fit.

    Args:
        calls: see `normal_tool_calls`.
        tools: function schemas sent with the prompt, see `normal_tools`.
    """
    schemas = {t["function"]["name"]: t["function"].get("parameters") or {} for t in tools}
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name not in schemas:
            near = difflib.get_close_matches(name, schemas, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"{name}: the prompt offers no such function{hint}"
        schema = schemas[name]
        missing = [a for a in schema.get("required") or () if a not in arguments]
        if missing:
            return f"{name}: the argument '{missing[0]}' is missing"
        known = schema.get("properties")
        open_ended = bool(schema.get("additionalProperties"))
        unknown = [a for a in arguments if known is not None and a not in known]
        if unknown and not open_ended:
            return f"{name}: unknown argument '{unknown[0]}'"
    return ""
