"""Print the tables of web functions for docs/web_agent.md: `python -m ck_web.actions`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

from ck_web.actions import ACTIONS, WEB_FUNCTIONS
from ck_web.actions.action import InPrompt


def functions_table(in_prompt: InPrompt) -> str:
    """Return a Markdown table of the functions that prompts show in this way."""
    rows = ["| function | action string | |", "|---|---|---|"]
    for action in (ACTIONS[name] for name in WEB_FUNCTIONS):
        if action.in_prompt == in_prompt:
            forms = ", ".join(f"`{form}`" for form in action.forms)
            help_text = " ".join(action.help.split())
            rows.append(f"| `{action.name}{_parameters(action.write)}` | {forms} | {help_text} |")
    return "\n".join(rows)


def _parameters(function: Callable[..., str]) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare)).replace("'", '"')


if __name__ == "__main__":
    sys.stdout.write(f"{functions_table('full')}\n\n{functions_table('line')}\n")
