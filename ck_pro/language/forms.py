"""What a model that calls functions fills in where it does not act: its plan, its final result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """A function that only carries data: nothing is done when the model calls it."""

    name: str
    description: str
    parameters: dict[str, Any]


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


PLAN_FORM = Form(
    "update_plan",
    "Write down the plan. It does nothing else.",
    {
        "type": "object",
        "properties": {
            "completed_list": _texts("Sub-tasks that are done."),
            "todo_list": _texts("Sub-tasks that are left, in order."),
            "experience": _texts("What was learned about how to do things, also what failed."),
            "information": _texts("Facts found so far, with where they come from."),
            "question": {
                "type": "string",
                "description": "Only if the task cannot be understood without the user's answer.",
            },
        },
        "required": ["completed_list", "todo_list", "experience", "information"],
    },
)
END_FORM = Form(
    "report_result",
    "Report the final result.",
    {
        "type": "object",
        "properties": {
            "output": {
                "type": "string",
                "description": "The final answer, exactly in the form that the task asks for; "
                "an empty string if there is none.",
            },
            "log": {"type": "string", "description": "How it was found, or what prevented it."},
        },
        "required": ["output", "log"],
    },
)
