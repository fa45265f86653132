"""Languages by their name in settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ck_pro.exceptions import ConfigError
from ck_pro.language.base import AgentLanguage
from ck_pro.language.code import CodeLanguage
from ck_pro.language.computer import ComputerUseLanguage
from ck_pro.language.function_calling import FunctionCallingLanguage

LANGUAGES: dict[str, Callable[[], AgentLanguage]] = {
    "code": CodeLanguage,
    "function_calls": FunctionCallingLanguage,
    "function_calls_text": partial(FunctionCallingLanguage, native_history=False),
    "computer_use": ComputerUseLanguage,
    "computer": partial(ComputerUseLanguage, tool="computer"),
    "computer_use_preview": partial(ComputerUseLanguage, tool="computer_use_preview"),
}
"""Name -> factory. The last two use the built-in tool of that name."""


def language_named(name: str) -> AgentLanguage:
    """Return the language with this name.

    Raises:
        ConfigError: the name is unknown.
    """
    if name not in LANGUAGES:
        raise ConfigError(f"language {name!r} is unknown; known are: {', '.join(LANGUAGES)}")
    return LANGUAGES[name]()
