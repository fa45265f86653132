"""An agent from goals, actions, memory and environment: a keeper of notes.

python examples/game_agent.py                      # a function plays the model
python examples/game_agent.py gpt:gpt-4.1          # a real model
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ck_pro import Agent, Environment, Goal, ToolRegistry

actions = ToolRegistry()


@actions.register(tags=["notes"])
def add_note(text: Annotated[str, Field(min_length=3, description="one sentence")]) -> str:
    """Store a note."""
    return f"stored: {text}"


@actions.register(name="finish", terminal=True)
def terminate(message: str) -> str:
    """End with a message for the user."""
    return message


class Office(Environment):
    """The place where actions run: it numbers the results."""

    def __init__(self) -> None:
        self.count = 0

    def execute_action(self, tool: Any, arguments: Mapping[str, Any]) -> Any:
        """Run an action and add its number to the result."""
        self.count += 1
        return {"number": self.count, "result": tool.execute(**arguments)}


def generate_response(prompt: list[dict[str, Any]]) -> str:
    """Play the model: a function from chat messages to the reply, as text or as a message."""
    text = json.dumps(prompt)
    if "stored: " not in text:
        return json.dumps({"tool": "add_note", "args": {"text": "The door is green."}})
    seen = "I knew" if "Memory of earlier runs" in text else "I noted"
    return json.dumps({"tool": "finish", "args": {"message": f"{seen}: the door is green."}})


def main(model: str | None = None) -> None:
    """Run the agent twice; the second run has the memory of the first."""
    agent = Agent(
        goals=[Goal("Store each fact that the user states."), Goal("Answer from the notes.")],
        actions=actions,
        generate_response=model or generate_response,
        environment=Office(),
    )
    first = agent.run("Remember: the door is green.")
    for step in first.steps:
        print(f"{step['action']['code']} -> {step['action']['observation']}")
    second = agent.run("Which colour has the door?", memory=first, max_steps=5)
    print(f"{second.status}: {second.final_results['output']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
