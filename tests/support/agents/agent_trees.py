"""Trees of three agents whose tool calls are counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scripted_agents import code

from ck_pro import AgentSession, Journal, MultiStepAgent, StopTool
from ck_pro.journal import read_events
from ck_pro.model import Reply
from ck_pro.session import sessions_from_events
from ck_pro.testing import ScriptedLLM
from ck_pro.tools.human import AskHumanTool

Replies = Mapping[str, list[Any]]


def plan(**more: Any) -> str:
    return f"Thought.\n```python\n{ {'todo_list': ['go'], **more} }\n```"


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply("so", tool_calls=[{"id": "c0", "type": "function", "function": function}])


class Watched:
    """A tree of agents, `main` over `mid` over `leaf`, whose calls of `work` are counted."""

    def __init__(self, replies: Replies | Callable[..., Any], **settings: Any):
        self.worked: Counter[str] = Counter()

        def work(name: str) -> str:
            """Work."""
            self.worked[name] += 1
            return f"{name} done"

        self.model = ScriptedLLM(replies)
        common = {"model": self.model, "tools": [work, AskHumanTool(), StopTool()]}
        common.update(settings.pop("common", {}))
        leaf = MultiStepAgent(name="leaf", **{**common, **settings.pop("leaf", {})})
        mid = MultiStepAgent(
            name="mid", **{**common, "sub_agents": [leaf], **settings.pop("mid", {})}
        )
        self.agent = MultiStepAgent(
            name="main", **{**common, "sub_agents": [mid, leaf]}, **settings
        )

    def run(self, folder: Path, **more: Any) -> AgentSession:
        with Journal(folder) as journal:
            session: AgentSession = self.agent.run(
                "Do it.", journal=journal, workdir=folder.parent / "work", **more
            )
        return session

    def resume(self, folder: Path, answer: str = "", **more: Any) -> AgentSession:
        with Journal(folder) as journal:
            session: AgentSession = self.agent.resume(
                journal=journal, answer=answer, workdir=folder.parent / "work", **more
            )
        stored = sessions_from_events(read_events(folder))[session.id]
        assert json.dumps(stored.to_dict()) == json.dumps(session.to_dict())
        return session


ASKING = {
    "main:action": [code("print(work('main'), mid('Open it.'))\nstop('main ' + work('last'))")],
    "mid:action": [code("print(work('mid'))"), code("stop('mid ' + leaf('Ask.')['output'])")],
    "leaf:action": [
        code("print(work('leaf'))"),
        code("print(work('before'))\nstop(ask_human('The code?') + ' ' + work('after'))"),
    ],
}


SPREAD = (
    "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(3) as pool:\n"
    "    found = list(pool.map(leaf, ['fast', 'slow', 'asks']))\n"
    "stop(' '.join(f['output'] for f in found))"
)
