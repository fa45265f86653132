"""A conversation from Python: turns in one session, and a later process that continues it.

python examples/chat.py                            # a function plays the model
python examples/chat.py gpt:gpt-4.1                # a real model

For a conversation at the terminal: python -m ck_main.main --chat --model gpt:gpt-4.1
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from ck_pro import LLM, Journal, MultiStepAgent, StopTool


def play(prompt: list[dict[str, Any]]) -> str:
    """Play the model: code whose variables stay from turn to turn."""
    asked = str(prompt).rpartition("Message from the user")[2].partition("#")[0]
    if "Add lamps" in asked:
        return "```python\nprices['lamp'] = 19.5\nstop(f'{len(prices)} prices')\n```"
    if "the total" in asked:
        return "```python\nstop(f'the total is {sum(prices.values())}')\n```"
    return "```python\nprices = {'kettle': 32.0}\nstop(f'{len(prices)} price')\n```"


def main(model: str | None = None) -> None:
    """Take three turns, the last one as another process does."""
    agent = MultiStepAgent(model=model or LLM.of(play), tools=[StopTool()])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        with Journal(Path(folder, "journal")) as journal:
            session = agent.turn(
                None, "Remember: a kettle costs 32.", journal=journal, workdir=work
            )
            print(session.final_results["output"])
            session = agent.turn(session, "Add lamps for 19.5, and tell me the number of prices.")
            print(session.final_results["output"])
            session = agent.turn(session, "What is the total?")
            print(session.final_results["output"])
            agent.end_session(session)
        with Journal(Path(folder, "journal")) as journal:
            session = agent.turn(
                None, "Start again with the kettle.", journal=journal, workdir=work
            )
            print(session.final_results["output"], "in turn", len(session.turns) + 1)
            agent.end_session(session)


if __name__ == "__main__":
    main(*sys.argv[1:])
