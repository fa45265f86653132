"""How an agent speaks with its model: rendering prompts and parsing replies.

Parsing is pure: text in, typed actions or a `ParseError` out. The loop, the tools and the log are
the same for every language; an agent speaks another one by changing its `language` alone.
"""

from __future__ import annotations

from ck_pro.language.base import AgentLanguage
from ck_pro.language.code import CodeLanguage
from ck_pro.language.computer import ComputerUseLanguage
from ck_pro.language.forms import END_FORM, PLAN_FORM, Form
from ck_pro.language.function_calling import FunctionCallingLanguage
from ck_pro.language.names import LANGUAGES, language_named
from ck_pro.language.parsing import parse_literal, parse_thought_code
from ck_pro.language.prompt import (
    Message,
    Prompt,
    compose_prompt,
    fenced,
    shown_name,
    text_of,
)

__all__ = [
    "END_FORM",
    "LANGUAGES",
    "PLAN_FORM",
    "AgentLanguage",
    "CodeLanguage",
    "ComputerUseLanguage",
    "Form",
    "FunctionCallingLanguage",
    "Message",
    "Prompt",
    "compose_prompt",
    "fenced",
    "language_named",
    "parse_literal",
    "parse_thought_code",
    "shown_name",
    "text_of",
]
