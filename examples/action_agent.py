"""An agent whose `step(state)` returns typed actions: a caretaker of files.

python examples/action_agent.py                    # a function plays the model
python examples/action_agent.py gpt:gpt-4.1        # a real model
"""

from __future__ import annotations

import sys

from ck_pro import LLM, ActionAgent, AgentSession
from ck_pro.events import (
    Action,
    AddTaskAction,
    CmdRunAction,
    FileWriteAction,
    FinishAction,
    ModifyTaskAction,
    RecallAction,
)


class Caretaker(ActionAgent):
    """Plans two tasks, does them, and asks its model for the answer."""

    max_steps = 20

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        """Return the next action, from the history and the task tree."""
        open_tasks = [task for task in state.root_task.subtasks if task.state != "completed"]
        match len(state.history), open_tasks:
            case 0, _:
                return AddTaskAction(goal="write the list")
            case 1, _:
                return AddTaskAction(goal="count its lines")
            case 2, _:
                return FileWriteAction(path="list.txt", content="lamp\nkettle\n")
            case 4, _:
                return CmdRunAction(command="wc -l < list.txt")
            case 6, _:
                return RecallAction(query="counting lines")
            case _, [task, *_]:
                return ModifyTaskAction(task_id=task.id, state="completed")
        seen = "\n".join(observation.text for _, observation in state.history)
        answer = self.llm(f"{state.task}\n\nObservations:\n{seen}\n\nReply with the answer alone.")
        return FinishAction(output=str(answer))

    def search_memory(self, query: str) -> list[str]:
        """Return what earlier work left; the session itself is always searched."""
        return ["Lists end with an empty line."]


def main(model: str | None = None) -> None:
    """Run the agent and print its typed history."""
    agent = Caretaker(model=model or LLM.of(lambda prompt: "2"))
    session = agent.run("Write a list of two things. How many lines does it have?")
    for action, observation in session.history:
        text = observation.text.strip().splitlines()
        print(f"{action.kind} -> {observation.kind}: {text[0] if text else ''}")
    print(session.root_task.text())
    print(f"{session.status}: {session.final_results['output']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
