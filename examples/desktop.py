"""An agent that uses a real program on a private X display, and reads the result back.

python examples/desktop.py                      # scripted replies; needs Xvfb, xdotool and xterm
python examples/desktop.py -m gpt:gpt-4.1 -t "How many files are in /etc?"
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ck_pro.model import CallContext, Reply
from ck_pro.testing import ScriptedLLM
from ck_web import ComputerAgent
from ck_web.desktop import missing_programs

TASK = "Type `expr 17 \\* 3 > product.txt` into the terminal. What is in the file?"


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """Return one function call of a reply."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def scripted(messages: list[dict[str, Any]], context: CallContext) -> Reply:
    """A model that types a command, looks at the result enlarged, and answers."""
    if context.step == 0:
        focus = call(0, "computer", action="click", x=200, y=100)
        text = "expr 17 \\* 3 > product.txt; cat product.txt\n"
        return Reply(
            "I type it.", tool_calls=[focus, call(1, "computer", action="type", text=text)]
        )
    if context.step == 1:
        return Reply("", tool_calls=[call(2, "computer", action="zoom", region=[0, 0, 300, 60])])
    return Reply("", tool_calls=[call(3, "stop", answer="51", summary="read in the terminal")])


def main() -> None:
    """Run the agent on one task; print its steps and the file that the terminal wrote."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("-m", "--model", help="model; without one, a script replies")
    parser.add_argument("-t", "--task", default=TASK)
    args = parser.parse_args()
    if problem := missing_programs() or ("" if shutil.which("xterm") else "no xterm"):
        parser.exit(1, f"{problem}\n")
    agent = ComputerAgent(
        model=args.model or ScriptedLLM(replies=scripted),
        computer="desktop",
        desktop={"programs": ["xterm -geometry 80x24+0+0"]},
    )
    with tempfile.TemporaryDirectory() as folder:
        session = agent.run(args.task, workdir=folder)
        for step in session.steps:
            print(step["action"]["observation"])
        for path in sorted(Path(folder).glob("*.txt")):
            print(f"{path.name}: {path.read_text().strip()}")
    print(f"{session.status}: {session.final_results['output']} {session.message}".rstrip())


if __name__ == "__main__":
    main()
