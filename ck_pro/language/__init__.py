"""Agent languages: render prompts, and parse replies to actions.

Parsing is pure: a reply becomes typed actions or a `ParseError`. Loop, tools and log are the same
for every language; to switch, change only the agent's `language`.
May import: the rooms above `language` in `ck_pro`. Others use the names below.
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
    message_text,
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
    "message_text",
    "parse_literal",
    "parse_thought_code",
    "shown_name",
    "text_of",
]
