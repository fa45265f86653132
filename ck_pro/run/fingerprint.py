"""The fingerprint of a run: the version of ck-pro, and hashes of settings and prompts.

Equal hashes mean equal settings or prompts, regardless of the order of keys.
"""

from __future__ import annotations

import builtins
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, TypedDict

from ck_pro.agent_settings import AgentSettings
from ck_pro.template import TemplatedString, get_template
from ck_pro.version import __version__

_DIGITS = 16
_PLAIN = (str, int, float, bool, bytes, type(None))


class Fingerprint(TypedDict):
    """Version and hashes of a run."""

    version: str
    settings_hash: str
    prompts_hash: str


def fingerprint_of(agent: AgentSettings) -> Fingerprint:
    """Return the fingerprint of the runs of an agent.

    Args:
        agent: the main agent, with its sub-agents.
    """
    return {
        "version": __version__,
        "settings_hash": hash_of_json(agent.to_dict()),
        "prompts_hash": hash_of_json(list(_prompt_texts(agent, set()))),
    }


def hash_of_json(value: Any) -> str:
    """Return the hash of a JSON-able value: 16 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _prompt_texts(agent: AgentSettings, seen: set[int]) -> Iterator[list[str]]:
    """Yield the texts that determine the prompts of an agent and its sub-agents."""
    if id(agent) in seen:
        return
    seen.add(id(agent))
    for phase, named in sorted(agent.templates.items()):
        if named is not None:
            template = get_template(named) if isinstance(named, str) else named
            yield [agent.name, phase, _template_text(template)]
    for goal in agent.goals:
        yield [agent.name, "goal", repr(goal)]
    for function in agent.functions():
        yield [agent.name, "function", function.get_function_definition(False)]
        if isinstance(function, AgentSettings):
            yield from _prompt_texts(function, seen)


def _template_text(template: Any) -> str:
    body = template.template if isinstance(template, TemplatedString) else template
    if isinstance(body, str):
        return body
    return _function_text(body) if isinstance(body, FunctionType) else type(body).__qualname__


@lru_cache(maxsize=256)
def _function_text(function: FunctionType) -> str:
    """Return the source of a function with the functions and constants that it uses."""
    found: dict[str, str] = {}
    _collect(function, found)
    return json.dumps(found, sort_keys=True)


def _collect(function: Callable[..., Any], found: dict[str, str]) -> None:
    if not isinstance(function, FunctionType):
        return
    key = f"{function.__module__}.{function.__qualname__}"
    if key in found:
        return
    found[key] = _source(function)
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
    for name, value in [*_globals(function, code), *((n, _content(c)) for n, c in cells)]:
        if isinstance(value, FunctionType):
            _collect(value, found)
        elif isinstance(value, _PLAIN) or _is_plain(value):
            found[f"{key}: {name}"] = repr(value)


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # defined in an interactive session
        code = function.__code__
        return f"{code.co_code.hex()} {[c for c in code.co_consts if isinstance(c, _PLAIN)]}"


def _globals(function: FunctionType, code: CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the global values that a function uses, also in nested functions."""
    for name in code.co_names:
        if name in function.__globals__ and not hasattr(builtins, name):
            yield name, function.__globals__[name]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(function, constant)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def _is_plain(value: Any) -> bool:
    """Whether a value's `repr` shows its contents and is equal in every process."""
    if isinstance(value, list | tuple):
        return all(isinstance(v, _PLAIN) or _is_plain(v) for v in value)
    if isinstance(value, Mapping):
        return all(isinstance(v, _PLAIN) or _is_plain(v) for v in (*value, *value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        return all(isinstance(v, _PLAIN) or _is_plain(v) for v in vars(value).values())
    return False
