"""The agents that `--agent NAME` selects."""

from __future__ import annotations

import sys
from pathlib import Path

from ck_pro.agent import MultiStepAgent
from ck_pro.agent.hub import agent_class

BUILTIN = {
    "ck_agent": "ck_main.agent:CKAgent",
    "web_agent": "ck_web.agent:WebAgent",
    "computer_agent": "ck_web.computer:ComputerAgent",
}
"""The agents of this project; their modules load on use."""


def named_agent(name: str) -> type[MultiStepAgent]:
    """Return the class of an agent by its name in the hub, or by MODULE:CLASS.

    A module may also be in the current directory.

    Raises:
        ConfigError: see `agent_class`.
    """
    here = str(Path.cwd())
    if ":" in name and here not in sys.path:
        sys.path.append(here)
    return agent_class(name, BUILTIN)
