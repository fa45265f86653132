"""Forms: function calls that carry only data, for the plan and the final result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """A function that only carries data; calling it has no effect."""

    name: str
    description: str
    parameters: dict[str, Any]


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


PLAN_FORM = Form(
    "update_plan",
    "Record the plan. It has no other effect.",
    {
        "type": "object",
        "properties": {
            "completed_list": _texts("Sub-tasks done."),
            "todo_list": _texts("Remaining sub-tasks, in order."),
            "experience": _texts("Lessons learned, including what failed."),
            "information": _texts("Facts found so far, with their sources."),
            "question": {
                "type": "string",
                "description": "Only if you cannot understand the task without the user's answer.",
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
                "description": "The final answer in exactly the form that the task asks for, "
                "or an empty string.",
            },
            "log": {"type": "string", "description": "How you found it, or why you could not."},
        },
        "required": ["output", "log"],
    },
)


def _strict_schema(form: Form) -> dict[str, Any]:
    """Return the schema of a form's data, after a thought, in the strict form of JSON schema.

    The strict form requires every property; one that may be missing can be null.
    """
    required = form.parameters["required"]
    properties: dict[str, Any] = {"thought": {"type": "string", "description": "A short thought."}}
    for name, schema in form.parameters["properties"].items():
        optional = {} if name in required else {"type": [schema["type"], "null"]}
        properties[name] = {**schema, **optional}
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


PLAN_SCHEMA = _strict_schema(PLAN_FORM)
"""JSON schema of a plan that is a whole reply."""
